"""Play compiled TextWorld games: text from the Z-machine, commands and plans from TextWorld's logic.

TextWorld's wrappers update the logic at every step (4 ms). Here the interpreter's trace is stored and applied only on
demand, so a step costs what the Z-machine takes (under 1 ms). Each game has its own copy of the interpreter (jericho
loads a copied library), so live games do not disturb each other.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
import tempfile
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.errors import BackendError

ONE_AT_A_TIME = threading.Lock()  # TextWorld's parser and generators are shared by the whole process
WON, LOST = "*** The End ***", "*** You lost! ***"
UNKNOWN = "That's not a verb I recognise."
# Other characters control the interpreter (NUL or a leading backslash hangs it, a full stop starts a command).
COMMAND = re.compile(r"[A-Za-z0-9' -]{1,150}")
OUTSIDE = frozenset(  # commands to the interpreter instead of the game
    {
        *("quit", "q", "save", "restore", "restart", "undo", "oops", "verify", "version", "script", "transcript"),
        *("notify", "superbrief", "brief", "short", "verbose", "long", "normal", "nouns", "pronouns", "score"),
        *("enable", "disable", "restrict", "tw-print", "tw-trace-actions", "tw-extra-infos"),  # the engine's switches
    }
)
SWITCHES = ("tw-trace-actions", "tw-extra-infos score")
STATE = ("description", "inventory")
STATE_SWITCHES = tuple(f"tw-extra-infos {name}" for name in STATE)
ASIDE = re.compile(r"<(score|moves|description|inventory)>\n?(.*?)</\1>\n?", re.DOTALL)
TRACE = re.compile(r"\[([^\[\]]*)\]\n?")
SUCCEEDED = " - succeeded"
SCORED = re.compile(r"Your score (?:has just gone up|changed) by [^\n]*points?\.\n?")
BANNER = "$$"  # of the letters drawn before the first words


@dataclass(frozen=True)
class Story:
    """A compiled game."""

    z8: bytes  # what the Z-machine runs
    game: str  # JSON: TextWorld's description of the same game


@dataclass(frozen=True)
class Answer:
    """A game's answer to a command."""

    text: str
    understood: bool  # as an action, be it one that failed
    points: int  # of the quests completed so far
    won: bool = False
    lost: bool = False


class TextGame:
    """A game in play.

    Banner, prompt, status line, score lines and the closing menu are removed from all texts. With `state`, every
    answer ends with the output of `look` and `inventory`.
    """

    def __init__(self, story: Story, *, state: bool = False) -> None:
        self._story = story
        self._over = False
        self.points = 0  # of the quests completed so far
        self._asides: dict[str, str] = {}  # output of the switches, by name
        self._events: list[str] = []  # actions not yet applied to the logic
        self._logic: Logic | None = None
        with _guarded():
            self._frotz, raw = _interpreter(story.z8)
            for switch in SWITCHES + STATE_SWITCHES * state:
                self._asides.update(ASIDE.findall(self._frotz.step(switch)[0]))
        _, _, text = raw.rpartition("\n>")[0].rpartition(BANNER)
        self.opening = self._with_state(text)

    @property
    def logic(self) -> Logic:
        """TextWorld's logic in the present state."""
        if self._logic is None:
            self._logic = Logic(self._story.game)
        for event in self._events:
            self._logic.follow(event)
        self._events.clear()
        return self._logic

    @cached_property
    def worth(self) -> int:
        """Points of all quests together."""
        return sum(quest["reward"] for quest in json.loads(self._story.game)["quests"])

    def step(self, command: str) -> Answer:
        """Send a command to the game; any text is accepted."""
        if self._over:
            raise BackendError("this game is over; open it anew")
        if not playable(command):
            return Answer(UNKNOWN, understood=False, points=self.points)
        with _guarded():
            raw = self._frotz.step(command)[0]
            if self._frotz.frotz_lib.halted():
                raise BackendError(f"the interpreter stopped after {command!r}")
        return self._read(raw)

    def close(self) -> None:
        """Release the interpreter."""
        self._frotz = None
        self._over = True

    def _read(self, raw: str) -> Answer:
        self._asides.update(ASIDE.findall(raw))
        text = ASIDE.sub("", raw.rpartition("\n>")[0])
        trace = TRACE.findall(text)
        done = [event.removesuffix(SUCCEEDED) for event in trace if event.endswith(SUCCEEDED)]
        self._events += [event for event in done if "(" not in event]  # in brackets: part of another action
        self.points = int(self._asides.get("score", self.points))
        text = SCORED.sub("", TRACE.sub("", text))
        won, lost = WON in text, LOST in text
        self._over = won or lost
        reply = tidy(text[: text.rindex("***") + 3]) if self._over else self._with_state(text)
        return Answer(reply, bool(trace), self.points, won, lost)

    def _with_state(self, text: str) -> str:
        """Append the room and the inventory if the state view is on and the text lacks them."""
        reply = tidy(text)
        state = [tidy(TRACE.sub("", self._asides.get(name, ""))) for name in STATE]
        return "\n\n".join([reply, *(words for words in state if words not in reply)]).strip()


def playable(command: str) -> bool:
    """Return True for a single command of plain characters that stays within the game."""
    words = command.lower().split()
    return bool(words and COMMAND.fullmatch(command) and words[0] not in OUTSIDE and "then" not in words)


def tidy(text: str) -> str:
    """Return `text` without superfluous spaces and with at most one empty line between paragraphs."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _interpreter(z8: bytes) -> tuple[Any, str]:
    """Return a new interpreter, which reads the story file only at the start, and its first output."""
    if z8[:1] != b"\x08":  # it would end the process
        raise BackendError(f"this is no story of the Z-machine, version 8, but {len(z8)} bytes from {z8[:8]!r}")
    import jericho  # type: ignore[import-untyped]  # ships no types

    with tempfile.TemporaryDirectory(prefix="lmgym-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", jericho.UnsupportedGameWarning)  # no scores by jericho; the game tells them
        path = Path(folder) / "story.z8"
        path.write_bytes(z8)
        frotz = jericho.FrotzEnv(str(path), 1)
        return frotz, frotz.reset()[0]


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Preserve the process's random state and warning filters, which TextWorld changes, even on import."""
    with ONE_AT_A_TIME, warnings.catch_warnings():
        python, arrays = random.getstate(), np.random.get_state()
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            random.setstate(python)
            np.random.set_state(arrays)


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """Turn the interpreter's errors into BackendError."""
    try:
        yield
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BackendError(f"the Z-machine failed: {type(error).__name__}: {error}") from error


class Logic:
    """The state of a game in TextWorld's logic: commands, plans and progress of the quests."""

    def __init__(self, game: str) -> None:
        with undisturbed():
            from textworld.generator.game import Game, GameProgression
            from textworld.generator.inform7 import Inform7Game

            self.game = Game.deserialize(json.loads(game))
        self.inform = Inform7Game(self.game)
        self.now = GameProgression(self.game)
        self.lengths = [len(quest.winning_policy or ()) for quest in self.now.quest_progressions]

    def follow(self, event: str) -> None:
        """Apply an action that the interpreter has carried out."""
        if event.startswith("entering "):
            action = self._through(event.removeprefix("entering ").removeprefix("the "))
        else:
            action = self.inform.detect_action(event, self.now.valid_actions)
        if action is not None:
            self.now.update(action)

    def _through(self, door: str) -> Any:
        """Return the `go` action for entering a door, which the logic does not know."""
        facts = [fact for fact in self.now.state.facts if fact.name == "link"]
        behind = {fact.arguments[2] for fact in facts if self.game.infos[fact.arguments[1].name].name == door}
        ways = [action for action in self.now.valid_actions if action.name.startswith("go/")]
        return next((way for way in ways if any(fact.arguments[-1] in behind for fact in way.added)), None)

    def commands(self) -> list[str]:
        """Return the commands that are possible now, sorted."""
        return sorted(set(self.inform.gen_commands_from_actions(self.now.valid_actions)))

    def plan(self) -> list[str]:
        """Return commands that win from here; empty if there are none."""
        return list(self.inform.gen_commands_from_actions(self.now.winning_policy or ()))

    def progress(self) -> float:
        """Return the progress of the quests in [0, 1]: 1 when won, 0 when they cannot be completed any more.

        Each quest is weighted by its points and counts the completed share of its initial plan.
        """
        if self.now.failed:
            return 0.0
        quests = list(zip(self.now.quest_progressions, self.lengths, strict=True))
        total = sum(quest.quest.reward for quest, _ in quests)
        return float(sum(quest.quest.reward * _share(quest, length) for quest, length in quests) / total)


def _share(quest: Any, length: int) -> float:
    if quest.completed:
        return 1.0
    left = len(quest.winning_policy or ())
    return max(0.0, 1 - left / length) if left and length else 0.0
