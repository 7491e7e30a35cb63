"""The commands `lmgym compare` and `lmgym power`."""

from __future__ import annotations

import json

import pytest

from lmgym.evaluation import report as reports
from tests.command import command
from tests.evaluation.reports import report

PLANTED = "\x1b[2J\x1b]8;;https://example.org\x07[red]<script>"


@pytest.fixture
def runs(tmp_path):
    reports.write(tmp_path / "a", report([[1, 0], [0, 0], [1, 1], [0, 0]] * 8, policy=PLANTED))
    reports.write(tmp_path / "b", report([[1, 1], [0, 1], [1, 1], [0, 0]] * 8))
    return [str(tmp_path / name) for name in ("a", "b")]


def test_compare_prints_and_writes_the_difference(monkeypatch, capsys, runs, tmp_path):
    monkeypatch.setenv("COLUMNS", "200")
    assert command("compare", *runs, "--out", str(tmp_path / "c")) == 0
    printed = capsys.readouterr().out
    assert "+0.250" in printed
    assert "16 / 0" in printed
    assert "\x1b" not in printed
    assert "[red]" in printed
    found = json.loads((tmp_path / "c" / "comparison.json").read_text())["tasks"][0]
    assert found["success"]["p"] == pytest.approx(2 / 2**16)
    assert "<script>" not in (tmp_path / "c" / "comparison.html").read_text()
    assert "<script>" not in (tmp_path / "c" / "comparison.md").read_text()


def test_power_plans_from_a_pilot(capsys, runs):
    assert command("power", *runs, "--difference", "0.1", "--tries", "1,4") == 0
    printed = capsys.readouterr().out
    assert "success 0.375" in printed
    assert "of the pilot, 32 instances" in " ".join(printed.split())
    assert command("power", "--difference", "0.1", "--success", "0.4") == 0


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("compare", "no/run", "no/run"), "has a report.json"),
        (("power", "no/run"), "no/run has no report.json"),
        (("power", "--difference", "0"), "must be within (0, 1]"),
        (("power", "--tries", "1,x"), "--tries takes numbers"),
    ],
)
def test_an_error_is_one_line(capsys, words, line):
    assert command(*words) == 2
    printed = capsys.readouterr()
    assert line in printed.err
    assert printed.err.count("\n") == 1


def test_pass_k_is_printed_and_refused_beyond_the_tries(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    run = ("eval", "guess_number", "--model", "demonstrator", "--episodes", "3", "--tries", "2", "--quiet")
    assert command(*run, "--k", "3", "--out", "refused") == 2
    message = "neither pass@3 nor pass^3 can be estimated without bias from 2 tries of an instance"
    assert message in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "refused").exists()
    assert command(*run, "--k", "2", "--out", "shown") == 0
    printed = capsys.readouterr().out
    assert "pass@2 1.0000, 95 % interval" in printed
    assert "pass^2 1.0000, 95 % interval" in printed
    assert command(*run, "--k", "2", "--out", "cut", "--budget-episodes", "3") == 0
    assert "neither pass@2 nor pass^2 can be estimated" in " ".join(capsys.readouterr().out.split())
