"""Players of Black's pieces."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from lmgym.backends.stockfish import EXECUTABLE, CandidateLine, Stockfish, executable
from lmgym.env.games.chess.game import Game
from lmgym.env.games.chess.notation import from_uci
from lmgym.env.games.chess.position import ChessPosition, Move
from lmgym.env.games.chess.search import greedy_moves
from lmgym.errors import InstanceError, MissingExtra
from lmgym.tasks.chess.endings import lone_king_move

VERSION = "Stockfish 15.1"  # the moves of other versions differ
NODES, LINES = 1000, 8  # of the weakened Stockfish
TEMPERATURE = 100.0  # centipawns: how much worse a line is that it plays 1/e as often as the best
MILLISECONDS = 100  # a move, of limited strength as in LMRL-Gym
LEAST_ELO, MOST_ELO, MOST_SKILL = 1350, 2850, 20  # that Stockfish takes
LIMITED = re.compile(r"(elo|skill):(\d{1,4})")


class ChessPlayer:
    """A player of Black."""

    deterministic = True  # it plays the same moves if the generator draws the same numbers

    def start(self) -> None:
        """Get ready for an episode."""

    def choose(self, game: Game, rng: np.random.Generator) -> Move:
        """Return a legal move."""
        raise NotImplementedError

    def close(self) -> None:
        """Free what the player holds."""


class RulePlayer(ChessPlayer):
    """A player that draws among the moves of a rule."""

    def __init__(self, rule: Callable[[ChessPosition], Sequence[Move]]) -> None:
        self.rule = rule

    def choose(self, game: Game, rng: np.random.Generator) -> Move:
        """Draw a move."""
        moves = self.rule(game.position)
        return moves[int(rng.integers(len(moves)))] if len(moves) > 1 else moves[0]


def random_moves(position: ChessPosition) -> tuple[Move, ...]:
    """Return all legal moves."""
    return position.moves


def lone_king_moves(position: ChessPosition) -> list[Move]:
    """Return the lone king's best move."""
    return [lone_king_move(position)]


class StockfishPlayer(ChessPlayer):
    """Stockfish with some options."""

    def __init__(self, options: Mapping[str, int | str] | None = None) -> None:
        executable()
        self.engine = Stockfish(options)

    def start(self) -> None:
        """Start the engine if it does not run."""
        self.engine.start()

    def close(self) -> None:
        """End the engine."""
        self.engine.close()


class WeakenedStockfish(StockfishPlayer):
    """Stockfish with few nodes that draws among its lines: the better one is, the more often it is played."""

    def start(self) -> None:
        """Start the engine if it does not run. Raises MissingExtra for other versions, whose games differ."""
        start_version(self.engine)

    def choose(self, game: Game, rng: np.random.Generator) -> Move:
        """Draw a line."""
        analysis = self.engine.search(game.first.fen, [move.uci for move in game.played], nodes=NODES, lines=LINES)
        return from_uci(_drawn(analysis.lines, float(rng.random())).move)


def start_version(engine: Stockfish) -> None:
    """Start an engine. Raises MissingExtra if it is not the version that episodes are promised for."""
    engine.start()
    if engine.name != VERSION:
        engine.close()
        raise MissingExtra(
            f"chess is played against {VERSION}, of Debian 12; {executable()} is {engine.name}. "
            f"Set ${EXECUTABLE} to that version, or play lmgym/ChessGreedy-v0"
        )


def _drawn(lines: list[CandidateLine], draw: float) -> CandidateLine:
    """Return the line that a number in [0, 1) draws, by weights exp(value / TEMPERATURE)."""
    best = max(line.value for line in lines)
    weights = [math.exp((line.value - best) / TEMPERATURE) for line in lines]
    rest = draw * math.fsum(weights)
    for line, weight in zip(lines, weights, strict=True):
        rest -= weight
        if rest < 0:
            return line
    return lines[0]


class LimitedStockfish(StockfishPlayer):
    """Stockfish of limited strength with 100 ms a move, as in LMRL-Gym: its moves differ from run to run."""

    deterministic = False

    def __init__(self, kind: str, level: int) -> None:
        elo: dict[str, int | str] = {"UCI_LimitStrength": "true", "UCI_Elo": level}
        super().__init__(elo if kind == "elo" else {"Skill Level": level})

    def choose(self, game: Game, rng: np.random.Generator) -> Move:
        """Return the engine's move."""
        played = [move.uci for move in game.played]
        return from_uci(self.engine.search(game.first.fen, played, milliseconds=MILLISECONDS).best)


def chess_opponent(name: str, task: str) -> ChessPlayer:
    """Return the opponent of whole games with this name. Raises InstanceError if there is none."""
    if name in ("greedy", "random"):
        return RulePlayer(greedy_moves if name == "greedy" else random_moves)
    if name == "stockfish":
        return WeakenedStockfish()
    if match := LIMITED.fullmatch(name):
        level = int(match[2])
        if level in (range(LEAST_ELO, MOST_ELO + 1) if match[1] == "elo" else range(MOST_SKILL + 1)):
            return LimitedStockfish(match[1], level)
    raise InstanceError(
        f"unknown opponent {name!r} for {task}; choose stockfish, elo:{LEAST_ELO} to elo:{MOST_ELO}, "
        f"skill:0 to skill:{MOST_SKILL}, greedy or random"
    )
