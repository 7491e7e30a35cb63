"""The houses of Text-Nav as TextWorld games: one of ours, and the one that LMRL-Gym ships."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from lmgym.backends.textgame import Story
from lmgym.backends.textgame_build import generating, story
from lmgym.errors import InstanceError

LARGEST = 1_000_000  # bytes of a house file
SEED = 0  # of the generator that writes the rooms' descriptions
OPPOSITE = {"north": "south", "south": "north", "east": "west", "west": "east"}


@dataclass(frozen=True)
class HouseGame:
    """A house as a compiled game, and the names of what has to be done in it."""

    story: Story
    food: str
    fridge: str


FOOD, FRIDGE = "old pie", "icebox"
ROOMS = ("porch", "hall", "parlour", "library", "kitchen", "larder", "washroom", "courtyard")
EXITS = (
    ("porch", "east", "hall"),
    ("hall", "east", "parlour"),
    ("parlour", "east", "kitchen"),
    ("kitchen", "east", "larder"),
    ("kitchen", "south", "courtyard"),
    ("hall", "north", "library"),
    ("porch", "north", "washroom"),
    ("washroom", "east", "library"),
)
FURNITURE = {"bench": ("s", "hall"), "sideboard": ("s", "parlour"), "trunk": ("c", "library"), FRIDGE: ("c", "kitchen")}
THINGS = {
    FOOD: ("f", "bench"),
    "new pie": ("f", "bench"),
    "teapot": ("o", "sideboard"),
    "saucer": ("o", "sideboard"),
    "candle": ("o", "trunk"),
    "pear": ("f", FRIDGE),
}


def our_house(start: int) -> HouseGame:
    """Return our house with the player in room number `start`."""
    recipe = {"text_nav": 1, "start": start}
    return HouseGame(story(recipe, partial(furnished, start)), FOOD, FRIDGE)


def furnished(start: int) -> Any:
    """Return our house as a `textworld.Game`, not yet compiled."""
    with generating(SEED):
        from textworld import GameMaker, GameOptions

        options = GameOptions()
        options.seeds = SEED
        maker = GameMaker(options)
        places = {name: maker.new_room(name) for name in ROOMS}
        for room, way, other in EXITS:
            maker.connect(getattr(places[room], way), getattr(places[other], OPPOSITE[way]))
        for contents in (FURNITURE, THINGS):
            for name, (kind, home) in contents.items():
                places[name] = maker.new(type=kind, name=name)
                places[home].add(places[name])
                if kind == "c":
                    places[name].add_property("closed")
        maker.set_player(places[ROOMS[start]])
        return _with_errand(maker.build(), FOOD, FRIDGE)


def _with_errand(game: Any, food: str, fridge: str) -> Any:
    """Make the errand the only quest: won with the food in the closed fridge, lost when the food is eaten."""
    from textworld.generator.game import Event, Quest
    from textworld.logic import Proposition, Variable

    of_name = {info.name: Variable(info.id, info.type) for info in game.infos.values() if info.name}
    eaten = Event(conditions={Proposition("eaten", [of_name[food]])})
    stored = Event(
        conditions={
            Proposition("in", [of_name[food], of_name[fridge]]),
            Proposition("closed", [of_name[fridge]]),
        }
    )
    game.quests = [Quest(win_events=[stored], fail_events=[eaten], reward=1)]
    game.objective = ""
    return game


class OfficialHouse:
    """The house in LMRL-Gym's `textnav_game.json`, a Python literal in spite of its name: parsed, never evaluated.

    Its own quest is won by standing in the kitchen while the fridge is closed, and its food cannot be eaten; the rules
    that the paper and the release's script state replace both.
    """

    FOOD, FRIDGE = "stale food", "fridge"

    def __init__(self, path: Path) -> None:
        try:
            if path.stat().st_size > LARGEST:
                raise InstanceError(f"{path} has {path.stat().st_size} bytes; a house has {LARGEST} at most")
            self.content = ast.literal_eval(path.read_text(encoding="utf-8"))
            self.rooms = [name for name, info in self.content["infos"] if info["type"] == "r"]
            names = {info["name"]: name for name, info in self.content["infos"]}
            self.edible = {names[self.FOOD], names["fresh food"]}
            _ = names[self.FRIDGE]
        except (OSError, ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError) as error:
            raise InstanceError(f"{path} is not LMRL-Gym's Text-Nav house: {type(error).__name__}: {error}") from error

    def open(self, start: int) -> HouseGame:
        """Return the house with the player in room number `start` of the file."""
        content = self._with_food(self.content)
        content["quests"] = []
        for fact in content["world"]:
            if fact["name"] == "at" and fact["arguments"][0]["type"] == "P":
                fact["arguments"][1]["name"] = self.rooms[start]
        return HouseGame(story({"text_nav": 1, "house": content}, partial(self._game, content)), self.FOOD, self.FRIDGE)

    def _with_food(self, part: Any) -> Any:
        """Copy `part` of the file with the two foods as things of type "f", which can be eaten."""
        if isinstance(part, Mapping):
            copied = {key: self._with_food(value) for key, value in part.items()}
            if copied.get("type") == "o" and copied.get("id", copied.get("name")) in self.edible:
                copied["type"] = "f"
            return copied
        return [self._with_food(each) for each in part] if isinstance(part, list | tuple) else part

    def _game(self, content: Mapping[str, Any]) -> Any:
        with generating(SEED):
            from textworld.generator.game import Game

            return _with_errand(Game.deserialize(dict(content)), self.FOOD, self.FRIDGE)
