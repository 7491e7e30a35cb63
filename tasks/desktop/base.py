"""The part that tasks on a desktop share: observations, actions, the life of the desktop."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Callable, Sequence
from importlib import resources
from string import Template
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.desktop import dialects, view
from lmgym.backends.desktop.inputs import Coordinates, Input, InvalidAction, check, corners, perform, pixel, scales
from lmgym.backends.desktop.pool import shared_pool
from lmgym.backends.desktop.session import SIZE, Desktop
from lmgym.backends.desktop.tree import TreeNode
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.errors import BackendError
from lmgym.tasks.desktop.parsing import parse

Points = tuple[tuple[float, float], ...]
UNITS = {"pixel": "pixels", "unit": "shares of the screen, from 0 to 1", "thousand": "thousandths of the screen"}
OBSERVE, PIXELS = ("axtree", "names", "none"), ("none", "screenshot", "som")


class DesktopEnv(TextEnv):
    """A task on a desktop; subclasses open it and judge its end."""

    prompt = "prompt.md"  # file of the first observation's template

    def __init__(
        self,
        *,
        observe: str = "axtree",
        listed: bool = True,
        pixels: str = "none",
        coordinates: Coordinates = "pixel",
        screen: tuple[int, int] = SIZE,
        **common: Any,
    ) -> None:
        """Choose the observations.

        Args:
            observe: "axtree" shows the accessibility tree, "names" the same without places and sizes, "none" the titles
                of windows only.
            listed: show the list of actions in the first observation.
            pixels: "screenshot" adds a picture of the screen, "som" one with marks, "none" nothing.
            coordinates: units of places in actions: "pixel", "unit" (0 to 1) or "thousand" (0 to 1000).
            screen: width and height of the screen, in pixels.
            common: options of every task: split, others, render_mode.
        """
        if pixels != "none":
            self.PICTURES = Images(screen[1], screen[0])  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.check_choices(observe=(observe, OBSERVE), pixels=(pixels, PIXELS))
        self.check_choices(coordinates=(coordinates, get_args(Coordinates)))
        self.observe, self.listed, self.pixels, self.screen = observe, listed, pixels, screen
        self.coordinates: Coordinates = coordinates
        self._desktop: Desktop | None = None
        self._elements: list[TreeNode] | None = None

    def ended(self, how: str) -> float:
        """Return the score of an episode that the policy ended by "done" or "fail"."""
        raise NotImplementedError

    def parsed(self, action: str) -> list[Input]:
        """Return the inputs of an action; raise InvalidAction if there are none."""
        return parse(action)

    def begin_with(self, furnish: Callable[[Desktop], object], goal: str) -> Reply:
        """Take a desktop, let `furnish` reset it and start applications, and return the first observation."""
        if self._desktop is None or not self._desktop.usable or not self._desktop.owned:
            self.close()
            self._desktop = shared_pool().take(self.screen)
        try:
            furnish(self.desktop)
        except BackendError:
            self.discard()
            raise
        self._elements = None
        reply = self._reply("")
        if not self.listed:
            reply.text = f"Task: {goal}\n\n{reply.text}"
            return reply
        prompt = Template(resources.files(__package__).joinpath(self.prompt).read_text(encoding="utf-8"))
        actions = "\n".join(f"{name}{_arguments(name)}: {call.__doc__}" for name, call in dialects.OWN.items())
        reply.text = prompt.substitute(actions=actions, goal=goal, screen=reply.text, units=UNITS[self.coordinates])
        return reply

    def act(self, action: str) -> Reply:
        """Perform an action; done and fail end the episode."""
        try:
            inputs = [self._located(each) for each in self.parsed(action)]
            check(inputs, self.desktop)
        except InvalidAction as error:
            return self._reply(f"Error: {error}\n\n", valid=False)
        points = tuple(point for each in inputs for point in each.points if not each.relative and each.kind != "zoom")
        region = inputs[-1].points if inputs[-1].kind == "zoom" else ()
        try:
            for each in inputs:
                if each.kind in ("done", "fail"):
                    score = self.ended(each.kind)
                    picture = self._pictures()
                    return Reply("The episode is over.", done=True, score=score, reward=score, images=picture)
                perform(each, self.desktop)
            self._elements = None
            return self._reply("", points=points, region=region)
        except BackendError:
            self.discard()
            raise

    def pointing(self, x: float, y: float) -> str:
        """Return the action that clicks a pixel."""
        across, down = scales(self.coordinates, self.screen)
        return f"click(x={round(x / across, 4)}, y={round(y / down, 4)})"

    def pressing(self, keys: Sequence[str]) -> str:
        """Return the action that types characters or presses one combination."""
        if all(len(key) == 1 for key in keys):
            return f"type(text={json.dumps(''.join(keys), ensure_ascii=False)})"
        return f"hotkey(keys={json.dumps(keys[0].lower())})"

    def clicking(self, number: int) -> str:
        """Return the action that clicks an element: by its number if its place is not shown."""
        if self.observe == "names":
            return f"click(element={number})"
        return self.pointing(*self.elements[number].centre)

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

    def _located(self, each: Input) -> Input:
        """Return an input with its places in pixels."""
        if each.element is not None:
            if not 0 <= each.element < len(self.elements):
                raise InvalidAction(f"there is no element {each.element}; they are 0 to {len(self.elements) - 1}")
            x, y = self.elements[each.element].centre
            each = dataclasses.replace(each, element=None, points=((float(x), float(y)),))
            return dataclasses.replace(each, points=(pixel(each.points[0], "pixel", self.desktop.size),))
        if each.kind == "zoom":
            return dataclasses.replace(each, points=corners(each, self.coordinates, self.desktop.size))
        if each.relative:
            across, down = scales(self.coordinates, self.desktop.size)
            return dataclasses.replace(each, points=tuple((x * across, y * down) for x, y in each.points))
        points = tuple(pixel(point, self.coordinates, self.desktop.size) for point in each.points)
        return dataclasses.replace(each, points=points)

    def _reply(self, before: str, *, valid: bool = True, points: Points = (), region: Points = ()) -> Reply:
        text = view.window_list(self.desktop.windows(), self.desktop.display.focused())
        if self.observe != "none":
            text += f"\n\n{view.describe(self.elements, places=self.observe == 'axtree')}"
        return Reply(before + text, images=self._pictures(region), valid=valid, points=points)

    def _pictures(self, region: Points = ()) -> tuple[NDArray[np.uint8], ...]:
        """Return the picture of the screen, or of a region between two corners in the same size."""
        if self.pixels == "none":
            return ()
        picture = self.desktop.screenshot()
        if self.pixels == "som":
            picture = view.marked(picture, self.elements)
        return (view.enlarged(picture, *region) if region else picture,)


def _arguments(name: str) -> str:
    """Return a call's arguments, as a prompt shows them."""
    parameters = inspect.signature(dialects.OWN[name]).parameters.values()
    described = (each.name if each.default is each.empty else f"{each.name}={each.default!r}" for each in parameters)
    return f"({', '.join(described)})"
