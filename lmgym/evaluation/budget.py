"""Budgets of a run. A run that reaches one stops cleanly, and can be resumed with a larger one."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lmgym.errors import RecipeError


@dataclass(kw_only=True)
class Budget:
    """Limits of a run, and how much of them is spent.

    Episodes, tokens and cost count over all sessions of a run, seconds since the command started. Each call in flight
    counts as much as the most expensive one so far, so that a limit is exceeded only by the first calls of a run, of
    which no size is known, and by calls that cost more than all before them. A call of unknown size ends a run that has
    a limit on that figure.
    """

    episodes: int | None = None
    tokens: int | None = None  # prompts and answers, counted by the provider
    cost: float | None = None  # US dollars
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    played: int = 0
    spent_tokens: int = 0
    spent_cost: float = 0.0
    flying: int = 0  # calls in flight
    unknown: set[str] = field(default_factory=set, init=False)  # figures that some reply left out
    _most_tokens: int = field(default=0, init=False)
    _most_cost: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        for name in ("episodes", "tokens", "cost", "seconds"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise RecipeError(f"a budget must be more than 0; got {name} {limit}")
        self._started = self.clock()

    def add(self, tokens: int | None, cost: float | None) -> None:
        """Count a call; None is an unknown figure."""
        self.unknown |= {name for name, figure in (("tokens", tokens), ("cost", cost)) if figure is None}
        self.spent_tokens += tokens or 0
        self.spent_cost += cost or 0.0
        self._most_tokens = max(self._most_tokens, tokens or 0)
        self._most_cost = max(self._most_cost, cost or 0.0)

    def reached(self) -> str:
        """Return the message of the limit that forbids another call; empty if none does."""
        if self.seconds is not None and self.clock() - self._started >= self.seconds:
            return f"the budget of {self.seconds:g} seconds is used up"
        for name in ("tokens", "cost"):
            if name in self.unknown and getattr(self, name) is not None:
                return f"a reply does not report its {name}, which --budget-{name} needs: leave the option out"
        pending = self.flying + 1 if self._most_tokens else 0
        if self.tokens is not None and self.spent_tokens + pending * self._most_tokens > self.tokens:
            return f"the budget of {self.tokens} tokens is used up: {self.spent_tokens} so far; raise --budget-tokens"
        pending = self.flying + 1 if self._most_cost else 0
        if self.cost is not None and self.spent_cost + pending * self._most_cost > self.cost:
            return f"the budget of ${self.cost:g} is used up: ${self.spent_cost:.4f} so far; raise --budget-cost"
        return ""

    def full(self, started: int) -> str:
        """Return the message of the limit that forbids another episode after `started`; empty if none does."""
        if self.episodes is not None and started >= self.episodes:
            return f"the budget of {self.episodes} episodes is used up; raise --budget-episodes"
        return self.reached()
