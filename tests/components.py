"""Components that a test may lack: it is skipped, or fails under `LMGYM_ALL`.

`.ci/run` sets `LMGYM_ALL`, which turns every skip into a failure (`tests/conftest.py`), except those for data and
models that no command installs.
"""

from __future__ import annotations

import os

import pytest

from lmgym.backends.browser.process import executable
from lmgym.backends.desktop.packages import check_installed
from lmgym.backends.sandbox import bubblewrap as bubblewrap_engine
from lmgym.backends.sandbox import daemon
from lmgym.backends.stockfish import executable as engine
from lmgym.errors import MissingExtra

ALL = "LMGYM_ALL"
NOT_INSTALLABLE = (  # phrases in the reasons of skips that stay skips
    "en_core_web_sm",  # spaCy's model, which no package index carries
    "LMGYM_TEST_DATA",  # official files of ALFWorld, LMRL-Gym, tau2-bench and WebShop
    "the official games at hand",
    "WEBSHOP_DATA",
    "SCREENSPOT_DATA",
    "LMRL_DATA",
    "TEXTCRAFT_DATA",
    "TAU2_DATA",
    "SWEBENCH_DATA",
    "OSWORLD_DATA",
    "ANDROID_CONTROL_DATA",
    "TERMINAL_DATA",
    "LMGYM_REMOTE_URL",  # a remote server; tests/serve starts its own
    "has no instances",  # official splits without their files
    "may not make namespaces",  # a property of the machine, not a package
    "no Docker daemon",  # not every machine lets one start
    "no archive of PyPI",  # libraries of SWERepair, which are fetched, not installed
    "no GPU",
)


def chromium() -> str:
    """Return the path of Chromium. Skip the calling test, or the module being imported, if there is none."""
    pytest.importorskip("playwright")
    try:
        return executable()
    except MissingExtra as error:
        pytest.skip(str(error), allow_module_level=True)


def bubblewrap() -> None:
    """Skip the calling test, or the module being imported, if bubblewrap cannot run here."""
    if reason := bubblewrap_engine.unavailable():
        pytest.skip(reason, allow_module_level=True)


def docker() -> None:
    """Skip the calling test, or the module being imported, without the daemon of `.ci/docker`: no other is touched."""
    if daemon.HOST not in os.environ:
        pytest.skip(f"no Docker daemon of the tests' own: .ci/docker run sets {daemon.HOST}", allow_module_level=True)
    if reason := daemon.unavailable():
        pytest.skip(reason, allow_module_level=True)


def desktop() -> None:
    """Skip the calling test, or the module being imported, if a program or package of desktop tasks is missing."""
    try:
        check_installed()
    except MissingExtra as error:
        pytest.skip(str(error), allow_module_level=True)


def stockfish() -> str:
    """Return the path of Stockfish. Skip the calling test, or the module being imported, if there is none."""
    try:
        return engine()
    except MissingExtra as error:
        pytest.skip(str(error), allow_module_level=True)


def stays_skipped(reason: str) -> bool:
    """Return True if no installable package would make the skipped test run."""
    return any(words in reason for words in NOT_INSTALLABLE)
