"""The game engine: commands in, text out, over a world and its goal.

Observations, admissible commands and `won` are those of the stock engine (TextWorld's PddlEnv with ALFWorld's
wrappers), byte for byte, its slips included: they are named where they are played.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from lmgym.errors import InstanceError
from lmgym.tasks.alfworld.goal import HouseholdGoal, read_goal
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
from lmgym.tasks.alfworld.household import Household, read_household
from lmgym.tasks.alfworld.logic import Domain, read_domain
from lmgym.tasks.alfworld.world import ACTIONS, APPLIANCES, Bound, World

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
Command = tuple[re.Pattern[str], str, tuple[str, ...]]  # pattern, action, its variables in order


class HouseholdGame(World):
    """A game in play: a world, a goal and its wording."""

    def __init__(self, house: Household, goal: HouseholdGoal, domain: Domain, grammar: Grammar, task: str) -> None:
        super().__init__(house, domain)
        self.goal, self.grammar, self.task = goal, grammar, task
        self._numbers = {
            "receptacles": {name: i for i, name in enumerate(house.receptacles)},
            "things": {name: i for i, name in enumerate(house.things)},
        }
        self._patterns = _patterns(tuple((a, t) for a, t in grammar.commands.items() if a in domain.actions))
        self._winning = {action for action, touched in TOUCHES.items() if touched & goal.asks}
        self.won = goal.holds(self)

    @classmethod
    def read(cls, game: Mapping[str, Any], *, task: str | None = None) -> HouseholdGame:
        """Open the contents of a `game.tw-pddl` file; `task` replaces the goal's sentence, not the goal."""
        text, own = split_task(str(game["grammar"]))
        grammar, domain = read_grammar(text), read_domain(str(game["pddl_domain"]))
        if wordless := domain.actions - grammar.commands.keys():
            raise InstanceError(f"the game's grammar has no words for {sorted(wordless)}")
        house, goal = read_household(str(game["pddl_problem"]))
        return cls(house, read_goal(goal, house), domain, grammar, own if task is None else task)

    # Playing -----------------------------------------------------------------------------------------------------

    def opening(self) -> str:
        """Return the first observation, which `look` never repeats."""
        return self._say("intro", {})

    def step(self, command: str) -> str | None:
        """Play a command and return the answer; return None if the game does not accept it (it says NOTHING)."""
        command = command.strip()
        for pattern, action, variables in self._patterns.get(command.partition(" ")[0], ()):
            match = pattern.fullmatch(command)
            bound = match and self._bind(variables, match.groups())
            if bound is not None and ACTIONS[action](self, bound):
                if action in self._winning:
                    self.won = self.goal.holds(self)
                return self._say(self.grammar.feedback[action], bound)
        return None

    def commands(self) -> list[str]:
        """Return all commands that the game accepts in the present state, sorted."""
        house, fact = self.house, self.house.facts
        commands = [self.words(action) for action in ("look", "inventory", "help") if action in self.domain.actions]
        commands += [
            self.words("gotolocation", r=r) for r, at in enumerate(house.place) if at >= 0 and at != self.place
        ]
        for r in self.here():
            commands.append(self.words("examinereceptacle", r=r))
            if r in fact.get("openable", ()):
                commands.append(self.words("closeobject" if r in self.opened else "openobject", r=r))
            commands += [self.words("toggleobject", o=o) for o in self.contents[r] if o in fact.get("toggleable", ())]
            if self.held < 0 and not self.shut(r):
                takeable = fact.get("pickupable", frozenset())
                commands += [self.words("pickupobject", o=o, r=r) for o in self.contents[r] if o in takeable]
        if self.held >= 0:
            commands += self._commands_in_hand()
        return sorted(set(commands))

    def words(self, action: str, **bound: int) -> str:
        """Return the command of an action in the grammar's words."""
        names = {variable: self._name(variable, number) for variable, number in bound.items()}
        return self.grammar.commands[action].format(**names)

    def _commands_in_hand(self) -> list[str]:
        held, fact = self.held, self.house.facts
        commands = [self.words("examineobject", o=held)]
        for r in self.here():
            if (held, r) in self.house.fits and not self.shut(r):
                commands.append(self.words("putobject", o=held, r=r))
            for action, able in APPLIANCES.items():
                if held in fact.get(able, ()) and self.works_at(r, action):
                    commands.append(self.words(action, o=held, r=r))
        if self.slices(held):
            near = (o for o in fact.get("sliceable", ()) if (o, self.place) in self.lying)
            commands += [self.words("sliceobject", co=o, ko=held) for o in near]
        return commands

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
        pieces = []
        for part in option.parts:
            match part:
                case str():
                    pieces.append(part)
                case Name(variable):
                    pieces.append(self._name(variable, bound[variable]))
                case Use(other):
                    pieces.append(self._say(other, bound))
                case Listing():
                    pieces.append(self._list(part, bound))
        return "".join(pieces)

    def _applies(self, option: Option, bound: Bound) -> bool:
        if option.query:
            return bool(self._answers(option.query, bound))
        return all(self._fact(fact, bound[variable]) for fact, variable in option.facts)

    def _fact(self, fact: str, number: int) -> bool:
        if fact == "opened":
            return number in self.opened
        if fact == "not_istoggled":
            return False  # nothing is ever turned off, so this is never stated
        return number in self.states[fact] if fact in self.states else self.can(fact, number)

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


@lru_cache(maxsize=16)
def _patterns(commands: tuple[tuple[str, str], ...]) -> dict[str, list[Command]]:
    patterns: dict[str, list[Command]] = {}
    for action, template in commands:
        variables = tuple(re.findall(r"\{(\w+)\}", template))
        pattern = "(.+)".join(map(re.escape, re.split(r"\{\w+\}", template)))
        patterns.setdefault(template.partition(" ")[0], []).append((re.compile(pattern), action, variables))
    return patterns
