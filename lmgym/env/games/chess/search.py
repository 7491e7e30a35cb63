"""Plain players of chess: greedy captures, and alpha-beta search of limited depth."""

from __future__ import annotations

from functools import cache

from lmgym.env.games.chess.game import Game
from lmgym.env.games.chess.position import EMPTY, ChessPosition, Move, attacked

WORTH = {"P": 100, "N": 300, "B": 320, "R": 500, "Q": 900, "K": 0}  # centipawns
MATE = 100_000
ADVANCE, CENTRE = 6, 4  # centipawns: of a pawn by rank, of other pieces by step towards the centre
CORNER, NEARNESS = 10, 4  # of a bare king: by step towards the edge, by step of the other king towards it


def greedy_moves(position: ChessPosition) -> list[Move]:
    """Return the moves that mate, else those that win most at once: a piece taken, less the own one if it is attacked.

    Only the first answer of the other side counts, whatever its piece is worth.
    """
    gains = {move: _gain(position, move) for move in position.moves}
    best = max(gains.values())
    return [move for move, gain in gains.items() if gain == best]


def _gain(position: ChessPosition, move: Move) -> int:
    after = position.after(move)
    if after.in_check and not after.moves:
        return MATE
    taken = position.board[move.target].upper()
    gain = WORTH.get(taken, 0)
    mover = (move.promotion or position.board[move.start]).upper()
    if move.promotion:
        gain += WORTH[mover] - WORTH["P"]
    return gain - WORTH[mover] * attacked(after.board, move.target, after.white)


def best_move(game: Game, depth: int) -> Move:
    """Return the move that alpha-beta search of `depth` plies and further captures finds best; repeats are draws."""
    position, best, low = game.position, game.position.moves[0], -2 * MATE
    for move in _ordered(position, position.moves):
        after = position.after(move)
        value = 0 if game.met(after) else -_value(after, depth - 1, -2 * MATE, -low)
        if value > low:
            best, low = move, value
    return best


def _value(position: ChessPosition, depth: int, low: int, high: int) -> int:
    """Return the value for the side on turn; sooner mates are worse."""
    if (depth > 0 or position.in_check) and not position.moves:
        return -MATE - depth if position.in_check else 0
    if depth <= 0:
        low = max(low, standing(position.board) * (1 if position.white else -1))
    moves = position.moves if depth > 0 else position.captures
    for move in _ordered(position, moves):
        if low >= high:
            break
        low = max(low, -_value(position.after(move), depth - 1, -high, -low))
    return low


def _ordered(position: ChessPosition, moves: tuple[Move, ...]) -> list[Move]:
    """Return moves with the best captures by the least pieces first."""
    board = position.board

    def promise(move: Move) -> int:
        taken = WORTH.get(board[move.target].upper(), 0)
        return 10 * taken - WORTH[board[move.start].upper()] if taken or move.promotion else -MATE

    return sorted(moves, key=promise, reverse=True)


@cache
def _placed(piece: str, square: int) -> int:
    """Return the worth of a piece on a square, for White."""
    rank, kind = square // 8, piece.upper()
    worth = WORTH[kind]
    if kind == "P":
        worth += ADVANCE * (rank if piece.isupper() else 7 - rank)
    elif kind in "NBQ":
        worth += CENTRE * (3 - from_centre(square))
    return worth if piece.isupper() else -worth


def from_centre(square: int) -> int:
    """Return the steps from the four central squares, 0 to 3."""
    return max(abs(2 * (square % 8) - 7), abs(2 * (square // 8) - 7)) // 2


def standing(board: str) -> int:
    """Return the worth of all pieces for White, in centipawns; a bare king is worse in a corner and near the other."""
    men = [(piece, square) for square, piece in enumerate(board) if piece != EMPTY]
    value = sum(_placed(piece, square) for piece, square in men)
    for lone, sign in (("k", 1), ("K", -1)):
        if sum(piece.islower() == lone.islower() for piece, _ in men) == 1:
            king, other = board.index(lone), board.index(lone.swapcase())
            apart = max(abs(king % 8 - other % 8), abs(king // 8 - other // 8))
            value += sign * (CORNER * from_centre(king) + NEARNESS * (8 - apart))
    return value
