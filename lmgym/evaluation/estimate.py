"""Estimates of a run's calls, tokens and cost from a few episodes of the model, or of a free player of the task."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.evaluation.runner import Outcome
from lmgym.policy.base import Conversation
from lmgym.policy.scripted import Scripted
from lmgym.types import Completion, Message

PILOT = 3  # episodes
TOKEN = 4  # characters


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Expected size of a whole run, and the most it can take."""

    episodes: int
    calls: float
    tokens_in: float | None  # None: unknown
    tokens_out: float | None
    cost: float | None  # US dollars
    max_calls: int
    max_tokens_out: int


def estimate(pilot: Sequence[Outcome], episodes: int, *, max_turns: int, max_tokens: int, tries: int = 1) -> Estimate:
    """Estimate a run of `episodes` from its first ones; `max_tokens` limits one answer.

    Other seats are left out, and calls for summaries, whose tokens count.
    `tries` is the number of answers sampled at a turn, at most; their calls are counted as if a vote never ended early.
    """

    def total(name: str) -> float | None:
        values = [getattr(outcome, name) for outcome in pilot]
        return None if None in values else episodes / len(pilot) * sum(values)

    return Estimate(
        episodes=episodes,
        calls=tries * (total("turns") or 0.0),
        tokens_in=total("tokens_in"),
        tokens_out=total("tokens_out"),
        cost=total("cost"),
        max_calls=episodes * max_turns * tries,
        max_tokens_out=episodes * max_turns * tries * max_tokens,
    )


@dataclass(frozen=True)
class Weighed(Scripted):
    """A free policy whose conversations are counted as a model's tokens, one for every four characters."""

    costs: Callable[[Mapping[str, Any]], float | None] = lambda usage: None  # US dollars by usage
    tries: int = 1  # answers sampled at a turn

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, with estimated usage."""
        answers = []
        for conversation in conversations:
            text = self.answer(conversation)
            usage: dict[str, Any] = {
                "in": self.tries * (self.count(conversation.messages) + len(json.dumps(conversation.tools)) // TOKEN),
                "out": self.tries * (len(text) // TOKEN + 1),
            }
            cost = self.costs(usage)
            answers.append(Completion(text=text, usage=usage if cost is None else {**usage, "cost": cost}))
        return answers

    def count(self, messages: Sequence[Message]) -> int:
        """Estimate the tokens of `messages`."""
        return sum(len(message.text) // TOKEN + TOKEN for message in messages)
