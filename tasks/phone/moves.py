"""Moves of plans: actions that look at the screen for the element that they name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from lmgym.errors import BackendError
from lmgym.tasks.phone.actions import written

LOOKS = 30  # screens that a move looks at before it gives up


@dataclass(frozen=True, kw_only=True)
class PhoneElement:
    """An element on the screen."""

    kind: str  # class of Android, such as "Button"
    text: str  # of a field: its value
    description: str
    checked: bool | None  # of switches and choices
    focused: bool
    box: tuple[int, int, int, int]  # left, top, right, bottom, in pixels

    @property
    def centre(self) -> tuple[float, float]:
        """The middle of the box."""
        return (self.box[0] + self.box[2]) / 2, (self.box[1] + self.box[3]) / 2

    def named(self, name: str) -> bool:
        """Return True if this is the element's name, or the first line of its text."""
        return name == self.description or (not self.description and name == self.text.partition(" | ")[0])


@dataclass(frozen=True)
class PhoneView:
    """The elements on the screen, and the directions in which there is more."""

    elements: Sequence[PhoneElement]
    above: bool
    below: bool


class PhonePlayer(Protocol):
    """A phone whose screen a move can look at."""

    @property
    def view(self) -> PhoneView:
        """The screen as it is."""


Move = str | Callable[[PhonePlayer], Iterator[str]]


def on(name: str, kind: str, **fields: Any) -> Move:
    """Return a move that acts on the first element of this name, scrolling down to it; titles are passed over."""

    def move(phone: PhonePlayer) -> Iterator[str]:
        for _ in range(LOOKS):
            for index, element in list(enumerate(phone.view.elements))[1:]:
                if element.named(name):
                    yield written(kind, index=index, **fields)
                    return
            yield written("scroll", direction="down") if phone.view.below else written("wait")
        raise BackendError(f"the oracle finds no element {name!r} on the phone")

    return move


def tap(*names: str) -> tuple[Move, ...]:
    """Return moves that tap elements one after the other."""
    return tuple(on(name, "click") for name in names)


def app(name: str, *names: str) -> tuple[Move, ...]:
    """Return moves that open an app and tap elements in it."""
    return (written("open_app", app_name=name), *tap(*names))


def fill(label: str, words: str) -> Move:
    """Return a move that replaces a field's value."""
    return on(label, "input_text", text=words, clear_text=True)


def answer(words: str) -> Move:
    """Return the action that answers a question."""
    return written("answer", text=words)


def play(plan: Sequence[Move], phone: PhonePlayer) -> Iterator[str]:
    """Yield the actions of a plan."""
    for move in plan:
        if isinstance(move, str):
            yield move
        else:
            yield from move(phone)
