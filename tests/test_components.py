"""Skips for what is missing: green on a machine that lacks it, failures where all is to be there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.components import ALL

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
    [("", "4 skipped, 1 xfailed"), ("1", "1 failed, 1 skipped, 1 xfailed, 2 errors")],
)
def test_what_is_missing_is_skipped_or_fails_where_all_is_to_be_there(tmp_path, all_there, wanted):
    (tmp_path / "test_parts.py").write_text(TESTS)
    (tmp_path / "test_module.py").write_text(MODULE)
    environment = {**os.environ, ALL: all_there, "LMGYM_CHROMIUM": "/nonexistent"}
    command = [sys.executable, "-m", "pytest", "-n", "0", "-p", "tests.conftest", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors", "--rootdir", str(tmp_path), str(tmp_path)]
    root = Path(__file__).parents[1]
    said = subprocess.run(command, cwd=root, env=environment, capture_output=True, text=True, check=False)
    assert re.sub(r"^=* | in .*", "", said.stdout.strip().splitlines()[-1]) == wanted, said.stdout
    assert said.returncode == bool(all_there)
    assert ("$LMGYM_CHROMIUM names /nonexistent" in said.stdout) is bool(all_there)
