"""All families of goals, and their levels by the length of the oracle's plan."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, zip_longest
from types import ModuleType

import numpy as np

from lmgym.tasks.desktop import (
    combined,
    documents,
    filing,
    infeasible,
    pages,
    pictures,
    sheets,
    slides,
    terminals,
    texts,
)
from lmgym.tasks.desktop.goals import Builder

LEVELS = {1: range(2, 5), 2: range(5, 11), 3: range(11, 26)}  # actions, the final one included
_QUICK = (texts, terminals, filing, infeasible)  # most of their applications start in a second
_OFFICE = (sheets, documents, slides, combined)


def _in_turns(areas: Sequence[ModuleType]) -> list[tuple[Builder, int]]:
    """Return the families of several areas, one of each in turn."""
    return [pair for pair in chain(*zip_longest(*(area.FAMILIES.items() for area in areas))) if pair is not None]


# what came later stands last, so that the test split keeps its instances and published entries stay valid
_LATER = {**pictures.FAMILIES, **pages.FAMILIES, **combined.LATER}
_ALL = [*_in_turns(_QUICK), *_in_turns(_OFFICE), *_LATER.items()]
FAMILIES: dict[str, Builder] = {build.__name__: build for build, _ in _ALL}
LIGHT = frozenset({"lxterminal", "mousepad"})  # programs that start in half a second and show few elements
LEVEL: dict[str, int] = {build.__name__: level for build, level in _ALL}


def programs(build: Builder) -> set[str]:
    """Return the programs that a family starts."""
    return {launch.program for launch in build(np.random.default_rng(0)).launches}
