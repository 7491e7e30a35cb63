"""A model as the user of RetailDesk over an endpoint: evaluation, resume, pass^k, audit, entry and verdict."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lmgym.backends.user.endings import STOP
from lmgym.board import entry as entries
from lmgym.env.registry import build
from lmgym.evaluation import report as reports
from lmgym.tasks.retail_desk.customer import ScriptedCustomer, instructions
from lmgym.tasks.retail_desk.env import CUSTOMER_PROMPT, GREETING
from tests.board.conftest import Commands
from tests.evaluation.server import serving


def customers() -> dict[str, Any]:
    """The goals of the test split by the instructions that a model gets."""
    with closing(build("retail_desk", split="test")) as env:
        goals = {}
        for index in range(100):
            env.reset(seed=0, options={"index": index})
            goals[instructions(env.unwrapped.goal, CUSTOMER_PROMPT)] = env.unwrapped.goal
    return goals


class Model:
    """An endpoint's model that plays the customer by the script; every tenth customer leaves at once."""

    def __init__(self) -> None:
        self.goals = customers()
        self.rude = set(list(self.goals)[::10])

    def __call__(self, body: dict[str, Any]) -> dict[str, Any]:
        text = "\n".join(message["content"] for message in body["messages"])
        script = next(each for each in self.goals if each in text)
        if script in self.rude:
            return {"role": "assistant", "content": STOP}
        customer = ScriptedCustomer(self.goals[script])
        heard = [message["content"] for message in body["messages"] if message["role"] == "user"]
        replies = [customer.reply(GREETING)]
        replies += [customer.reply(words.removeprefix("The desk: ")) for words in heard[1:]]
        return {"role": "assistant", "content": replies[-1]}


def test_passes_and_the_audit_are_reported(lmgym: Commands) -> None:
    with serving(Model()) as server:
        words = ("eval", "retail_desk", "--split", "test", "--model", "oracle", "--seat", f"user={server.model}")
        lmgym(*words, "--episodes", "12", "--tries", "2", "--quiet", "--out", "run")
    report = reports.read(Path("run"))
    rude = sum(outcome.index % 10 == 0 for outcome in report.outcomes) / len(report.outcomes)
    assert 0 < rude < 0.5
    statistics = reports.statistics(report)
    assert statistics["success"]["mean"] == pytest.approx(1 - rude)
    assert statistics["figures"]["user_early_stop"]["mean"] == pytest.approx(rude)
    assert statistics["figures"]["failed_by_user"]["mean"] == pytest.approx(rude)
    assert statistics["figures"]["failed_by_agent"]["mean"] == 0.0
    assert [row["k"] for row in statistics["passes"]] == [1, 2]
    assert "failed by user" in Path("run/report.md").read_text().lower()


@pytest.mark.slow
def test_a_run_resumes_and_its_entry_verifies_without_the_model(lmgym: Commands) -> None:
    with serving(Model()) as server:
        words = ("eval", "retail_desk", "--model", "oracle", "--seat", f"user={server.model}", "--standard", "--quiet")
        lmgym(*words, "--out", "run", "--budget-episodes", "40")
        first = server.requests
        lmgym(*words, "--out", "run", "--resume")
        account = json.loads(Path("run/calls.json").read_text())
        assert first < account["replies"] == server.requests  # nothing was asked twice
    lmgym("submit", "run", "--author", "A. Uthor", "--name", "clerk")
    (path,) = entries.all_paths(Path("leaderboards/entries"))
    entry = entries.read(path)
    assert (entry.user, set(entry.seats)) == ("user: endpoint: fake", {"agent", "user"})
    assert "verified" in lmgym("verify", str(path), "--workers", "1")
