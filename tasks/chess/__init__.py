"""LMRL-Gym's chess: whole games against a weakened Stockfish, and endgames against a lone king."""

from dataclasses import replace

from lmgym.env.spec import TaskSpec

RETURNS = (
    "mean returns: BC -22.3, filtered BC -56.5, MC -28.2, ILQL -21.4, PPO -16.0, online filtered BC -22.3, GPT-4 -81.3"
)
ENDGAME_RETURNS = (
    "mean returns: BC 0.112, filtered BC -0.439, MC 0.588, ILQL 0.452, PPO 0.814, online filtered BC 0.112, "
    "GPT-4 -22.87"
)
SOURCE = "rules and published returns of LMRL-Gym (MIT, arXiv 2311.18232, table 4)"

SPEC = TaskSpec(
    id="lmgym/Chess-v0",
    entry_point="lmgym.tasks.chess.env:Chess",
    summary="Play White against a weakened Stockfish, by moves in algebraic notation.",
    max_turns=400,
    splits={"train": 100, "test": 100},
    score="1 for a mate, 0.5 for a draw, 0 for a loss or no end within 400 moves",
    seats=("opponent",),
    references={"null": 0.0, "random": 0.0, "oracle": 1.0, "published": RETURNS},
    player="thread",
    source=f"{SOURCE}; opponent: Stockfish 15.1, a separate program (GPL-3)",
    overlap="chess has one start: an instance says, by its seed, how the opponent plays",
)
ENDGAMES = replace(
    SPEC,
    id="lmgym/ChessEndgames-v0",
    entry_point="lmgym.tasks.chess.env:ChessEndgames",
    summary="Mate a lone king with a queen, a rook, both, or two rooks.",
    splits={"train": 120_000, "test": 645},
    score="1 for a mate",
    references={"null": 0.0, "random": 0.0047, "oracle": 1.0, "published": ENDGAME_RETURNS},
    player="inline",
    source=f"{SOURCE}; positions of our own",
    overlap="",
    public={"opponent": ("minimax", "random")},
)
VARIANTS = (
    replace(
        SPEC,
        id="lmgym/ChessGreedy-v0",
        summary="Play White against greedy captures, without Stockfish.",
        references={"null": 0.0, "random": 0.02, "oracle": 0.935},
        options={"opponent": "greedy"},
        player="inline",
        source="rules of LMRL-Gym (MIT, arXiv 2311.18232)",
    ),
    ENDGAMES,
)
