"""The goal of a game: a conjunction of existential clauses over the world, which covers ALFWorld's six types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from lmgym.errors import InstanceError
from lmgym.tasks.alfworld.household import ABILITIES, STATES, Household, declared_types
from lmgym.tasks.alfworld.logic import Tree, parse
from lmgym.tasks.alfworld.world import World

Literal = tuple[str, ...]  # predicate, arguments
AGENT = "agent"
TRUTH: dict[str, Callable[[World, int, int], bool]] = {  # of two arguments, in the present state
    "inreceptacle": lambda world, thing, receptacle: thing in world.contents[receptacle],
    "objectatlocation": lambda world, thing, place: (thing, place) in world.lying,
    "receptacleatlocation": lambda world, receptacle, place: world.house.place[receptacle] == place,
    "atlocation": lambda world, _, place: world.place == place,
    "holds": lambda world, _, thing: world.held == thing,
    "=": lambda _, one, other: one == other,
    "not =": lambda _, one, other: one != other,
}


@dataclass(frozen=True)
class Clause:
    """An existential clause: some values of the variables make every literal true."""

    domains: dict[str, tuple[int, ...]]  # values that the unchanging facts leave, fewest first
    kinds: dict[str, str]  # type of each variable: object, receptacle, location, agent
    literals: tuple[Literal, ...]  # what changes, or ties two variables
    due: tuple[tuple[Literal, ...], ...] = field(default=())  # literals by the variable that completes them

    def holds(self, world: World) -> bool:
        """Return True if the clause holds in the present state of `world`."""
        return self._holds(world, {}, 0)

    def _holds(self, world: World, bound: dict[str, int], depth: int) -> bool:
        """Return True if values of the variables from `depth` on complete a binding that makes the clause true."""
        if depth == len(self.due):
            return True
        variable = tuple(self.domains)[depth]
        for value in self.domains[variable]:
            bound[variable] = value
            if all(true(world, literal, bound) for literal in self.due[depth]) and self._holds(world, bound, depth + 1):
                return True
        return False


@dataclass(frozen=True)
class HouseholdGoal:
    """The goal of a game."""

    clauses: tuple[Clause, ...]
    asks: frozenset[str]  # the changing predicates: only actions that touch one can win

    def holds(self, world: World) -> bool:
        """Return True if the game is won in its present state."""
        return all(clause.holds(world) for clause in self.clauses)


def true(world: World, literal: Literal, bound: dict[str, int]) -> bool:
    """Return the truth of a literal of the goal under a binding of its variables."""
    if len(literal) == 2:
        return bound[literal[1]] in world.states[literal[0]]
    return TRUTH[literal[0]](world, bound[literal[1]], bound[literal[2]])


def read_goal(text: str, house: Household) -> HouseholdGoal:
    """Return the goal of a PDDL problem; raise InstanceError unless it is a conjunction of existential clauses."""
    form = parse(text)[0]
    body = form[1] if len(form) == 2 else None
    parts = body[1:] if isinstance(body, list) and body[:1] == ["and"] else [body]
    clauses = []
    for part in parts:
        kinds: dict[str, str] = {}
        literals: list[Literal] = []
        _collect(part, kinds, literals)
        clauses.append(_clause(kinds, list(dict.fromkeys(literals)), house))
    asks = {literal[0] for clause in clauses for literal in clause.literals}
    return HouseholdGoal(tuple(clauses), frozenset(asks - {"=", "not =", "receptacleatlocation"}))


def _collect(tree: Tree | None, kinds: dict[str, str], literals: list[Literal]) -> None:
    """Flatten nested `exists` and `and`."""
    match tree:
        case ["and", *parts]:
            for part in parts:
                _collect(part, kinds, literals)
        case ["exists", [*declared], body]:
            for name, kind in declared_types(map(str, declared)).items():
                if name in kinds:
                    raise InstanceError(f"the game's goal declares {name} twice")
                kinds[name] = kind
            _collect(body, kinds, literals)
        case ["not", ["=", str(one), str(other)]]:
            literals.append(("not =", one, other))
        case [str(predicate), *arguments] if predicate not in ("or", "not", "forall", "imply", "when"):
            literals.append((predicate, *map(str, arguments)))
        case _:
            raise InstanceError(f"the game's goal has a part that the engine cannot read: {tree}")


def _clause(kinds: dict[str, str], literals: list[Literal], house: Household) -> Clause:
    sizes = {"object": len(house.things), "receptacle": len(house.receptacles), "location": len(house.places)}
    domains: dict[str, set[int]] = {name: set(range(sizes.get(kind, 1))) for name, kind in kinds.items()}
    changing = []
    for literal in literals:
        match literal:
            case ("objecttype", name, kind) if name in kinds:
                domains[name] &= house.thing_kinds.get(kind, frozenset())
            case ("receptacletype", name, kind) if name in kinds:
                domains[name] &= house.receptacle_kinds.get(kind, frozenset())
            case (predicate, name) if predicate in STATES and name in kinds:
                changing.append(literal)
            case (predicate, name) if predicate in ABILITIES and name in kinds:
                domains[name] &= house.facts.get(predicate, frozenset())
            case (predicate, one, other) if predicate in TRUTH and one in kinds and other in kinds:
                changing.append(literal)
            case _:
                raise InstanceError(f"the game's goal asks {literal}, which the engine cannot answer")
    order = sorted(domains, key=lambda name: len(domains[name]))
    due: list[list[Literal]] = [[] for _ in order]
    for literal in changing:
        due[max(order.index(name) for name in literal[1:])].append(literal)
    values = {name: tuple(sorted(domains[name])) for name in order}
    return Clause(values, kinds, tuple(changing), tuple(map(tuple, due)))
