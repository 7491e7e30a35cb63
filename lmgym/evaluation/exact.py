"""Exact figures of a policy, from its action probabilities instead of episodes: exploitability in small games."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from lmgym.env.registry import build, find, load
from lmgym.policy.base import Conversation, Policy, WeighsAnswers
from lmgym.types import Message

ROWS = 64  # answers that are scored at a time


def exact_figures(
    task: str,
    policy: Policy,
    *,
    options: Mapping[str, Any] | None = None,
    prompt: str | None = None,
) -> dict[str, float]:
    """Return the exact figures of a policy on a task by name; empty if the task has none or the policy tells no odds.

    `exploitability` is what a best response wins on average, in chips, against the policy in both seats. The odds of an
    action are those of its name as an answer, scaled so that the legal ones sum to 1; `legal_answers` is the mean of
    that sum before, over information sets. `prompt` is the system prompt.
    """
    spec = find(task)
    if not isinstance(policy, WeighsAnswers) or not hasattr(load(spec), "decisions"):
        return {}
    env = build(task, **{"split": next(iter(spec.splits)), **(options or {})}).unwrapped
    decisions = env.decisions()
    conversations, answers = [], []
    for decision in decisions.values():
        conversation = Conversation(messages=_messages(decision.dialogue, prompt))
        conversations += [conversation] * len(decision.actions)
        answers += decision.actions
    odds: list[float] = []
    for first in range(0, len(answers), ROWS):
        rows = slice(first, first + ROWS)
        odds += map(math.exp, policy.answer_logprobs(conversations[rows], answers[rows]))
    chances, legal = {}, []
    for view, decision in decisions.items():
        own, odds = odds[: len(decision.actions)], odds[len(decision.actions) :]
        legal.append(math.fsum(own))
        chances[view] = [each / legal[-1] for each in own] if legal[-1] else [1 / len(own)] * len(own)
    return {"exploitability": env.exploitability(chances), "legal_answers": math.fsum(legal) / len(legal)}


def _messages(dialogue: tuple[str, ...], prompt: str | None) -> tuple[Message, ...]:
    system = [] if prompt is None else [Message(role="system", text=prompt)]
    spoken = [Message(role="assistant" if n % 2 else "user", text=text) for n, text in enumerate(dialogue)]
    return (*system, *spoken)
