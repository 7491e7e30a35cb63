from __future__ import annotations

import sys

import pytest

from lmgym.env import registry

from . import games


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory):
    """Install tests/vision/games.py as a plug-in package, for this process and for those it spawns."""
    folder = tmp_path_factory.mktemp("site")
    info = folder / "games-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: games\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{registry.PLUGINS}]\ngames = {games.__name__}\n")
    sys.path.insert(0, str(folder))
    registry.specs.cache_clear()
    yield
    sys.path.remove(str(folder))
    registry.specs.cache_clear()
