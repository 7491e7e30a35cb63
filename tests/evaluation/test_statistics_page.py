"""What docs/explanation/statistics.md shows is what its commands do."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.evaluation import coverage
from tests.test_cli import command

PAGE = (Path(__file__).resolve().parents[2] / "docs/explanation/statistics.md").read_text(encoding="utf-8")


def test_its_commands_run(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    fence = re.search(r"```\n(.*?)```", PAGE, re.DOTALL)[1].splitlines()
    inline = re.findall(r"`lmgym (power --success [^`]*)`", PAGE)
    assert len(fence) == 4
    assert len(inline) == 1
    for line in [*(line.removeprefix("lmgym ") for line in fence), *inline]:
        assert command(monkeypatch, *line.split()) == 0, capsys.readouterr().err
    assert (tmp_path / "runs/eval/b-a/comparison.html").exists()


@pytest.mark.slow
def test_its_table_is_what_is_found(capsys):
    coverage.main()
    assert capsys.readouterr().out in PAGE
