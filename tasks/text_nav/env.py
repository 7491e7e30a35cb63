"""Text-Nav of LMRL-Gym as an environment, played by the TextWorld engine."""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, ClassVar

from lmgym.backends.textgame import TextGame
from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.tasks.text_nav import SPEC, VARIANTS
from lmgym.tasks.text_nav.house import OPPOSITE, ROOMS, HouseGame, OfficialHouse, our_house

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
VIEWS = ("full", "partial")
TITLE = re.compile(r"^-= .+? =-\n?", re.MULTILINE)
LOOKING = ("examine", "look", "inventory")  # commands that the release leaves out of its list
FILE = "textnav_game.json"


class TextNav(TextEnv):
    """Put the stale food into the fridge and close it; 1 when done, 0 for everything else, eating the food included.

    `view="full"` says what one carries after every command, "partial" does not. Room titles are never shown.
    """

    SPEC: ClassVar[TaskSpec] = SPEC

    def __init__(self, *, view: str = "full", **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(view=(view, VIEWS))
        self.view = view
        self.game: TextGame | None = None

    def size(self) -> int:
        """Return the number of rooms: each is a start."""
        return len(ROOMS)

    def errand(self, index: int) -> HouseGame:
        """Return the game that starts in room number `index`."""
        return our_house(index)

    def begin(self, index: int) -> Reply:
        """Start in room number `index`."""
        self.close()
        errand = self.errand(index)
        self.food, self.fridge = errand.food, errand.fridge
        self.game = TextGame(errand.story)
        prompt = PROMPT.substitute(food=self.food, fridge=self.fridge)
        return Reply(f"{prompt}\n\n{self._described(self.game.opening)}")

    def act(self, action: str) -> Reply:
        """Play one command."""
        answer = self.begun(self.game).step(parse_command(action))
        over = answer.won or answer.lost
        return Reply(
            TITLE.sub("", answer.text) if over else self._described(answer.text),
            reward=float(answer.won),
            done=over,
            score=float(answer.won) if over else None,
            valid=answer.understood,
        )

    def admissible(self) -> list[str]:
        """Return the commands that are listed: those that do more than look."""
        return [command for command in self.begun(self.game).logic.commands() if not command.startswith(LOOKING)]

    def oracle(self) -> Iterator[str]:
        """Fetch the food, carry it to the fridge, store it and close the door."""
        while True:
            yield self._next_command()

    def close(self) -> None:
        """Give the interpreter back."""
        if self.game is not None:
            self.game.close()
        self.game = None

    def _described(self, text: str) -> str:
        parts = [TITLE.sub("", text)]
        if self.view == "full":
            carried = sorted(self._name(fact[1]) for fact in self._facts() if fact[0] == "in" and fact[2] == "I")
            parts.append(f"You are carrying: {', '.join(carried) or 'nothing'}.")
        return "\n\n".join([*parts, ", ".join(self.admissible())])

    def _next_command(self) -> str:
        """Return the next command of a shortest errand from the present state."""
        facts = self._facts()
        homes = {fact[1]: fact for fact in facts if fact[0] in ("at", "in", "on")}
        here = homes["P"][2]
        food, fridge = self._key(self.food), self._key(self.fridge)
        fridge_room = homes[fridge][2]
        if homes[food][2] == fridge:
            return self._towards(here, fridge_room) or f"close {self.fridge}"
        if homes[food][2] == "I":
            closed = ("closed", fridge) in facts
            store = f"open {self.fridge}" if closed else f"insert {self.food} into {self.fridge}"
            return self._towards(here, fridge_room) or store
        where = homes[food]
        if where[0] == "at":
            return self._towards(here, where[2]) or f"take {self.food}"
        holder = where[2]
        move = self._towards(here, homes[holder][2])
        if not move and ("closed", holder) in facts:
            return f"open {self._name(holder)}"
        return move or f"take {self.food} from {self._name(holder)}"

    def _towards(self, here: str, goal: str) -> str:
        """Return the first step of a shortest way through the house; "" where one is there."""
        steps: dict[str, str] = {here: ""}
        queue = deque([here])
        exits = [(fact[2], f"go {fact[0][:-3]}", fact[1]) for fact in self._facts() if fact[0][:-3] in OPPOSITE]
        while goal not in steps:
            room = queue.popleft()
            for start, command, end in exits:
                if start == room and end not in steps:
                    steps[end] = steps[room] or command
                    queue.append(end)
        return steps[goal]

    def _facts(self) -> set[tuple[str, ...]]:
        """Return the state as tuples of a predicate and the keys of its things, such as ("in", "f_0", "I")."""
        facts = self.begun(self.game).logic.now.state.facts
        return {(fact.name, *(argument.name for argument in fact.arguments)) for fact in facts}

    def _name(self, key: str) -> str:
        return str(self.begun(self.game).logic.game.infos[key].name)

    def _key(self, name: str) -> str:
        infos = self.begun(self.game).logic.game.infos
        return next(str(key) for key, info in infos.items() if info.name == name)


class TextNavOfficial(TextNav):
    """The same errand in the release's house, read from `data` or `$LMRL_DATA`: the file, or the folder it is in."""

    SPEC = VARIANTS[1]

    def __init__(self, *, data: str | os.PathLike[str] | None = None, **common: Any) -> None:
        super().__init__(**common)
        place = Path(data or os.environ.get("LMRL_DATA", ""))
        self.path = place / FILE if place.is_dir() else place
        if not self.path.is_file():
            raise InstanceError(
                f"{self.task.id} needs LMRL-Gym's {FILE}: git clone https://github.com/abdulhaim/LMRL-Gym, and set "
                "LMRL_DATA to the folder llm_rl_scripts/text_nav/games of the clone"
            )
        self.house = OfficialHouse(self.path)

    def size(self) -> int:
        """Return the number of rooms in the file."""
        return len(self.house.rooms)

    def errand(self, index: int) -> HouseGame:
        """Return the game that starts in room number `index` of the file."""
        return self.house.open(index)
