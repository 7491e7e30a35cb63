from __future__ import annotations

import pytest

from tests.plugins import installed

from . import jars


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory):
    """The tasks of tests/evaluation/jars.py."""
    with installed(jars, tmp_path_factory.mktemp("site")) as folder:
        yield folder
