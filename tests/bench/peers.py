"""Our tasks beside the same games of other suites, which run in a venv of their own."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import speeds

VENV = Path(".bench-venv")
HERE = Path(__file__).parent
PEERS = ("gem-llm", "textarena")
GAMES = {"guess_number": {"highest": 10}, "wordle": {}}
ROUNDS = 3


def python() -> str:
    """Return the interpreter of the peers' venv, made on the first call."""
    interpreter = VENV / "bin" / "python"
    if not (VENV / ".made").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "-q", *PEERS], check=True)
        (VENV / ".made").touch()
    return str(interpreter)


def words_folder(folder: Path) -> Path:
    """Write our Wordle list as the corpus `words` of NLTK: the peers' own cannot be downloaded everywhere."""
    corpus = folder / "corpora" / "words"
    corpus.mkdir(parents=True)
    listed = "\n".join(speeds.wordle_words())
    for name in ("en", "en-basic", "README"):
        (corpus / name).write_text(listed + "\n")
    return folder


def peer_rate(peer: str, game: str, seconds: float, words: Path) -> float | str:
    """Return a peer's steps/s, or why it cannot run here."""
    command = [python(), str(HERE / "peer_games.py"), peer, game, str(seconds), str(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.split("\n")
    if done.returncode or len(lines) < 2:
        return "failed: " + (done.stderr.strip().split("\n") or [""])[-1][:80]
    try:
        return float(lines[-2])
    except ValueError:
        return lines[-2]


def compare(seconds: float) -> Iterator[tuple[str, str, str, str, str]]:
    """Yield (game, our steps/s, peer, its steps/s, ratio), medians of rounds in turn."""
    with tempfile.TemporaryDirectory() as folder:
        words = words_folder(Path(folder))
        for game, options in GAMES.items():
            actions = speeds.wordle_words()[:50] if game == "wordle" else [str(number) for number in range(1, 11)]
            for peer in PEERS:
                ours, theirs = [], []
                for _ in range(ROUNDS):
                    ours.append(speeds.task_rate(game, seconds, actions=actions, **options))
                    theirs.append(peer_rate(peer, game, seconds, words))
                mine = statistics.median(ours)
                if any(isinstance(rate, str) for rate in theirs):
                    yield game, f"{mine:,.0f}", peer, str(theirs[0]), "-"
                else:
                    other = statistics.median(theirs)
                    yield game, f"{mine:,.0f}", peer, f"{other:,.0f}", f"{mine / other:.1f}"
