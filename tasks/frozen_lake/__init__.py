"""Frozen Lake: cross slippery ice to the goal without falling into a hole, in RAGEN's text form."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/FrozenLake-v0",
    entry_point="lmgym.tasks.frozen_lake.env:FrozenLake",
    summary="Cross slippery ice to the goal without falling into a hole; a step goes astray two times in three.",
    max_turns=30,
    splits={"train": 1_000_000, "test": 200},
    score="1 when the goal is reached",
    references={"null": 0.0, "random": 0.2928, "oracle": 0.8425},
    source="rules of Gymnasium's FrozenLake (MIT); maps and symbols in the manner of RAGEN (arXiv 2504.20073)",
    public={"slippery": (True, False), "protocol": ("single", "ragen", "twice"), "side": range(3, 9)},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/FrozenLakeFirm-v0",
        summary="Walk across firm ice to the goal without falling into a hole.",
        references={"null": 0.0, "random": 0.2928, "oracle": 1.0},
        options={"slippery": False},
    ),
    replace(
        SPEC,
        id="lmgym/FrozenLakeRAGEN-v0",
        summary="Frozen Lake in RAGEN's turns: up to five actions an answer, ten in all.",
        max_turns=5,
        answer_tokens=48,
        prose=True,
        references={"null": 0.0, "random": 0.1472, "oracle": 0.5083},
        options={"protocol": "ragen"},
    ),
)
