"""Procedural households: a solvable game for every (split, index), written like an official game file.

Rooms, tables, goals, grammar and domain are the alfworld package's; what is drawn is which of the room's receptacles
stay, what lies where and what is asked. A goal is solvable by construction: its receptacle, its appliance or lamp and
a source for each thing it asks for are drawn first, and nothing has to be sliced or moved out of the way.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np

from lmgym.errors import InstanceError
from lmgym.tasks.alfworld.rooms import BLOCKS, LAMPS, NUMBERS, STANDS, RoomLayout, room, tables

TYPES = (
    "pick_and_place_simple",
    "look_at_obj_in_light",
    "pick_clean_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_two_obj_and_place",
)
TREATED = {  # type -> what the object must be able to, and the appliance's class
    "pick_clean_then_place_in_recep": ("cleanable", "SinkBasin"),
    "pick_heat_then_place_in_recep": ("heatable", "Microwave"),
    "pick_cool_then_place_in_recep": ("coolable", "Fridge"),
}
STREAM = {"train": 0, "test": 1}
FEWEST = 3  # receptacles: a goal's and two sources, or a goal's, an appliance and a source
MOST = 51  # receptacles: those of the largest room
OBJECTS = (2, 200)  # far beyond what the largest room is for
ALWAYS = ("SinkBasinType", "MicrowaveType", "FridgeType", "KnifeType", "ButterKnifeType")  # named by the domain


@dataclass(frozen=True)
class HouseholdTarget:
    """The objects and receptacle that a goal names."""

    type: str
    thing: str  # class
    receptacle: str  # class; "" where a lamp is asked
    lamp: str = ""  # class


@dataclass(frozen=True)
class HouseholdPlan:
    """A household before it is written: classes only, in numbering order."""

    target: HouseholdTarget
    sentence: str
    receptacles: tuple[str, ...]
    things: tuple[tuple[str, int], ...]  # class, which receptacle


def draw(split: str, index: int, *, receptacles: int, objects: int, types: tuple[str, ...] = TYPES) -> HouseholdPlan:
    """Draw household `index` of `split` with at most so many receptacles and objects; types alternate by index."""
    if not FEWEST <= receptacles <= MOST:
        raise InstanceError(f"receptacles is {FEWEST} to {MOST}, those of the largest room; got {receptacles}")
    if not OBJECTS[0] <= objects <= OBJECTS[1]:
        raise InstanceError(f"objects is {OBJECTS[0]} to {OBJECTS[1]}; got {objects}")
    rng = np.random.default_rng([STREAM[split], index, receptacles, objects])
    type_ = types[index % len(types)]
    numbers = _rooms(type_, split)
    house = room(numbers[rng.integers(len(numbers))])
    targetes = _targets(type_, house)
    target = targetes[rng.integers(len(targetes))]
    chosen, sources = _receptacles(rng, target, house, receptacles)
    things = _things(rng, target, house, chosen, sources, objects)
    sentences = tables().sentences[type_]
    sentence = sentences[rng.integers(len(sentences))].format(
        obj=target.thing.lower(), recep=target.receptacle.lower(), toggle=target.lamp.lower()
    )
    return HouseholdPlan(target, sentence, tuple(chosen), tuple(things))


def write(plan: HouseholdPlan) -> dict[str, str | bool]:
    """Return the contents of a `game.tw-pddl` file, which the stock engine can also play."""
    rules = tables()
    return {
        "pddl_domain": rules.domain,
        "grammar": rules.grammar.replace("UNKNOWN GOAL", plan.sentence),
        "pddl_problem": _problem(plan),
        "solvable": True,
    }


@cache
def _rooms(type_: str, split: str) -> tuple[int, ...]:
    """Return the rooms of a split in which a task type has a possible goal."""
    numbers = (BLOCKS[kind] + n for kind in tables().rooms[type_] for n in NUMBERS[split])
    return tuple(n for n in numbers if _targets(type_, room(n)))


@cache
def _targets(type_: str, house: RoomLayout) -> tuple[HouseholdTarget, ...]:
    """Return all possible goals of a type in a room; each has a source other than the goal's receptacle."""
    rules = tables()
    kinds = sorted(set(house.receptacles))
    portable = [thing for thing in house.objects if thing not in LAMPS]
    if type_ == "look_at_obj_in_light":
        if not set(STANDS) & set(kinds):
            return ()
        lamps = [lamp for lamp in LAMPS if lamp in house.objects]
        return tuple(HouseholdTarget(type_, o, "", lamp) for o in portable for lamp in lamps if _sources(o, "", kinds))
    able, appliance = TREATED.get(type_, ("", ""))
    if appliance and appliance not in kinds:
        return ()
    return tuple(
        HouseholdTarget(type_, thing, kind)
        for thing in portable
        for kind in kinds
        if kind != appliance
        and thing in rules.fits[kind]
        and (not able or thing in rules.able[able])
        and _sources(thing, kind, kinds)
    )


def _sources(thing: str, goal: str, kinds: list[str]) -> list[str]:
    """Return the receptacle classes where an object of the goal may lie at the start."""
    return [kind for kind in kinds if kind != goal and thing in tables().fits[kind]]


def _receptacles(
    rng: np.random.Generator, target: HouseholdTarget, house: RoomLayout, most: int
) -> tuple[list[str], list[int]]:
    """Return the receptacles that stay and, for each object of the goal, the one it lies in; the lamp's comes last.

    What the goal needs comes first; the rest is drawn so that further ones of a class are rarer than a first.
    """
    kinds = sorted(set(house.receptacles))
    needed = [target.receptacle] if target.receptacle else []
    if target.type in TREATED:
        needed.append(TREATED[target.type][1])
    choices = [_sources(target.thing, target.receptacle, kinds)] * (2 if target.type == "pick_two_obj_and_place" else 1)
    if target.lamp:
        choices.append([kind for kind in STANDS if kind in kinds])
    sources = []
    for choice in choices:
        kind = choice[rng.integers(len(choice))]
        if kind not in needed:
            needed.append(kind)
        sources.append(needed.index(kind))
    spare = Counter(house.receptacles) - Counter(needed)
    rest = [(kind, rank) for kind in sorted(spare) for rank in range(spare[kind])]
    keys = rng.random(len(rest)) + [rank / 2 for _, rank in rest]
    filled = [rest[i][0] for i in np.argsort(keys)[: max(0, most - len(needed))]]
    chosen = needed + filled
    order = rng.permutation(len(chosen)).tolist()  # else the numbers in names would tell what is needed
    return [chosen[i] for i in order], [order.index(source) for source in sources]


def _things(
    rng: np.random.Generator,
    target: HouseholdTarget,
    house: RoomLayout,
    receptacles: list[str],
    sources: list[int],
    most: int,
) -> list[tuple[str, int]]:
    """Return the objects and their receptacles: the goal's first, then others that do not satisfy the goal."""
    rules = tables()
    wanted = [target.thing, target.thing] if target.type == "pick_two_obj_and_place" else [target.thing]
    things = list(zip([*wanted, target.lamp] if target.lamp else wanted, sources, strict=True))
    classes = [thing for thing in house.objects if thing not in LAMPS]
    draws = rng.random((max(0, most - len(things)), 2)).tolist()
    for which, where in draws:
        thing = classes[int(which * len(classes))]
        avoid = target.receptacle if thing == target.thing else ""
        fitting = [r for r, kind in enumerate(receptacles) if kind != avoid and thing in rules.fits[kind]]
        if fitting:
            things.append((thing, fitting[int(where * len(fitting))]))
    return [things[i] for i in rng.permutation(len(things))]


def _problem(plan: HouseholdPlan) -> str:
    """Return the PDDL problem. Every receptacle has its own location; the agent starts at an empty one."""
    rules, target = tables(), plan.target
    receptacles, things = _ids(plan.receptacles), _ids([kind for kind, _ in plan.things])
    receptacle_kinds, thing_kinds = sorted(set(plan.receptacles)), sorted({kind for kind, _ in plan.things})
    rtypes = dict.fromkeys([*(f"{kind}Type" for kind in receptacle_kinds), *ALWAYS[:3]])
    otypes = dict.fromkeys([*(f"{kind}Type" for kind in thing_kinds), *ALWAYS[3:]])
    places = [f"loc_bar_{n:02d}" for n in range(len(receptacles) + 1)]
    objects = [("agent", ["agent1"]), ("location", places), ("receptacle", receptacles), ("object", things)]
    objects += [("rtype", list(rtypes)), ("otype", list(otypes))]
    facts = [f"(atLocation agent1 {places[0]})"]
    for id_, kind, place in zip(receptacles, plan.receptacles, places[1:], strict=True):
        facts += [f"(receptacleType {id_} {kind}Type)", f"(receptacleAtLocation {id_} {place})"]
        if kind in rules.openable:
            facts.append(f"(openable {id_})")
    for id_, (kind, where) in zip(things, plan.things, strict=True):
        facts += [f"(objectType {id_} {kind}Type)", f"(inReceptacle {id_} {receptacles[where]})"]
        facts.append(f"(objectAtLocation {id_} {places[where + 1]})")
        facts += [f"({able} {id_})" for able in sorted(rules.able) if kind in rules.able[able]]
        if kind not in LAMPS:
            facts.append(f"(pickupable {id_})")
        if kind in rules.hollow:
            facts.append(f"(isReceptacleObject {id_})")
    facts += [
        f"(canContain {outer}Type {kind}Type)"
        for outer in receptacle_kinds
        for kind in thing_kinds
        if kind in rules.fits[outer]
    ]
    declared = "\n".join(f"{' '.join(names)} - {kind}" for kind, names in objects)
    goal = rules.goals[target.type].format(obj=target.thing, recep=target.receptacle, toggle=target.lamp)
    stated = "\n".join(facts)
    return f"(define (problem household)\n(:domain alfred)\n(:objects\n{declared}\n)\n(:init\n{stated}\n)\n{goal}"


def _ids(kinds: tuple[str, ...] | list[str]) -> list[str]:
    """Return ids in the stock game's format: "Cabinet_bar_02", "Sink_bar_01_bar_SinkBasin"."""
    seen: Counter[str] = Counter()
    ids = []
    for kind in kinds:
        seen[kind] += 1
        head = kind.removesuffix("Basin")
        ids.append(f"{head}_bar_{seen[kind]:02d}" + (f"_bar_{kind}" if head != kind else ""))
    return ids
