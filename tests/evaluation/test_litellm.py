"""litellm against an endpoint on loopback, where it is installed: it does not get along with every other package."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest

from lmgym.evaluation import runner
from lmgym.policy.calls import Refused
from lmgym.policy.load import load_remote
from lmgym.policy.pace import Patience
from lmgym.rollout.engine import Engine

from .server import peek, serving

pytest.importorskip("litellm", reason="pip install 'lmgym[litellm]' in a venv of its own")
pytestmark = pytest.mark.filterwarnings("default")  # its own


def test_a_model_by_litellm_plays_through_failures(monkeypatch):
    plan = {1: "429 seconds", 3: "500", 5: "HTML", 7: "reset"}
    with serving(peek, plan=lambda number: plan.get(number, "")) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-litellm")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        policy = load_remote("litellm:openai/fake", patience=Patience(first=0.01))
        jobs = runner.episodes("test/Jars-v0", split="test", size=200, count=20, options={})
        report = runner.evaluate(policy, jobs, engine=Engine())
        policy.close()
    assert server.requests == sum(outcome.turns for outcome in report.outcomes) + len(plan)
    assert 0 < report.success.mean < 1
    assert all(outcome.tokens_in == 10 * outcome.turns for outcome in report.outcomes)
    assert not any(outcome.voided for outcome in report.outcomes)


def test_a_refusal_by_litellm_stops_the_run(monkeypatch):
    with serving(lambda body: {"status": 401, "error": {"message": "who are you"}}) as server:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-planted-litellm")
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        policy = load_remote("litellm:openai/fake")
        jobs = runner.episodes("test/Jars-v0", split="test", size=200, count=20, options={})
        with pytest.raises(Refused):
            runner.evaluate(policy, jobs, engine=Engine(concurrency=2))
        policy.close()
    assert server.requests <= 2


def test_our_prices_are_those_of_its_table():
    from litellm import model_cost

    dated = {"claude-opus-4": "claude-opus-4-20250514", "claude-sonnet-4": "claude-sonnet-4-20250514"}
    ours = json.loads((files("lmgym.evaluation") / "prices.json").read_text())["models"]
    for model, price in ours.items():
        name = model.rpartition("#")[2].removeprefix("anthropic:")
        theirs = model_cost[dated.get(name, name)]
        fields = ("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost")
        assert [theirs[field] * 1e6 for field in fields] == pytest.approx(list(price.values())), model
