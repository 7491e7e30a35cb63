"""The game: the state of a house, the sixteen actions of the PDDL domain, and what the game says.

Observations, admissible commands and `won` are those of the stock engine (TextWorld's PddlEnv with ALFWorld's
wrappers), byte for byte, its slips included: they are named where they are played.
"""

from __future__ import annotations

import re
from bisect import insort
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from lmgym.tasks.alfworld.goal import Goal, read_goal
from lmgym.tasks.alfworld.grammar import (
    FLOOR,
    HERE,
    VARIABLES,
    Grammar,
    Listing,
    Name,
    Option,
    Use,
    read_grammar,
    split_task,
)
from lmgym.tasks.alfworld.household import STATES, Household, read_household
from lmgym.tasks.alfworld.logic import Domain, read_domain

NOTHING = "Nothing happens."  # the stock engine's answer to all that it does not take
TOUCHES = {  # the facts that an action changes and a goal may ask
    "gotolocation": {"atlocation"},
    "pickupobject": {"inreceptacle", "objectatlocation", "holds"},
    "putobject": {"inreceptacle", "objectatlocation", "holds"},
    "cleanobject": {"isclean"},
    "heatobject": {"ishot", "iscool"},
    "coolobject": {"ishot", "iscool"},
    "toggleobject": {"istoggled"},
    "sliceobject": {"issliced"},
}
Bound = dict[str, int]  # variable of an action -> number of a receptacle, thing or place
Command = tuple[re.Pattern[str], str, tuple[str, ...]]  # pattern, action, its variables in order


class Game:
    """One game in play."""

    def __init__(self, house: Household, goal: Goal, domain: Domain, grammar: Grammar, task: str) -> None:
        self.house, self.goal, self.domain, self.grammar, self.task = house, goal, domain, grammar, task
        self.place = house.start
        self.held = -1  # a thing, or -1
        self.contents = [list(inside) for inside in house.contents]
        self.opened = set(house.facts.get("opened", ()))
        self.states = {state: set(house.facts.get(state, ())) for state in STATES}
        self.lying = set(house.lying)
        self.left: set[tuple[int, int]] = set()  # (thing, receptacle): taken out of it and not put back
        self._numbers = {
            "receptacles": {name: i for i, name in enumerate(house.receptacles)},
            "things": {name: i for i, name in enumerate(house.things)},
        }
        self._patterns = _patterns(grammar, domain)
        self._winning = {action for action, touched in TOUCHES.items() if touched & goal.asks}
        self.won = goal.holds(self)

    @classmethod
    def read(cls, game: Mapping[str, Any], *, task: str | None = None) -> Game:
        """Open the contents of a `game.tw-pddl` file; `task` replaces the goal's sentence, not the goal."""
        grammar, own = split_task(str(game["grammar"]))
        house, goal = read_household(str(game["pddl_problem"]))
        domain = read_domain(str(game["pddl_domain"]))
        return cls(house, read_goal(goal, house), domain, read_grammar(grammar), own if task is None else task)

    # Playing -----------------------------------------------------------------------------------------------------

    def opening(self) -> str:
        """Return the first observation; also what `look` would never say again."""
        return self._say("intro", {})

    def step(self, command: str) -> str | None:
        """Play a command and return the answer; None where the game does not take it (it says NOTHING)."""
        command = command.strip()
        for pattern, action, variables in self._patterns.get(command.partition(" ")[0], ()):
            found = pattern.fullmatch(command)
            bound = found and self._bind(variables, found.groups())
            if bound is not None and ACTIONS[action](self, bound):
                if action in self._winning:
                    self.won = self.goal.holds(self)
                return self._say(self.grammar.feedback[action], bound)
        return None

    def here(self) -> list[int]:
        """Return the receptacles at the agent's place."""
        return [r for r, place in enumerate(self.house.place) if place == self.place]

    def shut(self, receptacle: int) -> bool:
        """Whether a receptacle must be opened before anything is taken out or put in."""
        return receptacle in self.house.facts.get("openable", ()) and receptacle not in self.opened

    def commands(self) -> list[str]:
        """Return all commands that the game takes in the present state, sorted."""
        house, fact = self.house, self.house.facts
        found = [self.words(action) for action in ("look", "inventory", "help") if action in self.domain.actions]
        found += [
            self.words("gotolocation", r=r) for r, at in enumerate(house.place) if at >= 0 and at != self.place
        ]
        for r in self.here():
            found.append(self.words("examinereceptacle", r=r))
            if r in fact.get("openable", ()):
                found.append(self.words("closeobject" if r in self.opened else "openobject", r=r))
            found += [self.words("toggleobject", o=o) for o in self.contents[r] if o in fact.get("toggleable", ())]
            if self.held < 0 and not self.shut(r):
                takeable = fact.get("pickupable", frozenset())
                found += [self.words("pickupobject", o=o, r=r) for o in self.contents[r] if o in takeable]
        if self.held >= 0:
            found += self._commands_in_hand()
        return sorted(set(found))

    def words(self, action: str, **bound: int) -> str:
        """Return the command of an action in the grammar's words."""
        names = {variable: self._name(variable, number) for variable, number in bound.items()}
        return self.grammar.commands[action].format(**names)

    def _commands_in_hand(self) -> list[str]:
        held, fact = self.held, self.house.facts
        found = [self.words("examineobject", o=held)]
        for r in self.here():
            if (held, r) in self.house.fits and not self.shut(r):
                found.append(self.words("putobject", o=held, r=r))
            for action, able in APPLIANCES.items():
                if held in fact.get(able, ()) and self._is(r, action):
                    found.append(self.words(action, o=held, r=r))
        if self._slices(held):
            can = (o for o in fact.get("sliceable", ()) if (o, self.place) in self.lying)
            found += [self.words("sliceobject", co=o, ko=held) for o in can]
        return found

    # Actions: each says whether it can be done, and does it --------------------------------------------------------

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

    def _examine_receptacle(self, bound: Bound) -> bool:
        return self.house.place[bound["r"]] == self.place

    def _examine_thing(self, bound: Bound) -> bool:
        return bound["o"] == self.held  # a comma in the domain keeps all but the held from being examined

    def _open(self, bound: Bound) -> bool:
        r = bound["r"]
        if self.house.place[r] != self.place or not self.shut(r):
            return False
        self.opened.add(r)
        return True

    def _close(self, bound: Bound) -> bool:
        r = bound["r"]
        if self.house.place[r] != self.place or r not in self.opened or r not in self.house.facts.get("openable", ()):
            return False
        self.opened.discard(r)
        return True

    def _take(self, bound: Bound) -> bool:
        o, r = bound["o"], bound["r"]
        if (
            self.held >= 0
            or self.house.place[r] != self.place
            or o not in self.contents[r]
            or o not in self.house.facts.get("pickupable", ())
            or self.shut(r)
        ):
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

    def _at_appliance(self, bound: Bound, action: str) -> bool:
        o, r = bound["o"], bound["r"]
        able = o in self.house.facts.get(APPLIANCES[action], ())
        return able and o == self.held and self.house.place[r] == self.place and self._is(r, action)

    def _clean(self, bound: Bound) -> bool:
        return self._at_appliance(bound, "cleanobject") and self._become(bound["o"], "isclean")

    def _heat(self, bound: Bound) -> bool:
        return self._at_appliance(bound, "heatobject") and self._become(bound["o"], "ishot", "iscool")

    def _cool(self, bound: Bound) -> bool:
        return self._at_appliance(bound, "coolobject") and self._become(bound["o"], "iscool", "ishot")

    def _toggle(self, bound: Bound) -> bool:
        o = bound["o"]
        if o not in self.house.facts.get("toggleable", ()) or not any(o in self.contents[r] for r in self.here()):
            return False
        return self._become(o, "istoggled")  # and for good: the game says "turn on" each time

    def _slice(self, bound: Bound) -> bool:
        o, knife = bound["co"], bound["ko"]
        if knife != self.held or not self._slices(knife) or (o, self.place) not in self.lying:
            return False
        return o in self.house.facts.get("sliceable", ()) and self._become(o, "issliced")

    def _become(self, thing: int, state: str, no_longer: str = "") -> bool:
        self.states[state].add(thing)
        if no_longer:
            self.states[no_longer].discard(thing)
        return True

    def _is(self, receptacle: int, action: str) -> bool:
        kinds = self.domain.kinds[action]
        return any(receptacle in self.house.receptacle_kinds.get(kind, ()) for kind in kinds)

    def _slices(self, thing: int) -> bool:
        return any(thing in self.house.thing_kinds.get(kind, ()) for kind in self.domain.kinds["sliceobject"])

    # Saying --------------------------------------------------------------------------------------------------------

    def _bind(self, variables: tuple[str, ...], names: tuple[str, ...]) -> Bound | None:
        bound = {}
        for variable, name in zip(variables, names, strict=True):
            number = self._numbers[VARIABLES[variable]].get(name)
            if number is None:
                return None
            bound[variable] = number
        return bound

    def _name(self, variable: str, number: int) -> str:
        names: tuple[str, ...] = getattr(self.house, VARIABLES[variable])
        return names[number]

    def _say(self, rule: str, bound: Bound) -> str:
        if rule == "task":
            return self.task
        option = next(option for option in self.grammar.rules[rule] if self._applies(option, bound))
        said = []
        for part in option.parts:
            match part:
                case str():
                    said.append(part)
                case Name(variable):
                    said.append(self._name(variable, bound[variable]))
                case Use(other):
                    said.append(self._say(other, bound))
                case Listing():
                    said.append(self._list(part, bound))
        return "".join(said)

    def _applies(self, option: Option, bound: Bound) -> bool:
        if option.query:
            return bool(self._answers(option.query, bound))
        return all(self._fact(fact, bound[variable]) for fact, variable in option.facts)

    def _fact(self, fact: str, number: int) -> bool:
        if fact == "opened":
            return number in self.opened
        if fact == "not_istoggled":
            return False  # nothing is ever turned off, so this is never stated
        return number in (self.states.get(fact) or self.house.facts.get(fact, ()))

    def _answers(self, query: str, bound: Bound) -> list[int]:
        match query.partition("(")[0]:
            case "inreceptacle":
                return self.contents[bound["r"]]
            case "holds" | "holdsany":
                return [self.held] if self.held >= 0 else []
            case "inreceptacleobject":
                return list(self.house.inner.get(bound["o"], ()))
            case "receptacleatlocation":
                return self.here() if "l" in bound else [r for r, at in enumerate(self.house.place) if at >= 0]
        here = self.here()
        if query == HERE:
            return here
        assert query == FLOOR
        return [o for o, at in sorted(self.lying) if at == self.place for r in here if (o, r) in self.left]

    def _list(self, part: Listing, bound: Bound) -> str:
        kind = "receptacles" if part.query == HERE or part.query.startswith("receptacle") else "things"
        names: tuple[str, ...] = getattr(self.house, kind)
        items = [f"{part.before}{names[number]}{part.after}" for number in self._answers(part.query, bound)]
        if len(items) < 2:
            return items[0] if items else self.grammar.empty
        return self.grammar.separator.join(items[:-1]) + self.grammar.last + items[-1]


APPLIANCES = {"cleanobject": "cleanable", "heatobject": "heatable", "coolobject": "coolable"}
ACTIONS: dict[str, Callable[[Game, Bound], bool]] = {
    "look": Game._look,
    "inventory": Game._always,
    "help": Game._always,
    "gotolocation": Game._go,
    "examinereceptacle": Game._examine_receptacle,
    "examineobject": Game._examine_thing,
    "openobject": Game._open,
    "closeobject": Game._close,
    "pickupobject": Game._take,
    "putobject": Game._put,
    "cleanobject": Game._clean,
    "heatobject": Game._heat,
    "coolobject": Game._cool,
    "toggleobject": Game._toggle,
    "sliceobject": Game._slice,
}


@lru_cache(maxsize=16)
def _patterns_of(commands: tuple[tuple[str, str], ...]) -> dict[str, list[Command]]:
    patterns: dict[str, list[Command]] = {}
    for action, template in commands:
        variables = tuple(re.findall(r"\{(\w+)\}", template))
        pattern = re.compile("".join(
            "(.+)" if piece.startswith("{") else re.escape(piece) for piece in re.split(r"(\{\w+\})", template)
        ))
        patterns.setdefault(template.partition(" ")[0], []).append((pattern, action, variables))
    return patterns


def _patterns(grammar: Grammar, domain: Domain) -> dict[str, list[Command]]:
    return _patterns_of(tuple((a, t) for a, t in grammar.commands.items() if a in domain.actions))
