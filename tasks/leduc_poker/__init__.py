"""Leduc poker: six cards, two rounds, two seats."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/LeducPoker-v0",
    entry_point="lmgym.tasks.leduc_poker.env:LeducPoker",
    summary="Play Leduc poker, a game of six cards and two rounds, in either seat against an equilibrium strategy.",
    max_turns=12,
    splits={"train": 240, "test": 240},
    score="chips won, from 0 for thirteen lost to 1 for thirteen won; 0.5 is even",
    seats=("opponent",),
    references={"null": 0.4615, "random": 0.4728, "oracle": 0.5},
    source="rules of Southey et al. (UAI 2005); rewards of MARS and TextArena; equilibrium by our CFR+",
    overlap="the game has 120 deals and two seats: every split has them all",
    public={
        "opponent": ("cfr", "random"),
        "seat": ("both", "first", "second"),
        "reward": ("game", "mars", "textarena"),
    },
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/LeducPokerRandom-v0",
        summary="Play Leduc poker in either seat against random actions.",
        references={"null": 0.4615, "random": 0.5, "oracle": 0.5913},
        options={"opponent": "random"},
    ),
)
