"""Goals on a desktop, seen as an accessibility tree, as a screenshot, or as both."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lmgym.backends.desktop.session import Desktop
from lmgym.env.env import Reply
from lmgym.tasks.desktop import SPEC
from lmgym.tasks.desktop.base import DesktopEnv
from lmgym.tasks.desktop.families import FAMILIES, LEVEL, LEVELS, LIGHT, programs
from lmgym.tasks.desktop.goals import snapshot
from lmgym.tasks.desktop.moves import play

STREAM = {"train": 71, "test": 72}


class DesktopTask(DesktopEnv):
    """A goal on a desktop; the score is 1 if files and settings are right in the end."""

    SPEC = SPEC

    def __init__(self, *, family: str = "", level: int = 0, applications: str = "all", **common: Any) -> None:
        """Choose goals.

        Args:
            family: one family of goals, such as "append_line"; "" for all families in turn.
            level: 1 for families that take 2 to 4 actions, 2 for 5 to 10, 3 for 11 to 25; 0 for all.
            applications: "light" for goals in the terminal and the text editor alone, "all" for all.
            common: options of every desktop task: observe, pixels, coordinates, screen, split.
        """
        super().__init__(**common)
        self.check_choices(family=(family, ("", *FAMILIES)), level=(level, (0, *LEVELS)))
        self.check_choices(applications=(applications, ("all", "light")))
        chosen = [name for name in FAMILIES if level in (0, LEVEL[name])]
        if applications == "light":
            chosen = [name for name in chosen if programs(FAMILIES[name]) <= LIGHT]
        self.families = [family] if family else chosen

    def begin(self, index: int) -> Reply:
        """Draw a goal, restore the desktop and start the goal's applications."""
        name = self.families[index % len(self.families)]
        self.goal = FAMILIES[name](np.random.default_rng([STREAM[self.split], index]))

        def furnish(desktop: Desktop) -> None:
            desktop.reset(self.goal.furnish, self.goal.launches)

        reply = self.begin_with(furnish, self.goal.text)
        self._before = snapshot(self.desktop.home)
        return reply

    def ended(self, how: str) -> float:
        """Return the score of the present state, or of a report that a goal cannot be reached."""
        return self._judged() if how == "done" else float(not self.goal.feasible)

    def score_if_cut(self) -> float:
        """Return the score of the present state: as in OSWorld, a cut episode is judged too."""
        return self._judged()

    def oracle(self) -> Iterator[str]:
        """Yield the actions of the goal's plan, by keys and by the names of elements."""
        yield from play(self.goal.plan, self)
        yield "done()" if self.goal.feasible else "fail()"

    def fingerprint(self) -> str:
        """Return the goal's words and files."""
        return repr((self.goal.text, list(self.goal.files)))

    def _judged(self) -> float:
        home = self.desktop.home
        try:
            if not self.goal.feasible or not self.goal.reached(home):
                return 0.0
        except OSError:  # a policy may take the right to read from its folders
            return 0.0
        after = snapshot(home)
        changed = {name for name in {*self._before, *after} if self._before.get(name) != after.get(name)}
        return float(changed <= self.goal.changes)
