"""Play compiled TextWorld games: words from the Z-machine, commands and plans from TextWorld's own logic.

TextWorld's stock wrappers follow the logic at every step (4 ms); here the interpreter's trace is kept and followed only
when somebody asks, so that a step costs what the Z-machine takes (under 1 ms). Each game runs in a copy of the
interpreter of its own (jericho loads a copied library), so that live games do not disturb each other.
"""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmgym.errors import BackendError

if TYPE_CHECKING:
    from collections.abc import Iterator

WON, LOST = "*** The End ***", "*** You lost! ***"
UNKNOWN = "That's not a verb I recognise."
# Other characters reach the interpreter itself (a NUL or a leading backslash hangs it, a full stop starts a command).
COMMAND = re.compile(r"[A-Za-z0-9' -]{1,150}")
OUTSIDE = frozenset(  # verbs that leave the game's world: files, settings, the engine's own switches
    "quit q save restore restart verify version script transcript notify superbrief brief short verbose long normal "
    "nouns pronouns score enable disable restrict oops undo tw-print tw-trace-actions tw-extra-infos".split()
)
SWITCHES = ("tw-trace-actions", "tw-extra-infos score")
STATE_SWITCHES = ("tw-extra-infos description", "tw-extra-infos inventory")
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
    """What a game says to a command."""

    text: str
    acted: bool  # the game carried an action out
    points: int  # of the quests completed so far
    won: bool = False
    lost: bool = False


class TextGame:
    """One live game.

    Banner, prompt, status line, score lines and the closing menu are taken out of all texts. With `state`, every
    answer ends with what a look around and the inventory would say.
    """

    def __init__(self, story: Story, *, state: bool = False) -> None:
        self._story = story
        self._state = state
        self._over = False
        self._events: list[str] = []  # actions the logic has not followed yet
        self._logic: Logic | None = None
        with _guarded():
            self._frotz, raw = _interpreter(story.z8)
            for switch in SWITCHES + STATE_SWITCHES * state:
                self._frotz.step(switch)
        text = raw.rpartition("\n>")[0]
        self.opening = tidy(text[text.index("\n", text.rfind(BANNER)) :] if BANNER in text else text)

    @property
    def logic(self) -> Logic:
        """TextWorld's view of the game as it stands."""
        if self._logic is None:
            self._logic = Logic(self._story.game)
        for event in self._events:
            self._logic.follow(event)
        self._events.clear()
        return self._logic

    def step(self, command: str) -> Answer:
        """Give the game one command of its own language; any text may come."""
        if self._over:
            raise BackendError("this game is over; open it anew")
        if not playable(command):
            return Answer(UNKNOWN, acted=False, points=self._points)
        with _guarded():
            raw = self._frotz.step(command)[0]
            if self._frotz.frotz_lib.halted():
                raise BackendError(f"the interpreter stopped after {command!r}")
        return self._read(raw)

    def close(self) -> None:
        """Give the interpreter back."""
        self._frotz = None
        self._over = True

    _points = 0

    def _read(self, raw: str) -> Answer:
        asides: dict[str, str] = {name: words for name, words in ASIDE.findall(raw)}
        text = ASIDE.sub("", raw.rpartition("\n>")[0])
        done = [event.removesuffix(SUCCEEDED) for event in TRACE.findall(text) if event.endswith(SUCCEEDED)]
        self._events += [event for event in done if "(" not in event]  # in brackets: part of another action
        self._points = int(asides.get("score", self._points))
        text = SCORED.sub("", TRACE.sub("", text))
        won, lost = WON in text, LOST in text
        self._over = won or lost
        if self._over:
            text = text[: text.rindex("***") + 3]
        elif self._state:
            text = _with_state(text, asides)
        return Answer(tidy(text), bool(done), self._points, won, lost)


def playable(command: str) -> bool:
    """Whether the game's own language is spoken: one command, of letters, that stays within the game."""
    words = command.lower().split()
    return bool(words and COMMAND.fullmatch(command) and words[0] not in OUTSIDE and "then" not in words)


def tidy(text: str) -> str:
    """Return `text` without idle spaces and with one empty line between paragraphs at most."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _with_state(text: str, asides: dict[str, str]) -> str:
    """Add what a look around and the inventory would say, unless the answer says it."""
    parts = [tidy(text), *(tidy(TRACE.sub("", asides.get(name, ""))) for name in ("description", "inventory"))]
    return "\n\n".join(part for number, part in enumerate(parts) if part and not (number and part in parts[0]))


def _interpreter(z8: bytes) -> tuple[Any, str]:
    """Start a story in a fresh interpreter, which reads the file at the start only; also what it says first."""
    import jericho

    with tempfile.TemporaryDirectory(prefix="lmgym-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore", jericho.UnsupportedGameWarning)  # no scores by jericho; the game tells them
        path = Path(folder) / "story.z8"
        path.write_bytes(z8)
        frotz = jericho.FrotzEnv(str(path), 1)
        return frotz, frotz.reset()[0]


@contextmanager
def _guarded() -> Iterator[None]:
    """Raise what breaks in the interpreter as BackendError."""
    try:
        yield
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BackendError(f"the Z-machine failed: {type(error).__name__}: {error}") from error


class Logic:
    """The state of a game in TextWorld's logic: commands, plans and how far the quests are."""

    def __init__(self, game: str) -> None:
        from textworld.generator.game import Game, GameProgression
        from textworld.generator.inform7 import Inform7Game

        self.game = Game.deserialize(json.loads(game))
        self.inform = Inform7Game(self.game)
        self.now = GameProgression(self.game)
        self.lengths = [len(quest.winning_policy or ()) for quest in self.now.quest_progressions]

    def follow(self, event: str) -> None:
        """Apply an action the interpreter has carried out; one without effect on the logic changes nothing."""
        action = self.inform.detect_action(event, self.now.valid_actions)
        if action is not None:
            self.now.update(action)

    def commands(self) -> list[str]:
        """Return every command that makes sense now, sorted."""
        return sorted(set(self.inform.gen_commands_from_actions(self.now.valid_actions)))

    def plan(self) -> list[str]:
        """Return commands that win from here; empty where none are known."""
        return list(self.inform.gen_commands_from_actions(self.now.winning_policy or ()))

    def progress(self) -> float:
        """Return how much of the quests is done, in [0, 1]: 1 when won, 0 when they cannot be completed any more.

        Each quest counts by its points: in full when completed, else by the share of its first plan that is behind.
        """
        if self.now.failed:
            return 0.0
        quests = list(zip(self.now.quest_progressions, self.lengths, strict=True))
        total = sum(quest.quest.reward for quest, _ in quests)
        return float(sum(quest.quest.reward * _share(quest, length) for quest, length in quests) / total)

    @property
    def points(self) -> int:
        """Points of the game in all."""
        return int(self.game.max_score)


def _share(quest: Any, length: int) -> float:
    if quest.completed:
        return 1.0
    left = len(quest.winning_policy or ())
    return max(0.0, 1 - left / length) if left and length else 0.0
