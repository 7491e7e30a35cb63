"""Small tasks that show what the real ones rarely do: two seats, pictures, any Unicode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError

RACE = TaskSpec(
    id="test/Race-v0",
    entry_point=f"{__name__}:Race",
    summary="Say 1 or 2 in turn; who brings the sum to 5 wins.",
    max_turns=9,
    splits={"train": 10},
    score="1 when won",
    references={},
    seats=("black",),
)
GALLERY = replace(RACE, id="test/Gallery-v0", entry_point=f"{__name__}:Gallery", max_turns=4, seats=())
ALL_UNICODE = "".join(chr(code) for code in (0, 9, 10, 0x7F, 0xE9, 0x5D0, 0x202E, 0x6F22, 0xFFFF, 0x1F642, 0x10FFFF))


class Race(TextEnv):
    """Every turn costs 0.25; the winner earns 1, the loser -1."""

    SPEC = RACE

    def __init__(self, *, first: str = "agent", **common: Any) -> None:
        super().__init__(**common)
        self.first = first

    def begin(self, index: int) -> Reply:
        self.sum, self.turn = 0, self.first
        return Reply("sum 0", seat=self.turn)

    def act(self, action: str) -> Reply:
        actor, other = self.turn, {"agent": "black", "black": "agent"}[self.turn]
        if action not in ("1", "2"):
            return Reply("1 or 2", valid=False, seat=actor, reward={"step": -0.25})
        self.sum, self.turn = self.sum + int(action), other
        if self.sum < 5:
            return Reply(f"sum {self.sum}", seat=other, reward={"step": -0.25})
        scores = {actor: 1.0, other: 0.0}
        reward = {"step": -0.25, "win": 1.0}
        figures = {"sum": self.sum, "won": scores["agent"]}
        return Reply("over", done=True, score=scores, reward=reward, others={other: -1.0}, figures=figures)

    def scripted(self, seat: str) -> str:
        return "1"

    def admissible(self) -> list[str]:
        return ["1", "2"]

    def score_if_cut(self) -> float:
        return 0.5

    def figures_if_cut(self) -> dict[str, float]:
        return {"sum": self.sum}

    def load(self, instance: Mapping[str, Any]) -> Reply:
        self.sum, self.turn = int(instance["sum"]), self.first
        return Reply(f"sum {self.sum}", seat=self.turn)

    def oracle(self) -> Iterator[str]:
        while True:
            yield "2"


class Ledger(Race):
    """The race, where a cut scores both seats by the sum."""

    def score_if_cut(self) -> dict[str, float]:
        return {"agent": (self.sum - 2) / 4, "black": (6 - self.sum) / 4}


class Archive(Race):
    """The race on official data, of which as many sums as SHELF has are here."""

    SHELF: ClassVar[list[int]] = []

    def size(self) -> int:
        if not self.SHELF:
            raise InstanceError("no official sums here")
        return len(self.SHELF)

    def begin(self, index: int) -> Reply:
        return replace(super().begin(index), text=f"official {self.SHELF[index]}")

    def title(self, index: int) -> str:
        return f"sum-{self.SHELF[index]}"

    def index_of(self, title: str) -> int | None:
        titles = [self.title(index) for index in range(self.size())]
        return titles.index(title) if title in titles else None


def says_two(text: str) -> str:
    """Play a seat for `others="python:..."`."""
    return "2" if text.startswith("sum") else "?"


class Gallery(TextEnv):
    """Echoes the action between characters of every kind and shows as many pictures as the turn's number."""

    SPEC = GALLERY
    PICTURES = Images(3, 2, most=4)

    def begin(self, index: int) -> Reply:
        self.index, self.turn = index, 0
        return Reply(ALL_UNICODE)

    def act(self, action: str) -> Reply:
        self.turn += 1
        pictures = tuple(np.full((3, 2, 3), 10 * self.index + i, np.uint8) for i in range(self.turn))
        return Reply(f"{ALL_UNICODE}{action}{ALL_UNICODE}", images=pictures)
