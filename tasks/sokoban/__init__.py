"""Sokoban: push all boxes onto targets, in RAGEN's text form."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/Sokoban-v0",
    entry_point="lmgym.tasks.sokoban.env:Sokoban",
    summary="Push a box onto a target in a room of 6 x 6; boxes cannot be pulled.",
    max_turns=30,
    splits={"train": 1_000_000, "test": 500},
    score="1 when every box stands on a target",
    references={"null": 0.0, "random": "0.15 (500 test levels)", "oracle": 1.0},
    source="rules and rewards of gym-sokoban (MIT), symbols and turns of RAGEN (arXiv 2504.20073); our own generator",
    public={"protocol": ("single", "ragen"), "side": range(5, 9), "boxes": range(1, 4)},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/SokobanLarge-v0",
        summary="Push two boxes onto targets in a room of 8 x 8.",
        max_turns=60,
        references={"null": 0.0, "random": "0.01 (500 test levels)", "oracle": 1.0},
        options={"side": 8, "boxes": 2},
    ),
    replace(
        SPEC,
        id="lmgym/SokobanRAGEN-v0",
        answer_tokens=48,
        prose=True,
        summary="Sokoban in RAGEN's turns: up to five actions an answer, ten in all.",
        max_turns=5,
        references={"null": 0.0, "random": "0.01 (500 test levels)", "oracle": 1.0},
        options={"protocol": "ragen"},
    ),
)
