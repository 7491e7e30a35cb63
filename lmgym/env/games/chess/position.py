"""Positions of chess and their legal moves.

Squares are numbered from 0 (a1) to 63 (h8), rank by rank. White's pieces are upper case, Black's lower case, as in FEN.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from lmgym.errors import InstanceError

EMPTY = "."
WHITE, BLACK = "KQRBNP", "kqrbnp"
START_FEN = "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1"
NAMES = tuple(f"{file}{rank}" for rank in "12345678" for file in "abcdefgh")
PROMOTIONS = "qrbn"
STRAIGHT, DIAGONAL = ((0, 1), (0, -1), (1, 0), (-1, 0)), ((1, 1), (1, -1), (-1, 1), (-1, -1))
LEAPS = tuple((a, b) for a in (-2, -1, 1, 2) for b in (-2, -1, 1, 2) if abs(a) != abs(b))
HOMES = {4: "KQ", 60: "kq", 7: "K", 0: "Q", 63: "k", 56: "q"}  # square -> the castling that its piece makes possible
CASTLES = {  # letter: squares of the king and of the rook, before and after; squares that must be empty
    "K": (4, 6, 7, 5, (5, 6)),
    "Q": (4, 2, 0, 3, (1, 2, 3)),
    "k": (60, 62, 63, 61, (61, 62)),
    "q": (60, 58, 56, 59, (57, 58, 59)),
}


def _square(square: int, step: tuple[int, int]) -> int | None:
    """Return the square one step (ranks, files) away; None off the board."""
    rank, file = square // 8 + step[0], square % 8 + step[1]
    return 8 * rank + file if 0 <= rank < 8 and 0 <= file < 8 else None


def _ray(square: int, step: tuple[int, int]) -> tuple[int, ...]:
    """Return the squares from a square to the edge, nearest first."""
    after = _square(square, step)
    return () if after is None else (after, *_ray(after, step))


def _rays(steps: Sequence[tuple[int, int]]) -> list[tuple[tuple[int, ...], ...]]:
    return [tuple(ray for step in steps if (ray := _ray(square, step))) for square in range(64)]


def _near(steps: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    return [tuple(near for step in steps if (near := _square(square, step)) is not None) for square in range(64)]


RAYS = {"R": _rays(STRAIGHT), "B": _rays(DIAGONAL), "Q": _rays(STRAIGHT + DIAGONAL)}
NEAR = {"N": _near(LEAPS), "K": _near(STRAIGHT + DIAGONAL)}
ALIGNED = [frozenset(each for ray in RAYS["Q"][square] for each in ray) for square in range(64)]
STRIKES = {True: _near(((1, 1), (1, -1))), False: _near(((-1, 1), (-1, -1)))}  # squares that a pawn attacks, by White


class Move(NamedTuple):
    """A move; castling is the king's."""

    start: int
    target: int
    promotion: str = ""  # one of PROMOTIONS

    @property
    def uci(self) -> str:
        """Name of the move in UCI, such as "e7e8q"."""
        return NAMES[self.start] + NAMES[self.target] + self.promotion


def attacked(board: Sequence[str], square: int, by_white: bool) -> bool:
    """Return True if a piece of one side attacks a square."""
    king, queen, rook, bishop, knight, pawn = tuple(WHITE if by_white else BLACK)
    for near in NEAR["N"][square]:
        if board[near] == knight:
            return True
    for near in STRIKES[not by_white][square]:
        if board[near] == pawn:
            return True
    for near in NEAR["K"][square]:
        if board[near] == king:
            return True
    for rays, slider in ((RAYS["R"], rook), (RAYS["B"], bishop)):
        for ray in rays[square]:
            for each in ray:
                piece = board[each]
                if piece != EMPTY:
                    if piece in (slider, queen):
                        return True
                    break
    return False


@dataclass(frozen=True)
class ChessPosition:
    """A position; immutable. `en_passant` is set only if a pawn may legally capture there."""

    board: str  # 64 pieces or EMPTY, from a1
    white: bool = True  # White is on turn
    castling: str = ""  # of "KQkq", in this order
    en_passant: int | None = None
    halfmoves: int = 0  # since the last capture or move of a pawn
    number: int = 1  # of the move, counted for both sides together

    @classmethod
    def from_fen(cls, fen: str) -> ChessPosition:
        """Read a position in Forsyth-Edwards notation. Raises InstanceError if it is malformed or impossible."""
        fields = fen.split()
        try:
            rows, turn, castling, en_passant, halfmoves, number = fields
            ranks = ["".join(EMPTY * int(c) if c in "12345678" else c for c in row) for row in rows.split("/")]
            board = "".join(reversed(ranks))
            target = None if en_passant == "-" else NAMES.index(en_passant)
            rights = "" if castling == "-" else castling
            position = cls(board, turn == "w", rights, None, int(halfmoves), int(number))
            drawn = [len(rank) for rank in ranks] == [8] * 8 and set(board) <= set(WHITE + BLACK + EMPTY)
            correct = drawn and turn in ("w", "b")
            if problem := position.impossible if correct else "eight ranks of eight squares, then w or b":
                raise ValueError(problem)
        except ValueError as error:
            raise InstanceError(f"{fen[:120]!r} is not a position of chess in FEN: {error}") from None
        return cls(board, position.white, rights, position._capturable(target), position.halfmoves, position.number)

    @property
    def fen(self) -> str:
        """The position in Forsyth-Edwards notation."""
        rows = []
        for rank in range(7, -1, -1):
            row, blanks = "", 0
            for piece in self.board[8 * rank : 8 * rank + 8]:
                if piece == EMPTY:
                    blanks += 1
                else:
                    row, blanks = row + (str(blanks) if blanks else "") + piece, 0
            rows.append(row + (str(blanks) if blanks else ""))
        en_passant = "-" if self.en_passant is None else NAMES[self.en_passant]
        turn = "w" if self.white else "b"
        return f"{'/'.join(rows)} {turn} {self.castling or '-'} {en_passant} {self.halfmoves} {self.number}"

    @cached_property
    def in_check(self) -> bool:
        """True if the king of the side on turn is attacked."""
        return attacked(self.board, self.board.index("K" if self.white else "k"), not self.white)

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Legal moves, in a fixed order."""
        return self._legal(self._candidates())

    @property
    def captures(self) -> tuple[Move, ...]:
        """Legal moves that take a piece or make a queen, in a fixed order."""
        board = self.board
        return self._legal(each for each in self._candidates() if board[each[1]] != EMPTY or each[2] == "q")

    def _legal(self, candidates: Iterable[Move]) -> tuple[Move, ...]:
        """Return the candidates that do not leave the own king attacked."""
        king = self.board.index("K" if self.white else "k")
        lines, exposed = ALIGNED[king], self.in_check
        return tuple(
            move
            for move in candidates
            if not (exposed or move[0] in lines or move[0] == king or move[1] == self.en_passant) or self._safe(move)
        )

    def after(self, move: Move) -> ChessPosition:
        """Return the position after a legal move."""
        board = "".join(self._moved(move))
        piece = self.board[move.start]
        pawn = piece in "Pp"
        lost = HOMES.get(move.start, "") + HOMES.get(move.target, "")
        rights = "".join(right for right in self.castling if right not in lost) if lost else self.castling
        quiet = not pawn and self.board[move.target] == EMPTY
        halfmoves = self.halfmoves + 1 if quiet else 0
        number = self.number + (not self.white)
        if pawn and abs(move.start - move.target) == 16:
            passed = ChessPosition(board, not self.white, rights)._capturable((move.start + move.target) // 2)
            return ChessPosition(board, not self.white, rights, passed, halfmoves, number)
        return ChessPosition(board, not self.white, rights, None, halfmoves, number)

    def _candidates(self) -> Iterator[Move]:
        """Yield the moves that may leave the own king attacked."""
        board, own = self.board, WHITE if self.white else BLACK
        for start, piece in enumerate(board):
            if piece not in own:
                continue
            kind = piece.upper()
            if kind == "P":
                yield from self._pawn_moves(start)
            elif kind in NEAR:
                for target in NEAR[kind][start]:
                    if board[target] not in own:
                        yield Move(start, target)
            else:
                for ray in RAYS[kind][start]:
                    for target in ray:
                        if board[target] == EMPTY:
                            yield Move(start, target)
                            continue
                        if board[target] not in own:
                            yield Move(start, target)
                        break
        yield from self._castlings()

    def _pawn_moves(self, start: int) -> Iterator[Move]:
        board, other = self.board, BLACK if self.white else WHITE
        ahead = 8 if self.white else -8
        targets = [each for each in STRIKES[self.white][start] if board[each] in other or each == self.en_passant]
        if board[start + ahead] == EMPTY:
            targets.append(start + ahead)
            if start // 8 == (1 if self.white else 6) and board[start + 2 * ahead] == EMPTY:
                targets.append(start + 2 * ahead)
        for target in targets:
            if 8 <= target < 56:
                yield Move(start, target)
            else:
                for promotion in PROMOTIONS:
                    yield Move(start, target, promotion)

    def _castlings(self) -> Iterator[Move]:
        """Yield castlings out of and through squares that are not attacked; the target is checked as for all moves."""
        for right in self.castling:
            start, target, _, rook_target, between = CASTLES[right]
            if right.isupper() == self.white and all(self.board[each] == EMPTY for each in between):
                crossed = (start, rook_target)
                if not any(attacked(self.board, each, not self.white) for each in crossed):
                    yield Move(start, target)

    def _moved(self, move: Move) -> list[str]:
        """Return the board after a move."""
        board = list(self.board)
        piece = board[move.start]
        board[move.start] = EMPTY
        board[move.target] = piece
        if move.promotion:
            board[move.target] = move.promotion.upper() if self.white else move.promotion
        elif piece in "Pp" and move.target == self.en_passant:
            board[move.target + (-8 if self.white else 8)] = EMPTY
        elif piece in "Kk" and abs(move.start - move.target) == 2:
            right = ("K" if self.white else "k") if move.target > move.start else ("Q" if self.white else "q")
            _, _, rook, rook_target, _ = CASTLES[right]
            board[rook], board[rook_target] = EMPTY, board[rook]
        return board

    def _safe(self, move: Move) -> bool:
        """Return True if the own king is not attacked after a move."""
        board = self._moved(move)
        return not attacked(board, board.index("K" if self.white else "k"), not self.white)

    def _capturable(self, target: int | None) -> int | None:
        """Return `target` if a pawn of the side on turn may legally capture there en passant, else None."""
        if target is None or target // 8 != (5 if self.white else 2) or self.board[target] != EMPTY:
            return None
        behind = target + (-8 if self.white else 8)
        if self.board[behind] != ("p" if self.white else "P"):
            return None
        passed = ChessPosition(self.board, self.white, self.castling, target)
        starts = (each for each in STRIKES[not self.white][target] if self.board[each] == ("P" if self.white else "p"))
        return target if any(passed._safe(Move(start, target)) for start in starts) else None

    @property
    def impossible(self) -> str:
        """Reason why the position is impossible; empty if there is none."""
        if self.board.count("K") != 1 or self.board.count("k") != 1:
            return "each side has one king"
        if set("Pp") & set(self.board[:8] + self.board[56:]):
            return "no pawn stands on the first or last rank"
        if self.castling != "".join(right for right in CASTLES if right in self.castling) or not self._at_home():
            return f"no castling {self.castling!r}"
        if self.halfmoves < 0 or self.number < 1:
            return "moves count from 0 and 1"
        if attacked(self.board, self.board.index("k" if self.white else "K"), self.white):
            return "the side on turn could take the king"
        return ""

    def _at_home(self) -> bool:
        """Return True if the king and the rook of every castling right stand where they started."""
        for right in self.castling:
            king, _, rook, _, _ = CASTLES[right]
            if self.board[king] + self.board[rook] != ("KR" if right.isupper() else "kr"):
                return False
        return True
