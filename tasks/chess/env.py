"""LMRL-Gym's chess as an environment: the whole game, and endgames against a lone king."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.resources import files
from typing import Any

from lmgym.backends.stockfish import Stockfish
from lmgym.env.actions import parse_answer
from lmgym.env.env import Reply, TextEnv
from lmgym.env.games.chess.game import Game
from lmgym.env.games.chess.notation import from_uci, read_move, san
from lmgym.env.games.chess.position import EMPTY, START_FEN, ChessPosition, Move
from lmgym.env.games.chess.search import best_move
from lmgym.errors import InstanceError
from lmgym.tasks.chess import ENDGAMES, SPEC
from lmgym.tasks.chess.endings import checked_ending, first_position, winning_move
from lmgym.tasks.chess.opponents import (
    ChessPlayer,
    RulePlayer,
    StockfishPlayer,
    chess_opponent,
    lone_king_moves,
    random_moves,
    start_version,
)
from lmgym.types import FIRST_SEAT

PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip() + "\n\n"
OPPONENT = "opponent"
FORFEIT = 3  # illegal moves in a row, of the opponent only
ORACLE_NODES = 4000  # of Stockfish
PLIES, LATE_PLIES, LATE = 1, 3, 8  # of our search against players by rule: early, and with fewer men than LATE


class ChessEnv(TextEnv):
    """Play White; mate earns 1, being mated -1, an illegal move -1 and leaves the board as it is."""

    game: Game

    def __init__(self, *, opponent: str, **common: Any) -> None:
        super().__init__(**common)
        self.opponent = self.opponent_named(opponent)
        if not self.opponent.deterministic:
            self.task = replace(self.task, deterministic=False)

    # Hooks of the two tasks ---------------------------------------------------------------------------------------

    def opponent_named(self, name: str) -> ChessPlayer:
        """Return the scripted opponent of this name. Raises InstanceError if there is none."""
        raise NotImplementedError

    def opening(self, index: int) -> ChessPosition:
        """Return the first position of an instance."""
        raise NotImplementedError

    def checked(self, position: ChessPosition) -> ChessPosition:
        """Return an authored position, or raise InstanceError if the task does not have it."""
        raise NotImplementedError

    def score(self, payoff: float) -> float:
        """Return the agent's score of a finished game."""
        raise NotImplementedError

    # The environment's side ---------------------------------------------------------------------------------------

    def begin(self, index: int) -> Reply:
        """Open an instance."""
        return self._start(self.opening(index))

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Start from `instance["fen"]`, with White on turn."""
        fen = instance.get("fen")
        if not isinstance(fen, str):
            raise InstanceError(f"an instance of {self.task.id} is {{'fen': text}}; got {fen!r}")
        position = self.checked(ChessPosition.from_fen(fen))
        if not position.white or Game(position).ending:
            raise InstanceError(f"{self.task.id} starts with White on turn in a game that is not over; got {fen!r}")
        return self._start(position)

    def act(self, action: str) -> Reply:
        """Play a move of the side on turn."""
        white = self.game.position.white
        move = read_move(self.game.position, "".join(parse_answer(action).split()))
        if move is None:
            return self._refuse(white)
        self.refused = 0
        self.game.play(move)
        if not self.game.ending:
            return self._turn()
        return self._end(self.game.payoff, f"Game over: {self.game.ending}.", white)

    def scripted(self, seat: str) -> str:
        """Play the opponent's move."""
        return san(self.game.position, self.opponent.choose(self.game, self.np_random))

    def admissible(self) -> list[str]:
        """Return the legal moves."""
        return [san(self.game.position, move) for move in self.game.position.moves]

    def score_if_cut(self) -> dict[str, float]:
        """Return 0 for White, who did not finish the game, and 1 for Black."""
        return {FIRST_SEAT: 0.0, OPPONENT: 1.0}

    def figures_if_cut(self) -> dict[str, float]:
        """Return the number of illegal moves so far."""
        return {"illegal_moves": float(self.illegal)}

    def fingerprint(self) -> str:
        """Return the first position."""
        return self.game.first.fen

    def close(self) -> None:
        """End the processes of the opponent."""
        self.opponent.close()

    def _start(self, position: ChessPosition) -> Reply:
        self.opponent.start()
        self.game = Game(position)
        self.illegal = self.refused = 0
        self.briefed = False
        return self._turn()

    def _turn(self) -> Reply:
        """Return the position for the side on turn; the rules come first at each side's first turn."""
        text = " ".join(self.game.position.fen) + "\n"
        if not self.game.position.white:
            return Reply(text, seat=OPPONENT)
        self.briefed, brief = True, "" if self.briefed else PROMPT
        return Reply(brief + text)

    def _refuse(self, white: bool) -> Reply:
        self.illegal += white
        self.refused += not white
        reply = self._turn() if self.refused < FORFEIT else self._end(1.0, "Game over: Black forfeits.", white)
        reply.reward, reply.valid = -1.0, False
        return reply

    def _end(self, payoff: float, text: str, white: bool) -> Reply:
        """Return the last reply; `payoff` is White's."""
        score = self.score(payoff)
        return Reply(
            f"{' '.join(self.game.position.fen)}\n{text}",
            reward=payoff if white else -payoff,
            others={OPPONENT: -payoff} if white else {FIRST_SEAT: payoff},
            done=True,
            score={FIRST_SEAT: score, OPPONENT: 1.0 - score},
        )


class Chess(ChessEnv):
    """Play White from the first position. Score 1 for a mate, 0.5 for a draw, 0 for a loss.

    `opponent` is "stockfish" (weakened by seeded draws among its lines), "elo:N" or "skill:N" (Stockfish of limited
    strength with 100 ms a move as in LMRL-Gym, which is not deterministic), "greedy" or "random".
    """

    SPEC = SPEC

    def __init__(self, *, opponent: str = "stockfish", **common: Any) -> None:
        super().__init__(opponent=opponent, **common)
        self.second: Stockfish | None = None  # the oracle's

    def opponent_named(self, name: str) -> ChessPlayer:
        """Return Stockfish, or a player by rule."""
        return chess_opponent(name, self.task.id)

    def opening(self, index: int) -> ChessPosition:
        """Return the first position of chess."""
        return ChessPosition.from_fen(START_FEN)

    def checked(self, position: ChessPosition) -> ChessPosition:
        """Return any position."""
        return position

    def score(self, payoff: float) -> float:
        """Return 1 for a mate, 0.5 for a draw, 0 for a loss."""
        return 0.5 + payoff / 2

    def solved(self, score: float) -> bool:
        """Return True for a mate."""
        return score > 0.5

    def oracle(self) -> Iterator[str]:
        """Play Stockfish's best move, or against players by rule that of a search."""
        while True:
            yield san(self.game.position, self._best_move())

    def close(self) -> None:
        """End the processes of the opponent and of the oracle."""
        super().close()
        if self.second is not None:
            self.second.close()

    def _best_move(self) -> Move:
        if not isinstance(self.opponent, StockfishPlayer):
            men = 64 - self.game.position.board.count(EMPTY)
            return best_move(self.game, LATE_PLIES if men < LATE else PLIES)
        if self.second is None:
            self.second = Stockfish()
        start_version(self.second)
        played = [move.uci for move in self.game.played]
        return from_uci(self.second.search(self.game.first.fen, played, nodes=ORACLE_NODES).best)


class ChessEndgames(ChessEnv):
    """Mate a lone king with queen, rook, queen and rook, or two rooks. Score 1 for a mate.

    `opponent` is "minimax", a king that looks two plies ahead, or "random".
    """

    SPEC = ENDGAMES

    def __init__(self, *, opponent: str = "minimax", **common: Any) -> None:
        super().__init__(opponent=opponent, **common)

    def opponent_named(self, name: str) -> ChessPlayer:
        """Return the player of the lone king."""
        rules = {"minimax": lone_king_moves, "random": random_moves}
        self.check_choices(opponent=(name, rules))
        return RulePlayer(rules[name])

    def opening(self, index: int) -> ChessPosition:
        """Return the first position of an endgame."""
        return first_position(self.split, index)

    def checked(self, position: ChessPosition) -> ChessPosition:
        """Return a position of one of the four endgames."""
        return checked_ending(position)

    def score(self, payoff: float) -> float:
        """Return 1 for a mate."""
        return float(payoff > 0)

    def oracle(self) -> Iterator[str]:
        """Play the move that mates soonest, by exact tables of one piece."""
        while True:
            yield san(self.game.position, winning_move(self.game))
