"""A game of chess: its moves so far, and how it ends."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from lmgym.env.games.chess.position import START_FEN, ChessPosition, Move

REPETITIONS = 3
QUIET = 100  # moves of either side without a capture or a pawn's move


def insufficient(position: ChessPosition) -> bool:
    """Return True if neither side can ever mate: kings with at most a knight, or with bishops of one colour."""
    men = [(piece.upper(), square) for square, piece in enumerate(position.board) if piece not in ".Kk"]
    if len(men) <= 1:
        return all(kind in "NB" for kind, _ in men)
    return all(kind == "B" for kind, _ in men) and len({(square // 8 + square) % 2 for _, square in men}) == 1


@dataclass
class Game:
    """The moves of a game from its first position. Threefold repetition and fifty quiet moves end it as a draw."""

    position: ChessPosition = field(default_factory=lambda: ChessPosition.from_fen(START_FEN))
    played: list[Move] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Count the first position."""
        self.first = self.position
        self._seen = Counter([_key(self.position)])

    def play(self, move: Move) -> None:
        """Play a legal move."""
        self.position = self.position.after(move)
        self.played.append(move)
        if self.position.halfmoves == 0:
            self._seen.clear()
        self._seen[_key(self.position)] += 1

    def met(self, position: ChessPosition) -> int:
        """Return how many times a position has come up since the last capture or move of a pawn."""
        return self._seen[_key(position)]

    @property
    def ending(self) -> str:
        """Reason why the game is over, such as "checkmate"; empty while it goes on."""
        position = self.position
        if not position.moves:
            return "checkmate" if position.in_check else "stalemate"
        if insufficient(position):
            return "insufficient material"
        if self.met(position) >= REPETITIONS:
            return "threefold repetition"
        return "fifty moves without a capture or a pawn's move" if position.halfmoves >= QUIET else ""

    @property
    def payoff(self) -> float:
        """1 if White has mated, -1 if Black has, 0 otherwise."""
        if self.position.moves or not self.position.in_check:
            return 0.0
        return -1.0 if self.position.white else 1.0


def _key(position: ChessPosition) -> tuple[str, bool, str, int | None]:
    return position.board, position.white, position.castling, position.en_passant
