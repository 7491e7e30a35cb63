"""Goals on a desktop, seen as an accessibility tree, as a screenshot, or as both."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from importlib import resources
from string import Template
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.desktop import dialects, view
from lmgym.backends.desktop.inputs import Coordinates, Input, InvalidAction, check, perform, pixel
from lmgym.backends.desktop.pool import shared_pool
from lmgym.backends.desktop.session import SIZE, Desktop
from lmgym.backends.desktop.tree import TreeNode
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.errors import BackendError
from lmgym.tasks.desktop import SPEC
from lmgym.tasks.desktop.families import FAMILIES, LEVEL, LEVELS
from lmgym.tasks.desktop.goals import snapshot
from lmgym.tasks.desktop.moves import play
from lmgym.tasks.desktop.parsing import parse

STREAM = {"train": 71, "test": 72}
UNITS = {"pixel": "pixels", "unit": "shares of the screen, from 0 to 1", "thousand": "thousandths of the screen"}
OBSERVE, PIXELS = ("axtree", "none"), ("none", "screenshot", "som")


class DesktopTask(TextEnv):
    """A goal on a desktop; the score is 1 if files and settings are right in the end."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        family: str = "",
        level: int = 0,
        observe: str = "axtree",
        pixels: str = "none",
        coordinates: Coordinates = "pixel",
        **common: Any,
    ) -> None:
        """Choose goals and observations.

        Args:
            family: one family of goals, such as "append_line"; "" for all families in turn.
            level: 1 for families that take 2 to 4 actions, 2 for 5 to 10, 3 for 11 to 25; 0 for all.
            observe: "axtree" shows the accessibility tree, "none" the titles of windows only.
            pixels: "screenshot" adds a picture of the screen, "som" one with marks, "none" nothing.
            coordinates: units of places in actions: "pixel", "unit" (0 to 1) or "thousand" (0 to 1000).
            common: options of every task: split, others, render_mode.
        """
        if pixels != "none":
            self.PICTURES = Images(SIZE[1], SIZE[0])  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.check_choices(family=(family, ("", *FAMILIES)), level=(level, (0, *LEVELS)), observe=(observe, OBSERVE))
        self.check_choices(pixels=(pixels, PIXELS), coordinates=(coordinates, get_args(Coordinates)))
        self.families = [family] if family else [name for name in FAMILIES if level in (0, LEVEL[name])]
        self.observe, self.pixels = observe, pixels
        self.coordinates: Coordinates = coordinates
        self._desktop: Desktop | None = None
        self._elements: list[TreeNode] | None = None

    def begin(self, index: int) -> Reply:
        """Draw a goal, restore the desktop and start the goal's applications."""
        name = self.families[index % len(self.families)]
        self.goal = FAMILIES[name](np.random.default_rng([STREAM[self.split], index]))
        if self._desktop is None or not self._desktop.alive or not self._desktop.owned:
            self.close()
            self._desktop = shared_pool().take()
        try:
            self.desktop.reset(self.goal.furnish, self.goal.launches)
        except BackendError:
            self.discard()
            raise
        self._before, self._elements = snapshot(self.desktop.home), None
        reply = self._reply("")
        prompt = Template(resources.files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))
        actions = "\n".join(f"{name}{_arguments(name)}: {call.__doc__}" for name, call in dialects.OWN.items())
        reply.text = prompt.substitute(
            actions=actions, goal=self.goal.text, screen=reply.text, units=UNITS[self.coordinates]
        )
        return reply

    def act(self, action: str) -> Reply:
        """Perform an action; done and fail end the episode."""
        try:
            inputs = [self._located(each) for each in parse(action)]
            check(inputs, self.desktop)
        except InvalidAction as error:
            return self._reply(f"Error: {error}\n\n", valid=False)
        points = tuple(point for each in inputs for point in each.points)
        try:
            for each in inputs:
                if each.kind in ("done", "fail"):
                    score = self._judged() if each.kind == "done" else float(not self.goal.feasible)
                    picture = self._pictures()
                    return Reply("The episode is over.", done=True, score=score, reward=score, images=picture)
                perform(each, self.desktop)
            self._elements = None
            return self._reply("", points=points)
        except BackendError:
            self.discard()
            raise

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

    def pointing(self, x: float, y: float) -> str:
        """Return the action that clicks a pixel."""
        scale = {"pixel": (1, 1), "unit": (SIZE[0] - 1, SIZE[1] - 1), "thousand": (SIZE[0] / 1000, SIZE[1] / 1000)}
        across, down = scale[self.coordinates]
        return f"click(x={round(x / across, 4)}, y={round(y / down, 4)})"

    def close(self) -> None:
        """Give the desktop back."""
        desktop, self._desktop = self._desktop, None
        if desktop is not None and desktop.owned:
            shared_pool().give_back(desktop)

    def discard(self) -> None:
        """End a desktop that failed, so that the next episode starts another."""
        desktop, self._desktop = self._desktop, None
        if desktop is not None:
            desktop.close()

    @property
    def desktop(self) -> Desktop:
        """The desktop of the open episode."""
        if self._desktop is None:
            raise BackendError("the desktop has ended; call reset() for another")
        return self._desktop

    @property
    def elements(self) -> list[TreeNode]:
        """The elements on the screen, in the order of their numbers."""
        if self._elements is None:
            self._elements = view.elements(self.desktop.tree(), self.desktop.size)
        return self._elements

    def _judged(self) -> float:
        home = self.desktop.home
        if not self.goal.feasible or not self.goal.reached(home):
            return 0.0
        after = snapshot(home)
        changed = {name for name in {*self._before, *after} if self._before.get(name) != after.get(name)}
        return float(changed <= self.goal.changes)

    def _located(self, each: Input) -> Input:
        """Return an input with its places in pixels."""
        if each.element is not None:
            if not 0 <= each.element < len(self.elements):
                raise InvalidAction(f"there is no element {each.element}; they are 0 to {len(self.elements) - 1}")
            x, y = self.elements[each.element].centre
            each = dataclasses.replace(each, element=None, points=((float(x), float(y)),))
            return dataclasses.replace(each, points=(pixel(each.points[0], "pixel", self.desktop.size),))
        points = tuple(pixel(point, self.coordinates, self.desktop.size) for point in each.points)
        return dataclasses.replace(each, points=points)

    def _reply(self, before: str, *, valid: bool = True, points: tuple[tuple[float, float], ...] = ()) -> Reply:
        text = view.window_list(self.desktop.windows(), self.desktop.display.focused())
        if self.observe == "axtree":
            text += f"\n\n{view.describe(self.elements)}"
        return Reply(before + text, images=self._pictures(), valid=valid, points=points)

    def _pictures(self) -> tuple[NDArray[np.uint8], ...]:
        if self.pixels == "none":
            return ()
        picture = self.desktop.screenshot()
        return (view.marked(picture, self.elements) if self.pixels == "som" else picture,)


def _arguments(name: str) -> str:
    """Return a call's arguments, as a prompt shows them."""
    parameters = inspect.signature(dialects.OWN[name]).parameters.values()
    described = (each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in parameters)
    return f"({', '.join(described)})"
