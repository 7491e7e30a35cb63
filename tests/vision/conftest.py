from __future__ import annotations

import pytest

from tests.plugins import installed

from . import games


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory):
    """The tasks of tests/vision/games.py."""
    with installed(games, tmp_path_factory.mktemp("site")) as folder:
        yield folder
