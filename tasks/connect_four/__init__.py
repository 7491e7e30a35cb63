"""Connect four in either seat."""

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/ConnectFour-v0",
    entry_point="lmgym.tasks.connect_four.env:ConnectFour",
    summary="Play connect four as X or O against random moves.",
    max_turns=63,
    splits={"train": 100, "test": 100},
    score="1 for a win, 0.5 for a draw, 0 for a loss",
    seats=("opponent",),
    references={"null": 0.0, "random": 0.5, "oracle": 1.0},
    source="rules of the common game; rewards of MARS (arXiv 2510.15414) and TextArena",
    overlap="a board game has one start: an instance says who begins and, by its seed, how the opponent plays",
    public={
        "seat": ("both", "first", "second"),
        "reward": ("game", "mars", "textarena"),
    },
)
