"""Parse the PDDL domain of a game file and check that the engine implements it.

The engine's actions are code. So that it never plays by rules other than the file's, every action of the domain is
compared, without comments and spaces, with a fingerprint of the one it knows. Only what differs between published
versions is read from the text: which kinds of receptacle clean, heat and cool, what slices, whether there is `help`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

from lmgym.errors import InstanceError

Tree: TypeAlias = "str | list[Tree]"

# First 12 hex digits of the SHA-256 of each action as JSON, its list of kinds taken out (see `_kinds`).
ACTIONS = {
    "look": "b6ca43dfd34f",
    "inventory": "ff816fb95122",
    "examinereceptacle": "c73ba804fb51",
    "examineobject": "9c1be0aa8327",
    "gotolocation": "e777b2750c3a",
    "openobject": "61d04984da17",
    "closeobject": "23b628b39809",
    "pickupobject": "48d0b896b3e9",
    "putobject": "0054a6e29759",
    "cleanobject": "d6970b599750",
    "heatobject": "ed2e784147d6",
    "coolobject": "debc20b7f7f0",
    "toggleobject": "2ef90177af7a",
    "sliceobject": "e67a7103f369",
    "help": "28cc3ac35e1b",
}
WITH_KINDS = ("cleanobject", "heatobject", "coolobject", "sliceobject")


@dataclass(frozen=True)
class Domain:
    """The parts of the domain that differ between versions."""

    actions: frozenset[str]  # names, lower case
    kinds: dict[str, frozenset[str]]  # of the appliance that cleans, heats or cools, of the thing that slices


def parse(text: str) -> list[Tree]:
    """Return nested lists of lower-case words; `;` starts a comment."""
    stack: list[list[Tree]] = [[]]
    for token in re.findall(r"[()]|[^\s()]+", re.sub(r";[^\n]*", "", text).lower()):
        if token == "(":
            stack.append([])
        elif token != ")":
            stack[-1].append(token)
        elif len(stack) > 1:
            inner = stack.pop()
            stack[-1].append(inner)
        else:
            raise InstanceError("a PDDL text closes more brackets than it opens")
    if len(stack) != 1:
        raise InstanceError(f"a PDDL text leaves {len(stack) - 1} brackets open")
    return stack[0]


@lru_cache(maxsize=16)
def read_domain(text: str) -> Domain:
    """Parse the domain; raise InstanceError if an action differs from the engine's."""
    trees = parse(text)
    if len(trees) != 1 or not isinstance(trees[0], list):
        raise InstanceError("the game's pddl_domain is not one (define ...) form")
    actions, kinds = set(), {}
    for form in trees[0]:
        if not isinstance(form, list) or form[:1] != [":action"] or len(form) < 2:
            continue
        name = str(form[1])
        if name in WITH_KINDS:
            form, kinds[name] = _kinds(form)
        print_ = hashlib.sha256(json.dumps(form).encode()).hexdigest()[:12]
        if ACTIONS.get(name) != print_:
            raise InstanceError(f"the game's PDDL action {name!r} ({print_}) is not one of those the engine plays")
        actions.add(name)
    missing = ACTIONS.keys() - actions - {"help"}
    if missing:
        raise InstanceError(f"the game's pddl_domain lacks the actions {sorted(missing)}")
    return Domain(frozenset(actions), kinds)


def _kinds(action: Sequence[Tree]) -> tuple[list[Tree], frozenset[str]]:
    """Return the action without the alternatives of its `(or (receptacleType ?r K) ...)`, and these kinds."""
    kinds: set[str] = set()

    def strip(tree: Tree) -> Tree:
        if isinstance(tree, str):
            return tree
        if tree[:1] == ["or"] and all(len(t) == 3 and t[0] in ("receptacletype", "objecttype") for t in tree[1:]):
            kinds.update(str(t[2]) for t in tree[1:])
            return ["or", tree[1][:2]]
        return [strip(t) for t in tree]

    return [strip(t) for t in action], frozenset(kinds)
