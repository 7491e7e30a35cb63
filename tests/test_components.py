"""Skips for what is missing: green on a machine that lacks it, failures where all is to be there."""

from __future__ import annotations

import pytest

from tests.components import ALL

pytest_plugins = ["pytester"]

TESTS = """
import pytest

@pytest.mark.skipif(True, reason="needs bubblewrap")
def test_marked(): pass
def test_imported(): pytest.importorskip("no_such_package")
def test_of_data(): pytest.skip("no games: set LMGYM_TEST_DATA")
@pytest.mark.xfail(strict=True)
def test_foreseen(): assert False
"""
MODULE = "from tests.components import chromium\nchromium()\ndef test_in_chromium(): pass\n"


@pytest.mark.parametrize(
    ("all_there", "wanted"),
    [("", {"skipped": 4, "xfailed": 1}), ("1", {"failed": 1, "skipped": 1, "xfailed": 1, "errors": 2})],
)
def test_what_is_missing_is_skipped_or_fails_where_all_is_to_be_there(pytester, monkeypatch, all_there, wanted):
    pytester.makepyfile(test_parts=TESTS, test_module=MODULE)
    monkeypatch.setenv(ALL, all_there)
    monkeypatch.setenv("LMGYM_CHROMIUM", "/nonexistent")
    said = pytester.runpytest_inprocess("-p", "tests.conftest", "-p", "no:xdist", "--continue-on-collection-errors")
    assert said.parseoutcomes() == wanted
    assert ("$LMGYM_CHROMIUM names /nonexistent" in said.stdout.str()) is bool(all_there)
