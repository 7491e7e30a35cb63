"""Tasks of a few letters that show what a recipe is for; a policy of a few thousand weights learns them in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec

LETTERS = "abcd"
STREAM = {"train": 0, "test": 1}


def _spec(name: str, summary: str, *, max_turns: int, seats: tuple[str, ...] = ()) -> TaskSpec:
    return TaskSpec(
        id=f"test/{name}-v0",
        entry_point=f"{__name__}:{name}",
        summary=summary,
        max_turns=max_turns,
        splits={"train": 1000, "test": 1000},
        score="1 when right",
        references={"oracle": 1.0},
        seats=seats,
    )


SLOT = _spec("Slot", "Ask the user for a letter, then say it.", max_turns=3, seats=("user",))
TWICE = _spec("Twice", "Translate a digit into a letter, in two attempts.", max_turns=2)
WORK = _spec("Work", "Work twice, then submit; loitering pays at once.", max_turns=5)
PEEK = _spec("Peek", "Look where the digit says, then say the letter found there.", max_turns=3)
BARE = replace(_spec("Bare", "Takes any word.", max_turns=1), deterministic=False)
SPECS = (SLOT, TWICE, WORK, PEEK, BARE)


class SmallTask(TextEnv):
    """Draws a digit and a letter for each instance."""

    def begin(self, index: int) -> Reply:
        chance = np.random.default_rng([STREAM[self.split], index])
        self.digit, self.letter = (int(n) for n in chance.integers(4, size=2))
        self.turn = 0
        return self.opened()

    def opened(self) -> Reply:
        raise NotImplementedError

    def admissible(self) -> list[str]:
        return list(LETTERS)


def ended(text: str, right: bool, **more: Any) -> Reply:
    """Return the last reply; `more` may have other rewards than 1 for what is right."""
    return Reply(text, **{"reward": float(right), "done": True, "score": float(right), **more})


class Slot(SmallTask):
    """The user knows a letter and tells it when asked by `0`; a guess is right once in four."""

    SPEC = SLOT

    def opened(self) -> Reply:
        self.told = False
        return Reply("0")

    def act(self, action: str) -> Reply:
        if self._seat == "user":
            self.told = True
            return Reply(action)
        self.turn += 1
        if action in LETTERS and action:
            right = action == LETTERS[self.letter]
            return ended("1" if right else "2", right, reward={"right": float(right)})
        if action == "0" and not self.told:
            return Reply(LETTERS[self.letter], reward={"asked": 0.0}, seat="user")
        return Reply("0", reward={"invalid": -0.1}, valid=False)

    def scripted(self, seat: str) -> str:
        return LETTERS[self.letter]

    def demonstrator(self) -> Iterator[str]:
        while True:
            yield LETTERS[self.letter] if self.told else "0"

    def admissible(self) -> list[str]:
        return ["0", *LETTERS]


def user(messages: list[dict[str, Any]]) -> str:
    """Return the letter that the user of Slot sees, as `python:tests.train.small_tasks:user`."""
    return str(messages[-1]["content"])


class Twice(SmallTask):
    """Shows the same digit twice; each answer is an attempt, and the second is scored."""

    SPEC = TWICE

    def opened(self) -> Reply:
        return Reply(str(self.digit))

    def act(self, action: str) -> Reply:
        self.turn += 1
        right = action == LETTERS[self.digit]
        terms = {"attempt": float(right)}
        return ended("?", right, reward=terms) if self.turn == 2 else Reply(str(self.digit), reward=terms)

    def demonstrator(self) -> Iterator[str]:
        while True:
            yield LETTERS[self.digit]


class Work(SmallTask):
    """`a` works, `b` loiters for 0.5 at once, `c` submits: a success if the work was done twice."""

    SPEC = WORK

    def opened(self) -> Reply:
        self.done = 0
        return Reply("0")

    def act(self, action: str) -> Reply:
        if action == "c":
            right = self.done == 2
            return ended("3", right, reward={"outcome": float(right), "idle": 0.0})
        self.done = min(2, self.done + (action == "a"))
        return Reply(str(self.done), reward={"outcome": 0.0, "idle": 0.5 * (action == "b")})

    def demonstrator(self) -> Iterator[str]:
        while True:
            yield "c" if self.done == 2 else "a"


class Peek(SmallTask):
    """The digit names a place, `a` to `d`; who looks there sees the letter to say, who looks elsewhere another."""

    SPEC = PEEK

    def opened(self) -> Reply:
        return Reply(str(self.digit))

    def act(self, action: str) -> Reply:
        self.turn += 1
        if self.turn == 1:
            place = LETTERS.find(action) if action else -1
            return Reply(LETTERS[(self.letter + place - self.digit) % 4] if place >= 0 else "?")
        return ended("?", action == LETTERS[self.letter])

    def demonstrator(self) -> Iterator[str]:
        while True:
            yield LETTERS[self.letter if self.turn else self.digit]


class Bare(TextEnv):
    """Has no demonstrator, admissible actions, answer, second seat, picture or replay."""

    SPEC = BARE

    def begin(self, index: int) -> Reply:
        return Reply("?")

    def act(self, action: str) -> Reply:
        return ended("?", right=False)
