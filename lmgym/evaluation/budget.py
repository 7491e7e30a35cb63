"""What a run may use up. Reaching a limit ends it cleanly; more may be allowed when it is resumed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from lmgym.errors import RecipeError


@dataclass(kw_only=True)
class Budget:
    """Limits, and what was used of them.

    Episodes, tokens and money count over all sessions of a run, time since the command began. Calls in flight count
    as much as the dearest so far, so that a limit is passed by the first calls of a run at most. A call whose figure
    nobody says could be of any size: it ends a run that has a limit on that figure.
    """

    episodes: int | None = None
    tokens: int | None = None  # prompts and answers, as the provider counts them
    cost: float | None = None  # US dollars
    seconds: float | None = None
    clock: Callable[[], float] = time.monotonic
    played: int = 0
    spent_tokens: int = 0
    spent_cost: float = 0.0
    flying: int = 0  # calls in flight
    unknown: set[str] = field(default_factory=set, init=False)  # figures that some call did not say
    _most_tokens: int = field(default=0, init=False)
    _most_cost: float = field(default=0.0, init=False)

    def __post_init__(self) -> None:
        for name in ("episodes", "tokens", "cost", "seconds"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise RecipeError(f"a budget must be more than 0; got {name} {limit}")
        self._begun = self.clock()

    def add(self, tokens: int | None, cost: float | None) -> None:
        """Count a call; None: nobody says how much it took."""
        self.unknown |= {name for name, figure in (("tokens", tokens), ("cost", cost)) if figure is None}
        self.spent_tokens += tokens or 0
        self.spent_cost += cost or 0.0
        self._most_tokens = max(self._most_tokens, tokens or 0)
        self._most_cost = max(self._most_cost, cost or 0.0)

    def reached(self) -> str:
        """Which limit does not allow another call; empty while all do."""
        if self.seconds is not None and self.clock() - self._begun >= self.seconds:
            return f"the budget of {self.seconds:g} seconds is used up"
        for name in ("tokens", "cost"):
            if name in self.unknown and getattr(self, name) is not None:
                return f"a reply does not say its {name}, so --budget-{name} cannot be kept: leave it out"
        pending = self.flying + 1 if self._most_tokens else 0
        if self.tokens is not None and self.spent_tokens + pending * self._most_tokens > self.tokens:
            return f"the budget of {self.tokens} tokens is used up: {self.spent_tokens} so far"
        pending = self.flying + 1 if self._most_cost else 0
        if self.cost is not None and self.spent_cost + pending * self._most_cost > self.cost:
            return f"the budget of ${self.cost:g} is used up: ${self.spent_cost:.4f} so far"
        return ""

    def full(self, begun: int) -> str:
        """Which limit does not allow another episode after `begun` of them; empty while all do."""
        if self.episodes is not None and begun >= self.episodes:
            return f"the budget of {self.episodes} episodes is used up"
        return self.reached()
