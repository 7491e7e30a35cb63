"""Tic-tac-toe in either seat."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

SPEC = TaskSpec(
    id="lmgym/TicTacToe-v0",
    entry_point="lmgym.tasks.tic_tac_toe.env:TicTacToe",
    summary="Play tic-tac-toe as X or O against random moves.",
    max_turns=15,
    splits={"train": 100, "test": 100},
    score="1 for a win, 0.5 for a draw, 0 for a loss",
    seats=("opponent",),
    references={"null": 0.0, "random": 0.5, "oracle": 0.9799},
    source="rules of the common game; rewards of MARS (arXiv 2510.15414) and TextArena",
    overlap="a board game has one start: an instance says who begins and, by its seed, how the opponent plays",
    public={
        "opponent": ("random", "minimax"),
        "seat": ("both", "first", "second"),
        "reward": ("game", "mars", "textarena"),
    },
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/TicTacToePerfect-v0",
        summary="Play tic-tac-toe as X or O against perfect play; a draw is the most there is.",
        references={"null": 0.0, "random": 0.0637, "oracle": 0.5},
        options={"opponent": "minimax"},
    ),
)
