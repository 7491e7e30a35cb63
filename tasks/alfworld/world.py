"""The state of a house and the PDDL domain's actions on it."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable

from lmgym.tasks.alfworld.household import STATES, Household
from lmgym.tasks.alfworld.logic import Domain

Bound = dict[str, int]  # variable of an action -> number of a receptacle, thing or place
APPLIANCES = {"cleanobject": "cleanable", "heatobject": "heatable", "coolobject": "coolable"}


class World:
    """A house in play. Receptacles, objects and places are the numbers of `house`."""

    def __init__(self, house: Household, domain: Domain) -> None:
        self.house, self.domain = house, domain
        self.place = house.start
        self.held = -1  # a thing, or -1
        self.contents = [list(inside) for inside in house.contents]
        self.opened = set(house.facts.get("opened", ()))
        self.states = {state: set(house.facts.get(state, ())) for state in STATES}
        self.lying = set(house.lying)
        self.left: set[tuple[int, int]] = set()  # (thing, receptacle): taken out of it and not put back

    def here(self) -> list[int]:
        """Return the receptacles at the agent's place."""
        return [r for r, place in enumerate(self.house.place) if place == self.place]

    def shut(self, receptacle: int) -> bool:
        """Return True if a receptacle must be opened before use."""
        return self.can("openable", receptacle) and receptacle not in self.opened

    def can(self, ability: str, number: int) -> bool:
        """Return True if an unchanging fact ("openable", "cleanable") holds for a receptacle or object."""
        return number in self.house.facts.get(ability, ())

    def works_at(self, receptacle: int, action: str) -> bool:
        """Return True if a receptacle is of the kind that cleans, heats or cools."""
        return any(receptacle in self.house.receptacle_kinds.get(kind, ()) for kind in self.domain.kinds[action])

    def slices(self, thing: int) -> bool:
        """Return True for a knife."""
        return any(thing in self.house.thing_kinds.get(kind, ()) for kind in self.domain.kinds["sliceobject"])

    # Actions: each says whether it can be done, and does it ----------------------------------------------------------

    def _always(self, bound: Bound) -> bool:
        return True

    def _look(self, bound: Bound) -> bool:
        bound["l"] = self.place
        return True

    def _go(self, bound: Bound) -> bool:
        place = self.house.place[bound["r"]]
        if place in (-1, self.place):  # the stock engine drops walks that change nothing
            return False
        self.place = bound["lend"] = place
        return True

    def _open(self, bound: Bound) -> bool:
        r = bound["r"]
        if self.house.place[r] != self.place or not self.shut(r):
            return False
        self.opened.add(r)
        return True

    def _close(self, bound: Bound) -> bool:
        r = bound["r"]
        if self.house.place[r] != self.place or r not in self.opened or not self.can("openable", r):
            return False
        self.opened.discard(r)
        return True

    def _take(self, bound: Bound) -> bool:
        o, r = bound["o"], bound["r"]
        near = self.house.place[r] == self.place and o in self.contents[r]
        if self.held >= 0 or not near or not self.can("pickupable", o) or self.shut(r):
            return False
        self.contents[r].remove(o)
        self.left.add((o, r))
        self.lying.discard((o, self.place))
        self.held = o
        return True

    def _put(self, bound: Bound) -> bool:
        o, r = bound["o"], bound["r"]
        if o != self.held or self.house.place[r] != self.place or self.shut(r) or (o, r) not in self.house.fits:
            return False
        if o not in self.contents[r]:
            insort(self.contents[r], o)
        self.left.discard((o, r))
        self.lying.add((o, self.place))
        self.held = -1
        return True

    def _treat(self, bound: Bound, action: str, state: str, no_longer: str = "") -> bool:
        o, r = bound["o"], bound["r"]
        if o != self.held or self.house.place[r] != self.place:
            return False
        return self.can(APPLIANCES[action], o) and self.works_at(r, action) and self._become(o, state, no_longer)

    def _toggle(self, bound: Bound) -> bool:
        o = bound["o"]
        if not self.can("toggleable", o) or not any(o in self.contents[r] for r in self.here()):
            return False
        return self._become(o, "istoggled")  # and for good: the game says "turn on" each time

    def _slice(self, bound: Bound) -> bool:
        o, knife = bound["co"], bound["ko"]
        if knife != self.held or not self.slices(knife) or (o, self.place) not in self.lying:
            return False
        return self.can("sliceable", o) and self._become(o, "issliced")

    def _become(self, thing: int, state: str, no_longer: str = "") -> bool:
        self.states[state].add(thing)
        if no_longer:
            self.states[no_longer].discard(thing)
        return True


ACTIONS: dict[str, Callable[[World, Bound], bool]] = {
    "look": World._look,
    "inventory": World._always,
    "help": World._always,
    "gotolocation": World._go,
    "examinereceptacle": lambda world, bound: world.house.place[bound["r"]] == world.place,
    "examineobject": lambda world, bound: bound["o"] == world.held,  # by a comma in the domain
    "openobject": World._open,
    "closeobject": World._close,
    "pickupobject": World._take,
    "putobject": World._put,
    "cleanobject": lambda world, bound: world._treat(bound, "cleanobject", "isclean"),
    "heatobject": lambda world, bound: world._treat(bound, "heatobject", "ishot", "iscool"),
    "coolobject": lambda world, bound: world._treat(bound, "coolobject", "iscool", "ishot"),
    "toggleobject": World._toggle,
    "sliceobject": World._slice,
}
