"""Hanabi with two colours and two ranks, played with a partner."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/MiniHanabi-v0",
    entry_point="lmgym.tasks.mini_hanabi.env:MiniHanabi",
    summary="Play Hanabi with two colours and two ranks: see the partner's cards, not your own, and build both stacks.",
    max_turns=60,
    seats=("partner",),
    splits={"train": 1_000, "test": 200},
    score="cards on the stacks, from 0 to 1 for all; 0 when all lives are lost",
    references={"null": 0.0, "random": 0.4238, "oracle": 0.9688},
    source="rules of Hanabi (A. Bauza, 2010) with the settings and rewards of MARS (arXiv 2510.15414)",
    overlap="the deck has few orders; the splits draw from them independently",
    public={
        "reward": ("game", "mars"),
        "colors": range(2, 6),
        "ranks": range(2, 6),
        "first": ("both", "agent", "partner"),
    },
)
