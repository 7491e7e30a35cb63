"""The oracle: the next command towards the PDDL goal, from any state of the game.

It needs no planner. A goal of ALFWorld's types asks for things in a receptacle, each perhaps clean, hot or cool, or for
a thing in hand by a lit lamp; the cheapest way to have that is a choice among few, made anew at every step.
"""

from __future__ import annotations

from collections.abc import Iterator

from lmgym.errors import InstanceError
from lmgym.tasks.alfworld.engine import HouseholdGame
from lmgym.tasks.alfworld.goal import Clause
from lmgym.tasks.alfworld.world import APPLIANCES

TREATMENT = {"isclean": "cleanobject", "ishot": "heatobject", "iscool": "coolobject"}
Need = tuple[str, ...]  # states that a thing must be in
Choice = tuple[int, int, list[tuple[int, Need]]]  # cost in turns, receptacle, the things that go into it


def play(game: HouseholdGame) -> Iterator[str]:
    """Yield commands until the game is won or can no longer be won; each depends on the present state."""
    while not game.won and (command := next_command(game)):
        yield command


def next_command(game: HouseholdGame) -> str:
    """Return the next command, or "" in a dead end; raise InstanceError for a goal of an unknown type.

    Procedural games have no dead ends. Official ones do: some things can be taken and then fit nowhere, and full hands
    take nothing else.
    """
    by_kind = {kind: clause for clause in game.goal.clauses for kind in [_kind(clause)]}
    if len(by_kind) < len(game.goal.clauses) or by_kind.keys() not in ({"place"}, {"light", "hold"}):
        raise InstanceError(f"the oracle does not know how to reach a goal with {sorted(game.goal.asks)}")
    if "place" in by_kind:
        return _place(game, by_kind["place"])
    return _light(game, by_kind["hold"], by_kind["light"])


def _kind(clause: Clause) -> str:
    predicates = {literal[0] for literal in clause.literals}
    if "inreceptacle" in predicates and predicates <= {"inreceptacle", "not =", *TREATMENT}:
        return "place"
    if {"istoggled", "inreceptacle", "atlocation"} <= predicates:
        return "light"
    return "hold" if predicates == {"holds"} else "other"


def _place(game: HouseholdGame, clause: Clause) -> str:
    name = next(literal[2] for literal in clause.literals if literal[0] == "inreceptacle")
    reachable = [r for r in clause.domains[name] if game.house.place[r] >= 0]
    choices = [choice for r in reachable if (choice := _filling(game, clause, r))]
    if not choices:
        return ""
    _, receptacle, things = min(choices)
    missing = [(o, need) for o, need in things if o not in game.contents[receptacle] or _untreated(game, o, need)]
    for thing, need in missing:
        if thing == game.held:
            if untreated := _untreated(game, thing, need):
                return _treat(game, thing, untreated[0])
            return _reach(game, receptacle) or game.words("putobject", o=thing, r=receptacle)
    return _fetch(game, [thing for thing, _ in missing])


def _light(game: HouseholdGame, hold: Clause, light: Clause) -> str:
    wanted = next(domain for name, domain in hold.domains.items() if hold.kinds[name] == "object")
    if game.held not in wanted:
        return _fetch(game, wanted)
    lamp_name = next(literal[1] for literal in light.literals if literal[0] == "istoggled")
    lamps = [(o, r) for o in light.domains[lamp_name] for r in _where(game, o)]
    if not lamps:
        return ""
    lamp, receptacle = min(lamps, key=lambda pair: game.house.place[pair[1]] != game.place)
    return _walk(game, receptacle) or game.words("toggleobject", o=lamp)


def _filling(game: HouseholdGame, clause: Clause, receptacle: int) -> Choice | None:
    """Return the cheapest way to fill `receptacle` as the clause requires, or None."""
    chosen: list[tuple[int, Need]] = []
    total = 0
    for name in (name for name, kind in clause.kinds.items() if kind == "object"):
        need = tuple(literal[0] for literal in clause.literals if literal[1:] == (name,))
        taken = {thing for thing, _ in chosen}
        costs = [
            (cost, thing)
            for thing in clause.domains[name]
            if thing not in taken and (cost := _cost(game, thing, need, receptacle)) is not None
        ]
        if not costs:
            return None
        cost, thing = min(costs)
        total += cost
        chosen.append((thing, need))
    return total, receptacle, chosen


def _cost(game: HouseholdGame, thing: int, need: Need, receptacle: int) -> int | None:
    """Return roughly how many turns it takes to treat `thing` and put it into `receptacle`, or None if impossible."""
    untreated = _untreated(game, thing, need)
    if thing in game.contents[receptacle] and not untreated:
        return 0
    able = all(thing in game.house.facts.get(APPLIANCES[TREATMENT[state]], ()) for state in untreated)
    if (thing, receptacle) not in game.house.fits or not able or not all(_appliances(game, s) for s in untreated):
        return None
    turns = 2 + game.shut(receptacle) + 2 * len(untreated)
    if thing == game.held:
        return turns
    if thing not in game.house.facts.get("pickupable", ()) or not (where := _where(game, thing)):
        return None
    return turns + 2 + (game.held >= 0) * 2 + min(map(game.shut, where))


def _untreated(game: HouseholdGame, thing: int, need: Need) -> list[str]:
    return [state for state in need if thing not in game.states[state]]


def _appliances(game: HouseholdGame, state: str) -> list[int]:
    kinds = game.domain.kinds[TREATMENT[state]]
    appliances = {r for kind in kinds for r in game.house.receptacle_kinds.get(kind, ()) if game.house.place[r] >= 0}
    return sorted(appliances, key=lambda r: (game.house.place[r] != game.place, r))


def _treat(game: HouseholdGame, thing: int, state: str) -> str:
    appliance = _appliances(game, state)[0]
    return _walk(game, appliance) or game.words(TREATMENT[state], o=thing, r=appliance)


def _fetch(game: HouseholdGame, things: list[int] | tuple[int, ...]) -> str:
    """Return the next command to get hold of one of `things`, or ""."""
    if game.held >= 0:
        return _put_down(game)
    takeable = game.house.facts.get("pickupable", frozenset())
    candidates = [(_distance(game, r), o, r) for o in things if o in takeable for r in _where(game, o)]
    if not candidates:
        return ""
    _, thing, receptacle = min(candidates)
    return _reach(game, receptacle) or game.words("pickupobject", o=thing, r=receptacle)


def _put_down(game: HouseholdGame) -> str:
    """Return the next command to put down the held object, or "" if it fits nowhere."""
    fitting = [r for o, r in game.house.fits if o == game.held and game.house.place[r] >= 0]
    if not fitting:
        return ""
    receptacle = min(fitting, key=lambda r: (_distance(game, r), r))
    return _reach(game, receptacle) or game.words("putobject", o=game.held, r=receptacle)


def _where(game: HouseholdGame, thing: int) -> list[int]:
    """Return the reachable receptacles that contain `thing`."""
    return [r for r, inside in enumerate(game.contents) if thing in inside and game.house.place[r] >= 0]


def _distance(game: HouseholdGame, receptacle: int) -> int:
    return (game.house.place[receptacle] != game.place) + game.shut(receptacle)


def _reach(game: HouseholdGame, receptacle: int) -> str:
    return _walk(game, receptacle) or (game.words("openobject", r=receptacle) if game.shut(receptacle) else "")


def _walk(game: HouseholdGame, receptacle: int) -> str:
    return "" if game.house.place[receptacle] == game.place else game.words("gotolocation", r=receptacle)
