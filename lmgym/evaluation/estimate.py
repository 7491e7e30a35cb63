"""What a run will take before it is paid for: from a few episodes of the model, or of a player that costs nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lmgym.evaluation.runner import Outcome
from lmgym.policy.base import Conversation, Policy, SimpleSession
from lmgym.types import Completion, Message

PILOT = 3  # episodes
LETTERS = 4  # of a token


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Of a whole run."""

    episodes: int
    turns: float
    tokens_in: float | None  # None: unknown
    tokens_out: float | None
    cost: float | None  # US dollars; None: unknown


def estimate(pilot: Sequence[Outcome], episodes: int) -> Estimate:
    """The run of `episodes` whose first ones went as in `pilot`."""
    share = episodes / len(pilot)
    return Estimate(
        episodes=episodes,
        turns=share * sum(outcome.turns for outcome in pilot),
        tokens_in=_scaled([outcome.tokens_in for outcome in pilot], share),
        tokens_out=_scaled([outcome.tokens_out for outcome in pilot], share),
        cost=_scaled([outcome.cost for outcome in pilot], share),
    )


def _scaled(values: Sequence[float | None], share: float) -> float | None:
    """Their sum for the whole run; None where one of them is not known."""
    known = [value for value in values if value is not None]
    return share * sum(known) if len(known) == len(values) else None


@dataclass
class Weighed:
    """Another policy, whose conversations are weighed as if a model had read them: a token every four characters."""

    policy: Policy
    costs: Callable[[Mapping[str, Any]], float | None]  # US dollars by usage

    @property
    def name(self) -> str:
        """The other policy's."""
        return self.policy.name

    @property
    def version(self) -> int:
        """The other policy's."""
        return self.policy.version

    @property
    def wants(self) -> frozenset[str]:
        """The other policy's."""
        return self.policy.wants

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, with the tokens that it would take."""
        said = self.policy.act(conversations)
        return [self._weighed(each, answer) for each, answer in zip(conversations, said, strict=True)]

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens that `messages` would take."""
        return sum(len(message.text) // LETTERS + LETTERS for message in messages)

    def session(self) -> SimpleSession:
        """A session that answers at once."""
        return SimpleSession(self)

    def _weighed(self, conversation: Conversation, said: Completion) -> Completion:
        usage = {"in": self.count(conversation.messages), "out": len(said.text) // LETTERS + 1}
        cost = self.costs(usage)
        return Completion(text=said.text, usage=usage if cost is None else {**usage, "cost": cost})


def ceiling(episodes: int, turns: int, max_tokens: int) -> Mapping[str, int]:
    """What no run can pass: calls and tokens of answers."""
    return {"calls": episodes * turns, "tokens_out": episodes * turns * max_tokens}
