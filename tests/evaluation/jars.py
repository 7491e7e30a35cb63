"""A task whose actions are tool calls, as a plug-in: look into jars, then say which holds the coin."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from lmgym.env.actions import parse_json_call
from lmgym.env.env import Reply, TextEnv
from lmgym.env.spec import TaskSpec
from tests.env.games import GALLERY, RACE

JARS = 4
SPEC = TaskSpec(
    id="test/Jars-v0",
    entry_point=f"{__name__}:Jars",
    summary="A coin is in one of four jars.",
    max_turns=4,
    splits={"train": 100, "test": 200},
    score="1 when the right jar is named",
    references={},
)
DUEL = replace(RACE, id="test/Duel-v0", splits={"test": 10})  # two seats
PICTURES = replace(GALLERY, id="test/Pictures-v0", splits={"test": 10}, max_turns=2)
VARIANTS = (DUEL, PICTURES)
JAR = {"type": "object", "properties": {"jar": {"type": "integer"}}, "required": ["jar"]}


class Jars(TextEnv):
    """Each look costs a turn; a wrong answer ends the episode."""

    SPEC = SPEC

    def begin(self, index: int) -> Reply:
        self.coin = int(np.random.default_rng([7, index]).integers(1, JARS + 1))
        return Reply(f"Game {index}: a coin is in one of {JARS} jars.")

    def act(self, action: str) -> Reply:
        call = parse_json_call(action)
        jar = None if call is None else call.arguments.get("jar")
        if call is None or call.name not in ("peek", "answer") or type(jar) is not int:
            return Reply("Call peek or answer with a whole number.", valid=False)
        if call.name == "answer":
            return Reply("over", done=True, score=float(jar == self.coin))
        return Reply("coin" if jar == self.coin else "empty")

    def tools(self, seat: str = "agent") -> list[dict[str, Any]]:
        return [
            {"name": "peek", "description": "Look into a jar.", "parameters": JAR},
            {"name": "answer", "description": "Name the jar and end.", "parameters": JAR},
        ]

    def oracle(self) -> Iterator[str]:
        yield f'{{"name": "answer", "arguments": {{"jar": {self.coin}}}}}'
