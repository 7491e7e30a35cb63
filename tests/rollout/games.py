"""Tasks with moods, as a plug-in that spawned players find as well: they break, stall, die and roll dice."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from lmgym.env.actions import parse_json_calls
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from lmgym.errors import BackendError
from tests.env.games import GALLERY, RACE

SPEC = TaskSpec(
    id="test/Dice-v0",
    entry_point=f"{__name__}:Dice",
    summary="Every action rolls a die; three sixes win.",
    max_turns=4,
    splits={"train": 100},
    score="1 when won",
    references={},
)
TRIO = replace(RACE, id="test/Trio-v0", entry_point=f"{__name__}:Trio", seats=("black", "red"))
PHONE = replace(
    RACE, id="test/Phone-v0", entry_point=f"{__name__}:Phone", seats=("user",), parallel_calls=True, max_turns=3
)
HEAVY = replace(SPEC, id="test/Heavy-v0", entry_point=f"{__name__}:Heavy", concurrency=2)
SAVED_DICE = replace(
    SPEC,
    id="test/SavedDice-v0",
    entry_point=f"{__name__}:SavedDice",
    public={"saved": ("all", "even", "lost")},
)
SAVED_TRIO = replace(TRIO, id="test/SavedTrio-v0", entry_point=f"{__name__}:SavedTrio")
VARIANTS = (RACE, GALLERY, TRIO, PHONE, HEAVY, SAVED_DICE, SAVED_TRIO)
made: list[Dice] = []  # in this process
closed: list[Dice] = []


class Dice(TextEnv):
    """The first time that `mood` comes over it on turn 2 of an odd instance, it leaves the file `flag`."""

    SPEC = SPEC

    def __init__(self, *, mood: str = "", flag: str = "", every: bool = False, **common: Any) -> None:
        super().__init__(**common)
        self.mood, self.flag, self.every = mood, flag, every
        made.append(self)

    def begin(self, index: int) -> Reply:
        self.index, self.turn, self.sum = index, 0, 0
        return Reply(f"game {index}")

    def act(self, action: str) -> Reply:
        self.turn += 1
        if self.mood and self.turn == 2 and self.index % 2 and (self.every or self._first()):
            self.give_in()
        if action == "stop":
            return Reply("stopped", done=True, score=0.25)
        rolled = int(self.np_random.integers(1, 7))
        self.sum += rolled
        return Reply(f"rolled {rolled}", reward={"pips": rolled / 4, "cost": -0.5})

    def _first(self) -> bool:
        """Return True for the first environment that asks; atomic, as two may ask at the same time."""
        try:
            Path(self.flag).touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def give_in(self) -> None:
        match self.mood:
            case "break":
                raise BackendError("the die broke")
            case "stall":
                time.sleep(1000)
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "bug":
                raise ZeroDivisionError("a bug in the task")

    def score_if_cut(self) -> float:
        return self.sum / 24

    def admissible(self) -> list[str]:
        return ["roll", "stop"]

    def oracle(self) -> Iterator[str]:
        for number in range(self.turn, 4):
            yield f"oracle {number}"

    def close(self) -> None:
        closed.append(self)
        super().close()


class Heavy(Dice):
    """Dice of which two environments may be open at once."""

    SPEC = HEAVY


class SavedDice(Dice):
    """Dice that are saved after even turns only if `saved` is "even"; "lost" ones break when they are restored."""

    SPEC = SAVED_DICE

    def __init__(self, *, saved: str = "all", **common: Any) -> None:
        super().__init__(**common)
        self.saved = saved

    def save(self) -> list[int] | None:
        return None if self.saved == "even" and self.turn % 2 else [self.index, self.turn, self.sum]

    def restore(self, state: list[int]) -> None:
        if self.saved == "lost":
            raise BackendError("the saved dice are lost")
        self.index, self.turn, self.sum = state


class Trio(TextEnv):
    """The agent, black and red speak in turn, twice; each turn pays its seat 1 and the next seat 10 more."""

    SPEC = TRIO
    ORDER = ("red", "agent", "black")

    def begin(self, index: int) -> Reply:
        self.turn = 0
        return Reply("begin", seat="red")

    def act(self, action: str) -> Reply:
        self.turn += 1
        following = self.ORDER[self.turn % 3]
        scores = {"agent": 0.5, "black": 1.0, "red": 0.0}
        return Reply(
            f"{action}!",
            seat=following,
            reward=1.0,
            others={following: 10.0},
            done=self.turn == 6,
            score=scores if self.turn == 6 else None,
        )

    def scripted(self, seat: str) -> str:
        return f"{seat} {self.turn}"


class SavedTrio(Trio):
    """A Trio whose state is the number of the turn."""

    SPEC = SAVED_TRIO

    def save(self) -> int:
        return self.turn

    def restore(self, state: int) -> None:
        self.turn = state


class Phone(TextEnv):
    """Agent and user speak in turn; each has a tool of its own, and the agent's second one appears with its turn 2."""

    SPEC = PHONE

    def begin(self, index: int) -> Reply:
        self.index, self.turn = index, 0
        return Reply(f"call {index}")

    def act(self, action: str) -> Reply:
        self.turn += 1
        names = " ".join(call.name for call in parse_json_calls(action))
        return Reply(f"{self.turn} {names}".strip(), seat=("agent", "user")[self.turn % 2], score=0.0)

    def prompts(self) -> dict[str, str]:
        return {"agent": f"You answer call {self.index}.", "user": "You have a problem."}

    def tools(self, seat: str = "agent") -> list[dict[str, Any]]:
        names = ["restart"] if seat == "user" else ["refund", "close"][: 1 + (self.turn >= 2)]
        return [{"name": name, "description": f"{name} it", "parameters": {"type": "object"}} for name in names]

    def scripted(self, seat: str) -> str:
        return "help"

    def demonstrator(self) -> Iterator[str]:
        while True:
            yield '{"name": "refund", "arguments": {}}'
