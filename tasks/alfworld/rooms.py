"""The 120 rooms and the tables of the installed alfworld package, read from its data files without importing it."""

from __future__ import annotations

import importlib.util
import json
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from runpy import run_path
from typing import Any

from lmgym.errors import MissingExtra

BLOCKS = {"Kitchen": 0, "LivingRoom": 200, "Bedroom": 300, "Bathroom": 400}  # number of a room less 1 to 30
NUMBERS = {"train": range(7, 31), "test": range(1, 7)}  # of each block, as ALFWorld's own layouts are split
LAMPS = ("DeskLamp", "FloorLamp")
STANDS = ("SideTable", "Desk", "Dresser", "CoffeeTable", "DiningTable", "Shelf")  # where a lamp may stand


@dataclass(frozen=True)
class Tables:
    """The package's tables of sizes and abilities, by class name."""

    fits: dict[str, frozenset[str]]  # receptacle class -> object classes
    able: dict[str, frozenset[str]]  # "cleanable" ... -> object classes
    openable: frozenset[str]
    hollow: frozenset[str]  # objects that could hold others: "In it, you see nothing"
    rooms: dict[str, tuple[str, ...]]  # task type -> kinds of room
    goals: dict[str, str]  # task type -> PDDL of the goal, with {obj}, {recep}, {toggle}
    sentences: dict[str, tuple[str, ...]]  # task type -> goal sentences
    domain: str  # PDDL domain
    grammar: str  # .twl2 text with UNKNOWN GOAL in it


@dataclass(frozen=True)
class RoomLayout:
    """A room: its receptacles and the classes of objects that belong there."""

    receptacles: tuple[str, ...]  # a class per receptacle
    objects: tuple[str, ...]  # classes, sorted


def package() -> Path:
    """Return the folder of the installed alfworld package; nothing of it is imported."""
    spec = importlib.util.find_spec("alfworld")
    if spec is None or not spec.submodule_search_locations:
        raise MissingExtra("lmgym/ALFWorld-v0 needs alfworld: pip install 'lmgym[alfworld]'")
    return Path(spec.submodule_search_locations[0])


@cache
def tables() -> Tables:
    """Return the package's tables without sliced objects, which none of the six types needs."""
    gen = package() / "gen"
    constants, library = run_path(str(gen / "constants.py")), run_path(str(gen / "goal_library.py"))["gdict"]
    movable = set(constants["MOVABLE_RECEPTACLES"])
    fits = {
        outer: frozenset(o for o in inside if not o.endswith("Sliced"))
        for outer, inside in constants["VAL_RECEPTACLE_OBJECTS"].items()
        if outer not in movable
    }
    types = [goal for goal in constants["GOALS"] if "movable" not in goal]
    return Tables(
        fits=fits,
        able={name.lower(): frozenset(classes) for name, classes in constants["VAL_ACTION_OBJECTS"].items()},
        openable=frozenset(constants["OPENABLE_CLASS_LIST"]) & fits.keys(),
        hollow=frozenset(movable),
        rooms={goal: tuple(kind for kind in BLOCKS if kind in constants["GOALS_VALID"][goal]) for goal in types},
        goals={goal: library[goal]["pddl"].replace("#", "-") for goal in types},
        sentences={goal: tuple(library[goal]["templates"]) for goal in types},
        domain=(package() / "data" / "alfred.pddl").read_text(encoding="utf-8"),
        grammar=(package() / "data" / "alfred.twl2").read_text(encoding="utf-8"),
    )


@cache
def room(number: int) -> RoomLayout:
    """Return room `number`; receptacle classes that its object list lacks are added once."""
    layouts = package() / "gen" / "layouts"
    poses: dict[str, Any] = json.loads((layouts / f"FloorPlan{number}-openable.json").read_text(encoding="utf-8"))
    present = set(json.loads((layouts / f"FloorPlan{number}-objects.json").read_text(encoding="utf-8")))
    rules = tables()
    count = Counter(_class(key) for key in poses)
    receptacles = [kind for kind in sorted(count) for _ in range(count[kind]) if kind in rules.fits]
    receptacles += sorted((present & rules.fits.keys()) - count.keys())
    portable = frozenset().union(*rules.fits.values()) - rules.fits.keys()
    return RoomLayout(tuple(sorted(receptacles)), tuple(sorted(present & (portable | set(LAMPS)))))


def _class(key: str) -> str:
    """Return the class of a receptacle id: "Cabinet|+00.68|..." or "Sink|...|SinkBasin"."""
    head, *_, tail = key.split("|")
    return tail if tail.endswith("Basin") else head
