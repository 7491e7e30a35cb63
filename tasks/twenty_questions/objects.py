"""The objects of Twenty Questions: our own table, and lists in the layout of LMRL-Gym's release."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from importlib.resources import files
from pathlib import Path

from lmgym.env.games.questions import Predicate, Scale, Table, plain, read_predicates
from lmgym.errors import InstanceError

MORE = "bigger|larger|taller|longer|greater|wider"
LESS = "smaller|shorter|tinier|narrower"
THINGS = {  # what sizes are compared with, beside the objects: longest side in cm
    "person": 170.0, "human": 170.0, "human being": 170.0, "man": 170.0, "woman": 165.0, "child": 110.0, "baby": 50.0,
    "you": 170.0, "me": 170.0, "people": 170.0, "house": 1000.0, "building": 2000.0, "room": 500.0, "car": 450.0,
    "truck": 700.0, "dog": 80.0, "horse": 240.0, "mouse": 9.0, "hand": 18.0, "finger": 8.0, "fist": 10.0, "coin": 2.5,
    "penny": 2.0, "book": 25.0, "shoebox": 33.0, "shoe box": 33.0, "breadbox": 40.0, "bread box": 40.0, "box": 40.0,
    "microwave": 50.0, "basketball": 24.0, "tennis ball": 7.0, "baseball": 7.5, "golf ball": 4.0, "backpack": 50.0,
    "suitcase": 70.0, "door": 200.0, "head": 25.0, "shoe": 30.0, "meter": 100.0, "foot": 30.0, "inch": 2.5,
}  # fmt: skip
WEIGHTS = {"person": 70.0, "human": 70.0, "man": 75.0, "car": 1400.0, "book": 0.5, "brick": 2.5, "feather": 0.001}
DICTIONARY = "DEFAULT_OBJECT_DICT"  # name in the release's data.py


@cache
def our_table() -> Table:
    """Return the 158 objects with their predicates."""
    categories = _categories()
    aliases = {name: tuple(rest) for name, *rest in (names.split(";") for _, names, *_ in _rows())}
    sets = {f"@{name}": frozenset(members) for name, members in categories.items()}
    sets["@all"] = frozenset(aliases)
    cm, kg = ({name: sizes[at] for name, sizes in _sizes().items()} for at in (0, 1))
    text = files(__package__).joinpath("predicates.txt").read_text(encoding="utf-8")
    predicates = read_predicates(text, sets, {"cm": cm, "kg": kg})
    return Table(aliases, predicates, _scales(aliases, cm, kg))


def official_table(path: str | os.PathLike[str]) -> Table:
    """Return the objects of a list: LMRL-Gym's `data.py`, or JSON, {category: ["name;alias", ...]}.

    Of an object that our table lacks the oracle knows what all our objects of its category have in common; the rest is
    unknown. Raises InstanceError for another layout.
    """
    ours, our_categories = our_table(), _categories()
    categories: dict[str, str] = {}
    aliases: dict[str, tuple[str, ...]] = {}
    for category, names in _listed(Path(path)).items():
        category = {"jewelry": "jewellery"}.get(category.lower(), category.lower())
        for entry in names:
            name, *others = (each.strip().lower() for each in entry.split(";"))
            aliases[name], categories[name] = tuple(others), category if category in our_categories else ""
    shared = {
        name: ours.owners[plain(each)]
        for name in aliases
        for each in (name, *aliases[name])
        if plain(each) in ours.owners
    }
    predicates = tuple(_carried_over(each, categories, shared, our_categories) for each in ours.predicates)
    sizes = _sizes()
    cm, kg = ({name: sizes[our_name][at] for name, our_name in shared.items()} for at in (0, 1))
    return Table(aliases, predicates, _scales(aliases, cm, kg))


def _carried_over(
    predicate: Predicate, categories: Mapping[str, str], shared: Mapping[str, str], ours: Mapping[str, list[str]]
) -> Predicate:
    """Return a predicate of our table for the objects of a list."""
    yes, unknown = set(), set()
    for name, category in categories.items():
        alike = [shared[name]] if name in shared else ours.get(category, [])
        votes = {each in predicate.members for each in alike}
        if votes == {True}:
            yes.add(name)
        elif votes != {False}:
            unknown.add(name)
    return replace(predicate, members=frozenset(yes), unknown=frozenset(unknown))


def _listed(path: Path) -> dict[str, list[str]]:
    try:
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".py":
            listed = next(
                ast.literal_eval(node.value)
                for node in ast.parse(text).body
                if isinstance(node, ast.Assign)
                and isinstance(node.targets[0], ast.Name)
                and node.targets[0].id == DICTIONARY
            )
        else:
            listed = json.loads(text)
        if not listed or not all(isinstance(name, str) for names in listed.values() for name in names):
            raise ValueError("names must be texts")
    except (OSError, ValueError, SyntaxError, StopIteration, AttributeError, TypeError, RecursionError) as error:
        problem = f"objects={str(path)!r}: neither JSON {{category: [names]}} nor LMRL-Gym's data.py with {DICTIONARY}"
        raise InstanceError(f"{problem}: {error!r}") from error
    return dict(listed)


def _scales(
    aliases: Mapping[str, tuple[str, ...]], cm: Mapping[str, float], kg: Mapping[str, float]
) -> tuple[Scale, Scale]:
    def named(values: Mapping[str, float]) -> dict[str, float]:
        return {plain(alias): value for name, value in values.items() for alias in (name, *aliases[name])}

    return Scale(MORE, LESS, THINGS | named(cm)), Scale("heavier", "lighter", WEIGHTS | named(kg))


@cache
def _rows() -> list[tuple[str, str, float, float]]:
    """Return the rows of `objects.txt`: category, names, cm, kg."""
    rows, category = [], ""
    for line in files(__package__).joinpath("objects.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            category = line.strip("[]")
        elif line and not line.startswith("#"):
            names, cm, kg = line.split("|")
            rows.append((category, names.strip(), float(cm), float(kg)))
    return rows


def _categories() -> dict[str, list[str]]:
    categories: dict[str, list[str]] = {}
    for category, names, *_ in _rows():
        categories.setdefault(category, []).append(names.partition(";")[0])
    return categories


def _sizes() -> dict[str, tuple[float, float]]:
    return {names.partition(";")[0]: (cm, kg) for _, names, cm, kg in _rows()}
