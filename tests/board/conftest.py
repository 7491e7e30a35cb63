from __future__ import annotations

import sys
from pathlib import Path

import pytest

from lmgym.board import entry as entries
from lmgym.cli import main
from tests.board.forge import Forger, played, wavering


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole Wordle entry of a player who gives up some: 93 episodes, 31 lost."""
    return entries.write(tmp_path_factory.mktemp("board") / "entries", *played("wordle", wavering()))


@pytest.fixture
def forger(honest: Path, tmp_path: Path) -> Forger:
    return Forger(honest, tmp_path)


class Commands:
    """The command `lmgym` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

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
        self.monkeypatch.setattr(sys, "argv", ["lmgym", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = self.capsys.readouterr()
        assert int(ended.value.code or 0) == code, out + err
        return out, err


@pytest.fixture
def lmgym(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Commands:
    """Commands in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return Commands(monkeypatch, capsys)
