"""Evaluations against failing servers: nothing is lost, nothing is counted twice, no score changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lmgym.evaluation import report as reports
from lmgym.evaluation import runner
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.play import Evaluation
from lmgym.evaluation.policies import Policies
from lmgym.evaluation.record import CALLS, Record
from lmgym.evaluation.runner import Outcome, Report
from lmgym.evaluation.settings import Settings
from lmgym.policy.endpoints.pace import RetryLimits
from lmgym.policy.load import load_remote
from lmgym.rollout.engine import Engine

from .server import FAULTS, Server, any_fault, peek, serving

QUICK = RetryLimits(timeout=60.0, attempts=20, first_wait=0.01, longest_wait=0.1, longest_retry_after=0.3, total=600)
DRIPPING = replace(QUICK, timeout=8.0)  # less than a drip takes


def play(folder: Path, server: Server, task: str, count: int, *, concurrency: int = 200, **more: Any):
    """Evaluate on record; return the report, the account of calls and the evaluation."""
    record = Record(folder, {"settings": {}}, resume=more.pop("resume", False))
    budget = Budget(**more.pop("budget", {}))
    calls = Calls(folder / CALLS, budget)
    policy = load_remote(server.model, retries=more.pop("retries", QUICK), concurrency=concurrency, ledger=calls)
    size = runner.size_of(task, "test", {})
    evaluation = Evaluation(
        record=record,
        policies=Policies(agent=policy, remote=[policy]),
        jobs=runner.episodes(runner.id_of(task), split="test", size=size, count=count, options={}),
        engine=Engine(concurrency=concurrency),
        budget=budget,
        settings=Settings(task=task, split="test", instances=()),
        calls=calls,
    )
    try:
        report = evaluation.play()
        return report, calls.account(), evaluation
    finally:
        policy.close()
        calls.close()
        record.close()


def timeless(report: Report) -> list[Outcome]:
    return [replace(outcome, seconds=0.0) for outcome in report.outcomes]


@pytest.mark.slow
def test_faults_of_the_server_change_no_score(tmp_path):
    with serving(peek, together=200) as clean:  # the first replies wait until two hundred requests are there
        expected, account, _ = play(tmp_path / "clean", clean, "test/Jars-v0", 200)
    assert clean.most == 200
    assert len(expected.outcomes) == 200
    assert 0 < expected.success.mean < 1
    assert account["exchanges"] == account["replies"] == clean.requests == sum(o.turns for o in expected.outcomes)

    with serving(peek, plan=any_fault(0.25, storm=range(100, 150))) as faulty:
        found, account, evaluation = play(tmp_path / "faulty", faulty, "test/Jars-v0", 200, retries=DRIPPING)
    assert evaluation.error is None
    assert found.stopped == ""
    assert timeless(found) == timeless(expected)
    assert account["exchanges"] == faulty.requests == sum(account["by_outcome"].values())  # every call is accounted for
    assert account["replies"] == account["by_outcome"]["reply"] == clean.requests  # and none was answered twice
    assert account["exchanges"] - account["replies"] >= sum(faulty.faults.values()) > 150
    assert set(faulty.faults) == {*FAULTS, ""}
    assert account["possibly_paid_twice"] == []
    assert reports.read(tmp_path / "faulty").outcomes == found.outcomes
