"""Measure the default opponent: `python -m lmgym.tasks.chess.strength PLAYER [GAMES]`.

The weakened Stockfish plays White against PLAYER ("elo:1350", "skill:0", "greedy" ...) as Black. The Elo difference is
that of the mean score with its 95 % interval by the normal approximation; games against limited strength differ from
run to run.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Iterator
from contextlib import closing

import numpy as np

from lmgym.env.games.chess.game import Game
from lmgym.tasks.chess.opponents import WeakenedStockfish, chess_opponent

HALF_MOVES = 400  # after which a game is a draw


def scores(name: str, games: int) -> Iterator[float]:
    """Yield the scores of the weakened Stockfish as White against another opponent of the task."""
    with closing(WeakenedStockfish()) as white, closing(chess_opponent(name, "lmgym/Chess-v0")) as black:
        for number in range(games):
            for player in (white, black):
                player.start()
            chance, game = np.random.default_rng(number), Game()
            while not game.ending and len(game.played) < HALF_MOVES:
                game.play((white if game.position.white else black).choose(game, chance))
            yield 0.5 + game.payoff / 2


def elo(score: float) -> float:
    """Return the difference of Elo points that a mean score stands for."""
    return -400 * math.log10(1 / score - 1) if 0 < score < 1 else math.copysign(math.inf, score - 0.5)


def main(player: str, games: int = 100) -> None:
    """Play the games and write the mean score and the Elo difference."""
    played = list(scores(player, games))
    mean, error = statistics.fmean(played), 1.96 * statistics.stdev(played) / math.sqrt(games)
    low, high = elo(max(mean - error, 0.0)), elo(min(mean + error, 1.0))
    words = f"weakened Stockfish against {player}: mean score {mean:.3f} of {games} games"
    sys.stdout.write(f"{words}; Elo {elo(mean):+.0f} ({low:+.0f} to {high:+.0f})\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
