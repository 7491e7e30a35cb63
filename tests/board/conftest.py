from __future__ import annotations

from pathlib import Path

import pytest

from lmgym.board import entry as entries
from tests.board.forge import Forger, played, wavering


@pytest.fixture(scope="session")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole Wordle entry of a player who gives up some: 93 episodes, 31 lost."""
    return entries.write(tmp_path_factory.mktemp("board") / "entries", *played("wordle", wavering()))


@pytest.fixture
def forger(honest: Path, tmp_path: Path) -> Forger:
    return Forger(honest, tmp_path)
