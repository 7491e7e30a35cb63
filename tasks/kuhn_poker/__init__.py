"""Kuhn poker: three cards, one bet, two seats."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/KuhnPoker-v0",
    entry_point="lmgym.tasks.kuhn_poker.env:KuhnPoker",
    summary="Play Kuhn poker, a game of three cards and one bet, in either seat against an equilibrium strategy.",
    max_turns=6,
    splits={"train": 120, "test": 120},
    score="chips won, from 0 for two lost to 1 for two won; 0.5 is even",
    seats=("opponent",),
    references={"null": 0.25, "random": 0.4632, "oracle": 0.5},
    source="rules of H. W. Kuhn (1950); rewards of MARS (arXiv 2510.15414) and TextArena; equilibrium by our CFR+",
    overlap="the game has six deals and two seats: every split has them all, ten times",
    public={
        "opponent": ("cfr", "random"),
        "seat": ("both", "first", "second"),
        "reward": ("game", "mars", "textarena"),
    },
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/KuhnPokerRandom-v0",
        summary="Play Kuhn poker in either seat against random actions.",
        references={"null": 0.25, "random": 0.5, "oracle": 0.6146},
        options={"opponent": "random"},
    ),
)
