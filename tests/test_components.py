"""Skips for missing components: skips by default, failures under `LMGYM_ALL`."""

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
    ("all_there", "expected"),
    [("", {"skipped": 4, "xfailed": 1}), ("1", {"failed": 1, "skipped": 1, "xfailed": 1, "errors": 2})],
)
def test_a_missing_component_skips_or_fails_under_lmgym_all(pytester, monkeypatch, all_there, expected):
    pytester.makepyfile(test_parts=TESTS, test_module=MODULE)
    monkeypatch.setenv(ALL, all_there)
    monkeypatch.setenv("LMGYM_CHROMIUM", "/nonexistent")
    result = pytester.runpytest_inprocess("-p", "tests.conftest", "-p", "no:xdist", "--continue-on-collection-errors")
    assert result.parseoutcomes() == expected
    assert ("$LMGYM_CHROMIUM names /nonexistent" in result.stdout.str()) is bool(all_there)
