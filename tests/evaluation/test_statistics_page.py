"""The table of docs/explanation/statistics.md is what its command prints."""

from __future__ import annotations

import pytest

from tests.docs.blocks import ROOT
from tests.evaluation import coverage


@pytest.mark.slow
def test_coverage_table_matches_the_simulation(capsys):
    coverage.main()
    assert capsys.readouterr().out in (ROOT / "docs/explanation/statistics.md").read_text(encoding="utf-8")
