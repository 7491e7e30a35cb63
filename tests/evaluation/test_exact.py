"""Exact figures of a policy: exploitability from its action probabilities."""

import math

import pytest
import torch

from lmgym.env.games.hidden import equilibrium, game_tree
from lmgym.env.games.state import uniform
from lmgym.env.registry import build
from lmgym.evaluation import report as reports
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.config import EvalConfig
from lmgym.evaluation.exact import exact_figures
from lmgym.evaluation.plan import EvalPlan
from lmgym.evaluation.runner import Report
from lmgym.policy.base import Conversation
from lmgym.policy.load import load_policy
from lmgym.policy.scripted import Scripted, random
from lmgym.types import Message


class TablePolicy:
    """Answers as a strategy says; the dialogue's text names the information set."""

    name, version, wants = "table", 0, frozenset()

    def __init__(self, task, strategy, legal=1.0):
        decisions = build(task).unwrapped.decisions()
        nodes, states = [game_tree(build(task).unwrapped.ROOT)], {}
        while nodes:
            node = nodes.pop()
            nodes += node.children
            if node.player >= 0:
                states[node.view] = node.state
        assert decisions.keys() == states.keys()
        self.odds = {
            decision.dialogue: dict(zip(decision.actions, strategy(states[view]), strict=True))
            for view, decision in decisions.items()
        }
        self.legal = legal

    def act(self, conversations):
        raise NotImplementedError

    def count(self, messages):
        return 0

    def session(self):
        raise NotImplementedError

    def answer_logprobs(self, conversations, answers):
        dialogues = [tuple(message.text for message in each.messages) for each in conversations]
        odds = [self.odds[dialogue][answer] for dialogue, answer in zip(dialogues, answers, strict=True)]
        return [math.log(self.legal * chance) if chance else -math.inf for chance in odds]


def test_random_actions_are_as_exploitable_as_openspiel_says():
    figures = exact_figures("kuhn_poker", TablePolicy("kuhn_poker", uniform, legal=0.5))
    assert figures == pytest.approx({"exploitability": 11 / 24, "legal_answers": 0.5}, abs=1e-9)
    seated = exact_figures("kuhn_poker", TablePolicy("kuhn_poker", uniform), options={"seat": "first"})
    assert seated["exploitability"] == pytest.approx(11 / 24)


def test_the_equilibrium_cannot_be_exploited():
    figures = exact_figures("kuhn_poker", TablePolicy("kuhn_poker", equilibrium("lmgym.tasks.kuhn_poker")))
    assert figures["exploitability"] < 0.001
    assert figures["legal_answers"] == pytest.approx(1.0)


def test_other_tasks_and_policies_have_no_exact_figures():
    policy = TablePolicy("kuhn_poker", uniform)
    assert exact_figures("guess_number", policy) == {}
    assert exact_figures("kuhn_poker", load_policy("random")) == {}


class UniformPolicy(Scripted):
    """Plays at random and gives every answer the same odds."""

    def answer_logprobs(self, conversations, answers):
        return [-math.log(3)] * len(answers)


def evaluate(tmp_path, **options):
    config = EvalConfig(tasks=["leduc_poker"], model="tiny", episodes=4, out=tmp_path / "run", **options)
    policy = UniformPolicy("uniform", random().answer, wants=random().wants)
    budget = Budget(episodes=config.budget_episodes)
    with EvalPlan.of(config, "leduc_poker").open(budget, lambda *_, **__: policy, {}) as evaluation:
        return evaluation.play().exact


def test_evaluations_of_leduc_poker_have_exact_figures(tmp_path):
    assert evaluate(tmp_path)["exploitability"] == pytest.approx(2.373611111, abs=1e-9)


def test_evaluations_that_end_early_have_no_exact_figures(tmp_path):
    assert evaluate(tmp_path, budget_episodes=2) == {}


def test_the_odds_of_answers_are_the_models_own():
    policy = load_policy("tiny:1m")
    talks = [Conversation(messages=(Message(role="user", text=text),)) for text in ("check or bet?", "x" * 40)]
    answers = ["check", "a longer answer"]
    for conversation, answer, logprob in zip(talks, answers, policy.answer_logprobs(talks, answers), strict=True):
        prompt = policy.prompt(conversation)[0]
        ids = policy.template.answer(answer, prompt)
        with torch.no_grad():
            logits = policy.model(torch.tensor([prompt + ids])).logits[0].double()
        rows = torch.log_softmax(logits, -1)[len(prompt) - 1 : -1]
        assert logprob == pytest.approx(float(rows[range(len(ids)), ids].sum()), abs=1e-4 * len(ids))


def test_a_report_shows_them():
    report = Report(task="lmgym/KuhnPoker-v0", split="test", policy="x", exact={"exploitability": 0.25})
    assert Report.from_state(report.state_dict()) == report
    figures = reports.statistics(report)
    assert ["exploitability", "0.25000", "", "exact"] in reports.rows(figures)
