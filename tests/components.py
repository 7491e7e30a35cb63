"""What a test needs of the machine and may do without: it is skipped, or fails where all is to be there.

`LMGYM_ALL`, which `.ci/run` sets, makes a failure of every skip (`tests/conftest.py`), but of those for data and models
that nobody can install by a command.
"""

from __future__ import annotations

import pytest

from lmgym.backends.browser.process import executable
from lmgym.errors import MissingExtra

ALL = "LMGYM_ALL"
NOT_TO_BE_HAD = (  # words of the reasons that stay skips
    "en_core_web_sm",  # spaCy's model, which no package index carries
    "LMGYM_TEST_DATA",  # official files of ALFWorld, WebShop and Wordle
    "the official games at hand",
    "WEBSHOP_DATA",
    "SCREENSPOT_DATA",
    "LMGYM_REMOTE_URL",  # somebody's server; tests/serve has one of its own
    "has no instances",  # official splits without their files
    "leave to make namespaces",  # the machine's, not a package's
)


def chromium() -> str:
    """Return the browser's path; a test, or a module that asks while it is imported, is skipped where there is none."""
    pytest.importorskip("playwright")
    try:
        return executable()
    except MissingExtra as error:
        pytest.skip(str(error), allow_module_level=True)


def stays_skipped(reason: str) -> bool:
    """Whether nothing that can be installed would change it."""
    return any(words in reason for words in NOT_TO_BE_HAD)
