"""Goals at the portal: forms, tables, a cart; judged by the server's state and by the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lmgym.backends.browser.gate import Sites
from lmgym.env.env import Reply
from lmgym.tasks.webforms import SPEC
from lmgym.tasks.webforms.browsing import Browsing
from lmgym.tasks.webforms.goals import KINDS, FormGoal, drawn
from lmgym.tasks.webforms.portal import HOME, Portal, furnished

STREAM = {"train": 61, "test": 62}


class WebForms(Browsing):
    """A goal at the portal; the score is 1 if the server's state and the answer are exactly right."""

    SPEC = SPEC

    def __init__(self, *, kind: str = "", **common: Any) -> None:
        """Choose the kind of goal.

        Args:
            kind: one kind of goal, such as "cart" or "travel"; "" for all kinds.
            common: options of every browser task: observe, pixels, places, actions, tick, split.
        """
        super().__init__(**common)
        self.check_choices(kind=(kind, ("", *KINDS)))
        self.kind = kind

    def begin(self, index: int) -> Reply:
        """Furnish the portal and draw a goal."""
        state = furnished([STREAM[self.split], index, 0])
        rng = np.random.default_rng([STREAM[self.split], index, 1])
        self.task_goal: FormGoal = KINDS[self.kind](state.copy(), rng) if self.kind else drawn(state, rng)
        self.portal = Portal(state)
        return self.begin_at(Sites({HOME: self.portal}), [f"{HOME}/"], self.task_goal.text)

    def judged(self) -> float:
        """Return 1 if state and answer are right, else 0."""
        answer = self.browser.messages[-1] if self.browser.messages else None
        return float(self.task_goal.reached(self.portal.state, answer, self.browser.infeasible is not None))

    def oracle(self) -> Iterator[str]:
        """Yield the calls of the goal's plan."""
        return self.played(self.task_goal.plan, HOME)
