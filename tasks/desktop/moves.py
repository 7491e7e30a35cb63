"""Moves of oracles: actions that are written down, and those that look at the screen first."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from lmgym.backends.desktop.tree import TreeNode
from lmgym.errors import BackendError

LOOKS = 5  # times that a move looks for an element before it gives up
HOME = "/home/user"


class DesktopView(Protocol):
    """The elements that show, and the actions that click them."""

    @property
    def elements(self) -> list[TreeNode]:
        """The elements on the screen."""

    def clicking(self, number: int) -> str:
        """Return the action that clicks an element."""


Move = str | Callable[[DesktopView], Iterator[str]]


def call(name: str, *arguments: Any) -> str:
    """Return an action."""
    return f"{name}({', '.join(map(repr, arguments))})"


def key(keys: str, count: int = 1) -> str:
    """Return the action that presses a key or keys joined by "+"."""
    if "+" in keys:
        return call("hotkey", keys)
    return call("press", keys) if count == 1 else call("press", keys, count)


def typed(text: str) -> str:
    """Return the action that types a text."""
    return call("type", text)


SAVE = key("ctrl+s")


def click(name: str, role: str = "") -> Move:
    """Return a move that clicks the first element of this name, and role if one is given."""

    def move(screen: DesktopView) -> Iterator[str]:
        for _ in range(LOOKS):
            for number, node in enumerate(screen.elements):
                if node.name.replace("_", "").strip() == name and role in ("", node.role):
                    yield screen.clicking(number)
                    return
            yield call("wait", 1)
        raise BackendError(f"the oracle finds no {role or 'element'} {name!r} on the desktop")

    return move


def menu(letter: str, *names: str) -> tuple[Move, ...]:
    """Return moves that open the menu with a letter's mnemonic and click entries by their names."""
    return (key(f"alt+{letter}"), *(click(name) for name in names))


def shell(*commands: str) -> tuple[Move, ...]:
    """Return moves that run commands in a terminal."""
    return tuple(typed(f"{command}\n") for command in commands)


def cell(reference: str) -> tuple[Move, ...]:
    """Return moves that select a cell or a range of a sheet by its name box."""
    return (key("ctrl+shift+t"), typed(f"{reference}\n"))


def rewrite(text: str) -> tuple[Move, ...]:
    """Return moves that replace the whole text of an editor and save it."""
    return (key("ctrl+a"), typed(text), SAVE)


def play(plan: Sequence[Move], screen: DesktopView) -> Iterator[str]:
    """Yield the actions of a plan."""
    for move in plan:
        if isinstance(move, str):
            yield move
        else:
            yield from move(screen)
