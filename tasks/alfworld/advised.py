"""ALFWorld with a second seat: an adviser names a strategy before each command (EPO, arXiv 2502.12486)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from lmgym.env.env import Reply
from lmgym.tasks.alfworld import ADVISED
from lmgym.tasks.alfworld.env import ALFWorld

ADVISER = "adviser"
LONGEST = 120  # characters of a strategy that the agent reads
PARTICULARS = re.compile(r" \d+.*", re.DOTALL)  # of a command, from the first object's number on
CHANGED = re.compile(r"\n\[(\d+)\] .*\n> .*\nYou (?!arrive|open|close|are )")  # answer, command and its result


class AdvisedALFWorld(ALFWorld):
    """A household task in which the agent reads the adviser's strategy below each observation; both earn the same."""

    SPEC = ADVISED

    def __init__(self, **common: Any) -> None:
        super().__init__(**common)
        self._advising, self._scene = False, ""  # the adviser is on turn; the observation that the agent gets next

    def begin(self, index: int) -> Reply:
        """Open household `index` for the adviser."""
        return self._to_adviser(super().begin(index).text)

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Open the contents of a `game.tw-pddl` file for the adviser."""
        return self._to_adviser(super().load(instance).text)

    def act(self, action: str) -> Reply:
        """Hand a strategy to the agent, or play the agent's command."""
        if self._advising:
            self._advising, words = False, " ".join(action.split())[:LONGEST]
            return Reply(f"{self._scene}\nStrategy: {words or '(none)'}", valid=bool(words))
        reply = super().act(action)
        if reply.done:  # won
            return Reply(reply.text, reward=1.0, done=True, score=reply.score, others={ADVISER: 1.0})
        return self._to_adviser(reply.text, command=" ".join(action.split())[:LONGEST], valid=reply.valid)

    def prompts(self) -> dict[str, str]:
        """Return the adviser's system prompt."""
        return {ADVISER: resources.files(__package__).joinpath("adviser.md").read_text(encoding="utf-8").strip()}

    def scripted(self, seat: str) -> str:
        """Return the strategy of the demonstrator's next command."""
        return strategy(next(super().demonstrator(), "look"))

    def admissible(self) -> list[str]:
        """Return the strategies or the commands that the game takes now, sorted."""
        commands = super().admissible()
        return sorted({strategy(command) for command in commands}) if self._advising else commands

    def oracle(self) -> Iterator[str]:
        """Yield the actions of the seats in turn: scripted strategies and ALFWorld's commands."""
        return self._in_turn(super().oracle())

    def demonstrator(self) -> Iterator[str]:
        """Yield scripted strategies and the demonstrator's commands in turn."""
        return self._in_turn(super().demonstrator())

    def _in_turn(self, commands: Iterator[str]) -> Iterator[str]:
        for command in commands:
            if self._advising:
                yield self.scripted(ADVISER)
            yield command

    def _to_adviser(self, text: str, *, command: str = "", valid: bool = True) -> Reply:
        self._advising, self._scene = True, text
        return Reply(f"> {command}\n{text}" if command else text, valid=valid, seat=ADVISER)


def strategy(command: str) -> str:
    """Return a command without its particulars: "take apple" of "take apple 1 from fridge 1"."""
    return PARTICULARS.sub("", command)


def changes(messages: Sequence[Mapping[str, str]]) -> str:
    """Return the numbers of an adviser's answers after which the player moved or treated a thing.

    The last message has the episode as the adviser saw it, its answers numbered in brackets.
    """
    return " ".join(CHANGED.findall(messages[-1]["content"]))
