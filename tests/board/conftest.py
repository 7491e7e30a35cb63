from __future__ import annotations

from pathlib import Path

import pytest

from lmgym.board import entry as entries
from tests.board.forge import Forger, played, wavering
from tests.command import command


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole Wordle entry of a player who gives up some: 93 episodes, 31 lost."""
    return entries.write(tmp_path_factory.mktemp("board") / "entries", *played("wordle", wavering()))


@pytest.fixture
def forger(honest: Path, tmp_path: Path) -> Forger:
    return Forger(honest, tmp_path)


class Commands:
    """The command `lmgym` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self.capsys = capsys

    def __call__(self, *words: str) -> str:
        """Run a command and return its output."""
        return self._run(words, 0)[0]

    def refused(self, *words: str) -> str:
        """Run a command that must be refused in one line, and return that line."""
        output, error = self._run(words, 2)
        assert (output, error.count("\n")) == ("", 1), error
        return error

    def _run(self, words: tuple[str, ...], code: int) -> tuple[str, str]:
        self.capsys.readouterr()
        ended = command(*words)
        out, err = self.capsys.readouterr()
        assert ended == code, out + err
        return out, err


@pytest.fixture
def lmgym(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Commands:
    """Commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Commands(capsys)
