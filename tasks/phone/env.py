"""Requests on the phone, seen as a list of elements, as a screenshot, or as both."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from string import Template
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from lmgym.backends.browser.context import ActionRefused
from lmgym.backends.browser.gate import Request, Response, Sites
from lmgym.backends.browser.session import BrowserSession
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.tasks.phone import SPEC
from lmgym.tasks.phone.actions import DESCRIPTIONS, PhoneAction, parse, written
from lmgym.tasks.phone.goals import plain
from lmgym.tasks.phone.moves import PhoneElement, PhoneView, play
from lmgym.tasks.phone.pages import HEIGHT, WIDTH
from lmgym.tasks.phone.server import APPS, HOME, PhoneServer
from lmgym.tasks.phone.state import TODAY, furnished
from lmgym.tasks.phone.templates import TEMPLATES

STREAM = {"train": 81, "test": 82}
OBSERVE, PIXELS = ("elements", "none"), ("none", "screenshot")
SECOND = 1_000  # milliseconds of the pages' clock
TOWARDS = {"up": (0, -1), "down": (0, 1), "left": (-1, 0), "right": (1, 0)}  # x and y


class PhoneTask(TextEnv):
    """A request on the phone; the score is 1 if the policy says that it is done and the phone is as asked."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        template: str = "",
        observe: str = "elements",
        pixels: str = "none",
        places: bool = False,
        **common: Any,
    ) -> None:
        """Choose requests and observations.

        Args:
            template: one template of requests, such as "add_contact"; "" for all templates in turn.
            observe: "elements" lists the elements on the screen, "none" names the app's address only.
            pixels: "screenshot" adds a picture of the screen, "none" nothing.
            places: True adds the box of each element, in pixels.
            common: options of every task: split, others, render_mode.
        """
        if pixels != "none":
            self.PICTURES = Images(HEIGHT, WIDTH)  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.check_choices(template=(template, ("", *TEMPLATES)), observe=(observe, OBSERVE), pixels=(pixels, PIXELS))
        self.templates = [template] if template else list(TEMPLATES)
        self.observe, self.pixels, self.places = observe, pixels, places
        self.window = BrowserSession(Sites({HOME: self._serve}), sets=("coord", "nav"), size=(WIDTH, HEIGHT))
        self.phone: PhoneServer | None = None
        self.answered = ""  # the last answer to the user
        self._view: PhoneView | None = None

    def begin(self, index: int) -> Reply:
        """Draw the phone's contents and a request, and show the home screen."""
        state = furnished([STREAM[self.split], index, 0])
        draw = TEMPLATES[self.templates[index % len(self.templates)]]
        self.goal = draw(state.copy(), np.random.default_rng([STREAM[self.split], index, 1]))
        self.phone, self.answered, self._view = PhoneServer(state), "", None
        self.window.open(HOME)
        reply = self._reply("")
        prompt = Template(resources.files(__package__).joinpath("prompt.md").read_text(encoding="utf-8"))
        reply.text = prompt.substitute(
            width=WIDTH,
            height=HEIGHT,
            actions="\n".join(f"{example}: {meaning}" for example, meaning in DESCRIPTIONS.items()),
            today=TODAY,
            apps=", ".join(APPS),
            goal=self.goal.text,
            screen=reply.text,
        )
        return reply

    def act(self, action: str) -> Reply:
        """Perform one action; a status ends the episode."""
        try:
            parsed = parse(action)
            point = self._located(parsed)
            if parsed.kind == "status":
                score = self._judged(parsed.text)
                return Reply("The episode is over.", done=True, score=score, reward=score, images=self._pictures())
            wrong = self._perform(parsed, point)
        except ActionRefused as error:
            self.window.wait()
            wrong, point = str(error), None
        self._view = None
        points = () if point is None or wrong else (point,)
        return self._reply(f"Error: {wrong}\n\n" if wrong else "", valid=not wrong, points=points)

    def oracle(self) -> Iterator[str]:
        """Yield the actions of the request's plan, and the status."""
        yield from play(self.goal.plan, self)
        yield written("status", goal_status="complete" if self.goal.feasible else "infeasible")

    def pointing(self, x: float, y: float) -> str:
        """Return the action that taps a pixel."""
        return written("click", x=round(x), y=round(y))

    def screenshot(self) -> NDArray[np.uint8]:
        """Return the screen, (height, width, 3)."""
        picture = self.window.look("none", "screenshot").picture
        assert picture is not None
        return picture

    def screen_text(self) -> str:
        """Return the elements on the screen, one per line."""
        return "\n".join(self._lines())

    def close(self) -> None:
        """Close the browser's context."""
        self.window.close()

    @property
    def view(self) -> PhoneView:
        """The screen as it is."""
        if self._view is None:
            script = resources.files(__package__).joinpath("elements.js").read_text(encoding="utf-8")
            seen = self.window.evaluate(script)
            elements = [PhoneElement(**each | {"box": tuple(each["box"])}) for each in seen["elements"]]
            self._view = PhoneView(elements, seen["above"], seen["below"])
        return self._view

    def _judged(self, status: str) -> float:
        """Return the score of a phone whose request the policy calls complete or infeasible."""
        if self.phone is None or (status == "complete") != self.goal.feasible:
            return 0.0
        right = not self.goal.answer or plain(self.answered) == plain(self.goal.answer)
        return float(right and self.phone.state.content() == self.goal.wanted)

    def _located(self, action: PhoneAction) -> tuple[float, float] | None:
        """Return the place that an action points to; refuse places off the screen."""
        if action.index is not None:
            if not 0 <= action.index < len(self.view.elements):
                raise ActionRefused(f"there is no element {action.index}; they are 0 to {len(self.view.elements) - 1}")
            return self.view.elements[action.index].centre
        if action.point is not None and not (0 <= action.point[0] < WIDTH and 0 <= action.point[1] < HEIGHT):
            raise ActionRefused(f"the screen has {WIDTH} by {HEIGHT} pixels; got {action.point}")
        return action.point

    def _perform(self, action: PhoneAction, point: tuple[float, float] | None) -> str:
        """Perform an action in the browser; return an error or ""."""
        if action.kind == "answer":
            self.answered = action.text
        for name, *arguments in self._calls(action, point):
            if wrong := self.window.do(name, arguments):
                return wrong
        return ""

    def _calls(self, action: PhoneAction, point: tuple[float, float] | None) -> list[tuple[Any, ...]]:
        """Return the browser's calls for an action. A long press is what Chromium on Android tells pages of it."""
        match action.kind:
            case "click":
                return [("mouse_click", *(point or ()))]
            case "double_tap":
                return [("mouse_dblclick", *(point or ()))]
            case "long_press":
                return [("mouse_click", *(point or ()), "right")]
            case "input_text":
                before = "Control+a" if action.clear else "End"
                calls: list[tuple[Any, ...]] = [("mouse_click", *(point or ())), ("keyboard_press", before)]
                return [*calls, ("keyboard_insert_text", action.text), ("keyboard_press", "Enter")]
            case "keyboard_enter":
                return [("keyboard_press", "Enter")]
            case "navigate_home":
                return [("goto", HOME)]
            case "navigate_back":
                return [("noop",) if self._path() == "/" else ("go_back",)]
            case "open_app":
                names = {name.casefold(): name for name in APPS}
                if action.text.casefold() not in names:
                    raise ActionRefused(f"there is no app {action.text[:50]!r}; the apps are {', '.join(APPS)}")
                return [("goto", f"{HOME}/{action.text.lower()}")]
            case "scroll" | "swipe":
                return [self._wheel(action, point)]
        return [("noop", SECOND)]

    def _wheel(self, action: PhoneAction, point: tuple[float, float] | None) -> tuple[Any, ...]:
        """Return the call that scrolls: half of the screen, or all of it by a swipe.

        As in AndroidWorld, a swipe up scrolls down, and one to the left scrolls to the left.
        """
        right, down = TOWARDS[action.text]
        share = 0.5
        if action.kind == "swipe":
            down, share = -down, 1.0
        x, y = point or (WIDTH / 2, HEIGHT / 2)
        return ("scroll_at", x, y, right * share * WIDTH, down * share * HEIGHT)

    def _path(self) -> str:
        return urlsplit(str(self.window.evaluate("() => location.href"))).path

    def _reply(self, before: str, *, valid: bool = True, points: tuple[tuple[float, float], ...] = ()) -> Reply:
        words = f"Screen: {self._path()}" if self.observe == "none" else self.screen_text()
        return Reply(before + words, images=self._pictures(), valid=valid, points=points)

    def _lines(self) -> Iterator[str]:
        for index, element in enumerate(self.view.elements):
            parts = [f"[{index}] {element.kind}"]
            if element.description:
                parts.append(f'"{element.description}":')
            parts.append(f'"{element.text}"')
            if element.checked is not None:
                parts.append("on" if element.checked else "off")
            if element.focused:
                parts.append("focused")
            if self.places:
                parts.append(f"at {','.join(map(str, element.box))}")
            yield " ".join(parts)
        if self.view.above or self.view.below:
            yield f"There is more {' and '.join(word for word in ('above', 'below') if getattr(self.view, word))}."

    def _pictures(self) -> tuple[NDArray[np.uint8], ...]:
        return () if self.pixels == "none" else (self.screenshot(),)

    def _serve(self, request: Request) -> Response:
        """Answer a request of the browser by the phone of the open episode."""
        if self.phone is None:
            raise RuntimeError("a request came before the first episode")
        return self.phone(request)
