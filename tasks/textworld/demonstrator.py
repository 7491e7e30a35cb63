"""A player that explores everywhere and knows only what the game has shown."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lmgym.env.env import TextEnv

ROOM = re.compile(r"-= (.+?) =-")
TAKE = re.compile(r"take (.+?)(?: from .+)?")
BACK = {"north": "south", "east": "west", "south": "north", "west": "east"}


@dataclass
class Search:
    """A depth-first search of rooms and containers for the object that a goal names."""

    goal: str
    room: str = ""
    tried: dict[str, set[str]] = field(default_factory=dict)  # directions gone from each room
    path: list[str] = field(default_factory=list)  # directions from the first room to this one
    going: str = ""  # the direction just gone

    def next_action(self, text: str, commands: list[str]) -> str:
        """Return what to do after `shown`, given what can be done; "" where all is searched."""
        titles = ROOM.findall(text)
        if not titles and not self.room:
            return "look"
        retreat = self._arrive(titles[-1] if titles else self.room)
        return self._wanted(commands) or retreat or self._opening(commands) or self._exit(commands) or self._return()

    def _arrive(self, room: str) -> str:
        """Record where the last step led; return the way back from a room that was visited before."""
        going, self.going = self.going, ""
        visited, moved = room in self.tried, bool(going) and room != self.room
        self.room = room
        ways = self.tried.setdefault(room, set())
        if moved:
            ways.add(BACK[going])
            if visited:
                return f"go {BACK[going]}"
            self.path.append(going)
        return ""

    def _wanted(self, commands: list[str]) -> str:
        """Return the command that takes what the goal names."""
        named = [(take[1], take[0]) for command in commands if (take := TAKE.fullmatch(command))]
        return max(((len(name), command) for name, command in named if self._names(name)), default=(0, ""))[1]

    def _names(self, thing: str) -> bool:
        return bool(re.search(rf"\b(?:the|a|an|some) {re.escape(thing)}\b", self.goal, re.IGNORECASE))

    def _opening(self, commands: list[str]) -> str:
        return next((command for command in commands if command.startswith(("open ", "unlock "))), "")

    def _exit(self, commands: list[str]) -> str:
        fresh = [way for way in BACK if f"go {way}" in commands and way not in self.tried[self.room]]
        if not fresh:
            return ""
        self.going = fresh[0]
        self.tried[self.room].add(self.going)
        return f"go {self.going}"

    def _return(self) -> str:
        return f"go {BACK[self.path.pop()]}" if self.path else ""


def explore(env: TextEnv, goal: str) -> Iterator[str]:
    """Yield commands until the object that the goal names is taken, or everything has been searched.

    What is openable and where one can go stands in the room's text; it is read off the admissible commands.
    """
    search = Search(goal)
    while action := search.next_action(env.latest_text, env.admissible() or []):
        yield action
