"""litellm, in its own venv, reaches an endpoint on loopback and plays what our own client of that endpoint plays."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from lmgym.evaluation import runner
from lmgym.evaluation.runner import Report
from lmgym.policy.load import load_remote
from lmgym.rollout.engine import Engine
from tests.evaluation import jars
from tests.evaluation.server import peek, serving
from tests.plugins import installed

from .venvs import play

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
KEY = "sk-planted-litellm"
PLAYED = ("index", "attempt", "score", "success", "turns", "invalid", "stop", "tokens_in", "tokens_out", "voided")


@pytest.fixture
def reaching(monkeypatch):
    """Has litellm's process ask a server."""

    def reach(server):
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)

    return reach


def outcomes(report):
    return [[getattr(outcome, name) for name in PLAYED] for outcome in report.outcomes]


def by_our_client(count, folder):
    """The outcomes of the same model at the same kind of server, asked without litellm, and the number of requests."""
    with serving(peek) as server, installed(jars, folder):
        policy = load_remote(server.model)
        jobs = runner.episodes("test/Jars-v0", split="test", size=200, count=count, options={})
        report = runner.evaluate(policy, jobs, engine=Engine())
        policy.close()
    return outcomes(report), server.requests


def test_a_model_by_litellm_plays_through_failures_what_our_client_plays(reaching, tmp_path):
    plan = {1: "429 seconds", 3: "500", 5: "HTML", 7: "reset"}
    with serving(peek, plan=lambda number: plan.get(number, "")) as server:
        reaching(server)
        found = play("litellm", "litellm_play.py", {"count": 20, "concurrency": 20})
    report = Report.from_state(found["report"])
    expected, requests = by_our_client(20, tmp_path)
    assert outcomes(report) == expected
    assert server.requests == requests + len(plan)
    assert 0 < report.success.mean < 1
    assert KEY not in json.dumps(found)


def test_a_refusal_by_litellm_stops_the_run(reaching):
    with serving(lambda body: {"status": 401, "error": {"message": "who are you"}}) as server:
        reaching(server)
        found = play("litellm", "litellm_play.py", {"count": 20, "concurrency": 2})
    assert "401" in found["refused"]
    assert 1 <= server.requests <= 2


def test_our_prices_are_those_of_its_table():
    hosted = {f"claude-{kind}-4": f"anthropic.claude-{kind}-4-20250514-v1:0" for kind in ("opus", "sonnet")}
    ours = json.loads((files("lmgym.evaluation") / "prices.json").read_text())["models"]
    names = {model: model.rpartition("#")[2].removeprefix("anthropic:") for model in ours}
    names = {model: hosted.get(name, name) for model, name in names.items()}
    theirs = play("litellm", "litellm_play.py", {"models": sorted(set(names.values()))})
    for model, price in ours.items():
        assert [each * 1e6 for each in theirs[names[model]]] == pytest.approx(list(price.values())), model
