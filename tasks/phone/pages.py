"""Parts of the phone's screens. An element that `data-e` names is listed to the policy, under that class of Android."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from importlib import resources
from string import Template

WIDTH, HEIGHT = 360, 640  # of the screen, in pixels


@dataclass(frozen=True)
class Visit:
    """A request to an app."""

    path: tuple[str, ...]  # parts of the address after the app's
    values: Mapping[str, str]  # what was typed, stripped
    posted: bool

    def get(self, name: str) -> str:
        """Return a value; "" if there is none."""
        return self.values.get(name, "")


@dataclass(frozen=True)
class PhoneScreen:
    """A screen: its title, what can be scrolled, and what stays below it."""

    title: str
    body: str
    below: str = ""


@dataclass(frozen=True)
class Redirect:
    """The address of the screen to show instead."""

    path: str


Answer = PhoneScreen | Redirect
GONE = PhoneScreen("Not found", "<p data-e='TextView'>There is nothing here.</p>")


def page(screen: PhoneScreen) -> bytes:
    """Return a screen in the phone's frame."""
    frame = Template(resources.files(__package__).joinpath("frame.html").read_text(encoding="utf-8"))
    return frame.substitute(title=escape(screen.title), body=screen.body, below=screen.below).encode()


def text(words: str, *, hold: str = "", double: str = "", kind: str = "") -> str:
    """Return a text; `hold` is the address that a long press opens, `double` the one that a double tap posts to."""
    return f"<p data-e='TextView' class='{kind}'{_gestures(hold, double)}>{escape(words)}</p>"


def link(words: str, path: str, *, note: str = "", hold: str = "") -> str:
    """Return a row that opens an address, with a second line."""
    below = f"<small>{escape(note)}</small>" if note else ""
    return f"<a data-e='Button' class='row' href='{escape(path)}'{_gestures(hold)}>{escape(words)}{below}</a>"


def button(words: str, path: str, **fields: str) -> str:
    """Return a button that posts fields to an address."""
    hidden = "".join(f"<input type='hidden' name='{name}' value='{escape(value)}'>" for name, value in fields.items())
    return (
        f"<form method='post' action='{escape(path)}'>{hidden}<button data-e='Button'>{escape(words)}</button></form>"
    )


def switch(words: str, path: str, on: bool, kind: str = "Switch") -> str:
    """Return a switch, or one choice of several, that posts to an address."""
    role = "switch" if kind == "Switch" else "radio"
    return (
        f"<form method='post' action='{escape(path)}'><button data-e='{kind}' class='row' role='{role}' "
        f"aria-checked='{str(on).lower()}'>{escape(words)}</button></form>"
    )


def choice(words: str, path: str, chosen: bool) -> str:
    """Return one choice of several."""
    return switch(words, path, chosen, "RadioButton")


def entry(label: str, name: str, value: str = "") -> str:
    """Return a labelled text field."""
    return (
        f"<label>{escape(label)}<input data-e='EditText' aria-label='{escape(label)}' name='{name}' "
        f"value='{escape(value)}' autocomplete='off'></label>"
    )


def form(path: str, *entries: str, submit: str = "Save", wrong: str = "") -> str:
    """Return a form with its button and, if there is one, an error."""
    notice = text(wrong, kind="wrong") if wrong else ""
    return (
        f"{notice}<form method='post' action='{escape(path)}'>{''.join(entries)}"
        f"<button data-e='Button'>{escape(submit)}</button></form>"
    )


def search(path: str, words: str) -> str:
    """Return a search field, which searches when Enter is pressed."""
    return f"<form action='{path}' data-search>{entry('Search', 'q', words)}</form>"


def price(cents: int) -> str:
    """Return an amount."""
    return f"${cents // 100}.{cents % 100:02d}"


def _gestures(hold: str = "", double: str = "") -> str:
    held = f" data-hold='{escape(hold)}'" if hold else ""
    return held + (f" data-double='{escape(double)}'" if double else "")
