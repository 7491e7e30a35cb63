"""Estimates of a run's calls, tokens and cost from a few episodes of the model, or of a free player of the task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.evaluation.runner import Outcome
from lmgym.policy.base import Conversation, Policy, SimpleSession
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


def estimate(pilot: Sequence[Outcome], episodes: int, *, max_turns: int, max_tokens: int) -> Estimate:
    """Estimate a run of `episodes` from its first ones; `max_tokens` limits one answer."""

    def total(name: str) -> float | None:
        values = [getattr(outcome, name) for outcome in pilot]
        return None if None in values else episodes / len(pilot) * sum(values)

    return Estimate(
        episodes=episodes,
        calls=total("turns") or 0.0,
        tokens_in=total("tokens_in"),
        tokens_out=total("tokens_out"),
        cost=total("cost"),
        max_calls=episodes * max_turns,
        max_tokens_out=episodes * max_turns * max_tokens,
    )


@dataclass
class Weighed:
    """A free policy whose conversations are counted as a model's tokens, one for every four characters."""

    policy: Policy
    costs: Callable[[Mapping[str, Any]], float | None]  # US dollars by usage

    @property
    def name(self) -> str:
        """Name of the wrapped policy."""
        return self.policy.name

    @property
    def version(self) -> int:
        """Version of the wrapped policy."""
        return self.policy.version

    @property
    def wants(self) -> frozenset[str]:
        """Facts that the wrapped policy reads."""
        return self.policy.wants

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, with estimated usage."""
        answers = self.policy.act(conversations)
        return [
            Completion(text=answer.text, usage=self._usage(conversation, answer.text))
            for conversation, answer in zip(conversations, answers, strict=True)
        ]

    def count(self, messages: Sequence[Message]) -> int:
        """Estimate the tokens of `messages`."""
        return sum(len(message.text) // TOKEN + TOKEN for message in messages)

    def session(self) -> SimpleSession:
        """Return a session that answers at once."""
        return SimpleSession(self)

    def _usage(self, conversation: Conversation, answer: str) -> dict[str, Any]:
        usage = {"in": self.count(conversation.messages), "out": len(answer) // TOKEN + 1}
        cost = self.costs(usage)
        return usage if cost is None else {**usage, "cost": cost}
