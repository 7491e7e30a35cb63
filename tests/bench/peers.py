"""Our tasks beside the same games of other suites, which run in their own venv."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import gymnasium
import speeds

from lmgym.env import golden
from lmgym.env.registry import find

VENV = Path(".bench-venv")
HERE = Path(__file__).parent
PEERS = ("gem-llm", "textarena")
GAMES: dict[str, dict[str, object]] = {  # the options that make our rules theirs
    "guess_number": {"highest": 10, "max_turns": 10},
    "wordle": {"max_turns": 6},
    "sokoban": {"side": 6, "boxes": 2, "max_turns": 30},
    "frozen_lake": {"slippery": False},
    "tic_tac_toe": {"others": "caller"},
    "connect_four": {"others": "caller"},
    "kuhn_poker": {"others": "caller"},
}
ONLY = {"gem-llm": ("guess_number", "wordle", "sokoban")}  # games of a peer that lacks some
TRIES = (1, 8)  # episodes of an instance: a new one each time, and a group as GRPO plays it
ROUNDS = 3


class Row(NamedTuple):
    """Return a row of the table."""

    game: str
    tries: str
    ours: str  # steps/s
    peer: str
    theirs: str  # steps/s, or why it did not run
    ratio: str


def python() -> str:
    """Return the interpreter of the peers' venv, made on the first call.

    Raises CalledProcessError if they cannot be installed.
    """
    interpreter = VENV / "bin" / "python"
    if not (VENV / ".made").exists():
        subprocess.run([sys.executable, "-m", "venv", str(VENV)], check=True)
        subprocess.run([str(interpreter), "-m", "pip", "install", "-q", *PEERS], check=True)
        (VENV / ".made").touch()
    return str(interpreter)


def peer_rate(job: dict[str, object]) -> float | str:
    """Return a peer's steps/s, or the reason why it did not run."""
    done = subprocess.run(
        [python(), str(HERE / "peer_games.py"), json.dumps(job)], capture_output=True, text=True, check=False
    )
    if done.returncode:
        return "not run: " + (done.stderr.strip().split("\n") or [""])[-1][:100]
    return float(done.stdout)


def compare(seconds: float) -> Iterator[Row]:
    """Yield medians of rounds in turn; both sides play the same rules, words and actions."""
    words = speeds.wordle_words()
    for game in GAMES:
        actions = _actions(game, words)
        for peer in (peer for peer in PEERS if game in ONLY.get(peer, GAMES)):
            for tries in TRIES:
                job = {"peer": peer, "game": game, "seconds": seconds, "tries": tries}
                job |= {"actions": actions, "words": words}
                rounds = [(_our_rate(game, seconds, actions, tries), peer_rate(job)) for _ in range(ROUNDS)]
                yield _row(game, tries, peer, rounds)


def _actions(game: str, words: Sequence[str]) -> list[str]:
    """Return the actions that both sides play over and over; of board games, whole games of random legal moves."""
    if game in ("tic_tac_toe", "connect_four"):
        with closing(gymnasium.make(find(game).id, **GAMES[game])) as env:
            return [action for index in range(20) for action in golden.play(env, golden.at_random, index=index).actions]
    moves = ["right", "down", "left", "down", "right", "up"]
    own = {"wordle": words[:50], "sokoban": moves, "frozen_lake": moves, "kuhn_poker": ["check"]}
    return list(own.get(game, [str(number) for number in range(1, 11)]))


def _our_rate(game: str, seconds: float, actions: Sequence[str], tries: int) -> float:
    with closing(gymnasium.make(find(game).id, **GAMES[game])) as env:
        return speeds.task_rate(env, seconds, actions, tries=tries, instances=1 << 20)


def _row(game: str, tries: int, peer: str, rounds: list[tuple[float, float | str]]) -> Row:
    mine = statistics.median(ours for ours, _ in rounds)
    theirs = [rate for _, rate in rounds if isinstance(rate, float)]
    if len(theirs) < len(rounds):
        why = next(rate for _, rate in rounds if isinstance(rate, str))
        return Row(game, str(tries), f"{mine:,.0f}", peer, why, "-")
    other = statistics.median(theirs)
    return Row(game, str(tries), f"{mine:,.0f}", peer, f"{other:,.0f}", f"{mine / other:.2f}")
