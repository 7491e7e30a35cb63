"""The Python API, `python -m lmgym` and `lmgym --version`."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import lmgym
from lmgym.errors import RecipeError
from lmgym.evaluation import report as reports
from lmgym.policy.base import SimpleSession
from lmgym.policy.load import load_policy
from lmgym.types import Completion
from tests.command import command


def test_evaluate_returns_the_report_that_eval_writes(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    report = lmgym.evaluate("guess_number", "demonstrator", episodes=5, tries=2, options={"highest": 8})
    assert list(tmp_path.iterdir()) == []
    words = ("--episodes", "5", "--tries", "2", "--option", "highest=8", "--out", "run", "--quiet")
    assert command("eval", "guess_number", "--model", "demonstrator", *words) == 0
    written = reports.read(tmp_path / "run")
    assert [one.score for one in report.outcomes] == [one.score for one in written.outcomes]
    assert (report.identity, report.settings) == (written.identity, written.settings)


def test_evaluate_takes_a_policy_object_and_keeps_a_record(tmp_path):
    class Fifty:
        name, version, wants = "fifty", 0, frozenset()

        def act(self, conversations):
            return [Completion(text="<guess>50</guess>") for _ in conversations]

        def count(self, messages):
            return 0

        def session(self):
            return SimpleSession(self)

    report = lmgym.evaluate("guess_number", Fifty(), episodes=3, out=tmp_path / "run", budget_episodes=2)
    assert (report.policy, len(report.outcomes)) == ("fifty", 2)
    assert "2 episodes is used up" in report.stopped
    assert len(lmgym.evaluate("guess_number", Fifty(), episodes=3, out=tmp_path / "run", resume=True).outcomes) == 3
    assert json.loads((tmp_path / "run/run.json").read_text())["policy"] == "object:fifty"
    assert lmgym.evaluate("guess_number", load_policy("oracle"), episodes=3).success.mean == 1.0


def test_evaluate_refuses_what_eval_refuses():
    with pytest.raises(RecipeError, match="must be at least 1; got 0"):
        lmgym.evaluate("guess_number", "oracle", episodes=0)
    with pytest.raises(AttributeError, match="no attribute 'evaluat'"):
        _ = lmgym.evaluat


@pytest.mark.parametrize("words", [["-m", "lmgym"], ["-c", "from lmgym.cli import main; main()"]])
def test_the_version_is_printed(words):
    done = subprocess.run([sys.executable, *words, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"lmgym {lmgym.__version__}\n"
