"""Parse the PDDL problem of a game file: objects, places and their names.

Order matters: listings follow the sorted ids, and the number in a name counts down in that order, as in the stock
game. An object may stand in several receptacles and receptacles may share a location; official files have both.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from lmgym.errors import InstanceError

Atom = tuple[str, ...]  # arguments of a predicate; lower case
Kinds = dict[str, frozenset[int]]  # a kind -> its receptacles or things
ABILITIES = ("pickupable", "cleanable", "heatable", "coolable", "toggleable", "sliceable")
UNASKED = ("checked", "examined", "wasinreceptacle", "full", "isreceptacleobjectfull", "total-cost")  # by any rule
READ = frozenset(  # predicates of the initial state that the engine understands
    {
        *("atlocation", "receptacleatlocation", "objectatlocation", "inreceptacle", "inreceptacleobject"),
        *("receptacletype", "objecttype", "cancontain", "openable", "opened", "isreceptacleobject", "moveable"),
        *ABILITIES,
        *("isclean", "ishot", "iscool", "istoggled", "ison", "issliced"),
        *UNASKED,
    }
)
STATES = ("isclean", "ishot", "iscool", "istoggled", "issliced")


@dataclass(frozen=True)
class Household:
    """A house at the start of a game. Receptacles, objects and places are numbered in listing order."""

    receptacles: tuple[str, ...]  # names: "cabinet 2"
    things: tuple[str, ...]  # names: "apple 1"
    places: tuple[str, ...]  # names of locations: "loc 3"
    start: int  # the agent's place
    place: tuple[int, ...]  # of each receptacle; -1 for none
    contents: tuple[tuple[int, ...], ...]  # things in each receptacle
    lying: frozenset[tuple[int, int]]  # (thing, place) as the file says; slicing asks for it
    inner: dict[int, tuple[int, ...]]  # things in a thing
    facts: Kinds  # true of these receptacles ("openable") or things ("cleanable")
    thing_kinds: Kinds  # "appletype" -> things
    receptacle_kinds: Kinds  # "cabinettype" -> receptacles
    fits: frozenset[tuple[int, int]]  # (thing, receptacle) where one can be put into the other


def read_household(problem: str) -> tuple[Household, str]:
    """Return the house of a PDDL problem and the text of its goal."""
    text = re.sub(r";[^\n]*", "", problem).lower()
    parts = re.search(r"\(:objects(.*?)\)\s*\(:init(.*)(\(:goal.*)\)\s*$", text, re.DOTALL)
    if parts is None:
        raise InstanceError("the game's pddl_problem has no :objects, :init and :goal in that order")
    by_predicate: dict[str, list[Atom]] = defaultdict(list)
    for inside in re.findall(r"\(([^()]+)\)", parts[2]):
        predicate, *arguments = inside.split()
        by_predicate[predicate].append(tuple(arguments))
    if unknown := by_predicate.keys() - READ:
        raise InstanceError(f"the game starts with facts that the engine does not know: {sorted(unknown)}")
    try:
        return _house(declared_types(parts[1].split()), by_predicate), parts[3]
    except (KeyError, IndexError, ValueError) as error:
        raise InstanceError(f"the game's pddl_problem has a fact that does not fit its predicate: {error}") from error


def declared_types(words: Iterable[str]) -> dict[str, str]:
    """Return the type of each declared name in `a b - object c - location`."""
    types: dict[str, str] = {}
    waiting: list[str] = []
    words = iter(words)
    for word in words:
        if word == "-":
            kind = next(words, "")
            types.update((name, kind) for name in waiting)
            waiting = []
        else:
            waiting.append(word)
    return types


def _names(ids: list[str]) -> dict[str, str]:
    """Return the game's name for each id; within a class the last id gets number 1."""
    classes = {}
    for id_ in ids:
        head, bar, _ = id_.partition("_bar_")
        classes[id_] = head + ("basin" if bar and "basin" in id_ else "") if bar else ""
    left = Counter(classes.values())
    names = {}
    for id_ in ids:
        if not classes[id_]:
            names[id_] = f"{id_} "  # the stock game's own slip: an id without a number keeps the space
            continue
        names[id_] = f"{classes[id_]} {left[classes[id_]]}"
        left[classes[id_]] -= 1
    return names


def _house(types: dict[str, str], atoms: dict[str, list[Atom]]) -> Household:
    ids = sorted({argument for facts in atoms.values() for fact in facts for argument in fact})
    if undeclared := [id_ for id_ in ids if id_ not in types]:
        raise InstanceError(f"the game states facts of undeclared things: {undeclared[:3]}")
    if len(atoms["atlocation"]) != 1:
        raise InstanceError(f"the game must start with one agent in one place; got {atoms['atlocation']}")
    names = _names(ids)
    index: dict[str, dict[str, int]] = {"receptacle": {}, "object": {}, "location": {}}
    for id_ in ids:
        if types[id_] in index:
            index[types[id_]][id_] = len(index[types[id_]])
    receptacle, thing, location = index["receptacle"], index["object"], index["location"]
    things, receptacles = _grouped(atoms["objecttype"], thing), _grouped(atoms["receptacletype"], receptacle)
    contents = _inside(atoms["inreceptacle"], receptacle, thing)
    pairs = set(atoms["cancontain"])
    fits = ((o, r) for outer, inside in pairs for o in things.get(inside, ()) for r in receptacles.get(outer, ()))
    return Household(
        receptacles=tuple(names[id_] for id_ in receptacle),
        things=tuple(names[id_] for id_ in thing),
        places=tuple(names[id_] for id_ in location),
        start=location[atoms["atlocation"][0][1]],
        place=_placed(atoms["receptacleatlocation"], receptacle, location),
        contents=tuple(contents.get(r, ()) for r in range(len(receptacle))),
        lying=frozenset((thing[id_], location[where]) for id_, where in atoms["objectatlocation"]),
        inner=_inside(atoms["inreceptacleobject"], thing, thing),
        facts=_unary(atoms, {**receptacle, **thing}),
        thing_kinds=things,
        receptacle_kinds=receptacles,
        fits=frozenset(fits),
    )


def _placed(pairs: list[Atom], receptacle: dict[str, int], location: dict[str, int]) -> tuple[int, ...]:
    place = [-1] * len(receptacle)
    for id_, where in set(pairs):
        if place[receptacle[id_]] >= 0:
            raise InstanceError(f"the game has the receptacle {id_!r} in two places")
        place[receptacle[id_]] = location[where]
    return tuple(place)


def _inside(pairs: list[Atom], outer: dict[str, int], thing: dict[str, int]) -> dict[int, tuple[int, ...]]:
    inside: dict[int, list[int]] = defaultdict(list)
    for number, where in sorted((thing[id_], outer[where]) for id_, where in set(pairs)):
        inside[where].append(number)
    return {where: tuple(numbers) for where, numbers in inside.items()}


def _unary(atoms: dict[str, list[Atom]], index: dict[str, int]) -> Kinds:
    """Return the facts about a single receptacle or object that a rule can query."""
    return {
        predicate: frozenset(index[fact[0]] for fact in facts)
        for predicate, facts in atoms.items()
        if facts and len(facts[0]) == 1 and predicate not in UNASKED
    }


def _grouped(facts: list[Atom], index: dict[str, int]) -> Kinds:
    groups: dict[str, set[int]] = defaultdict(set)
    for id_, kind in facts:
        groups[kind].add(index[id_])
    return {kind: frozenset(members) for kind, members in groups.items()}
