"""Endgames against a lone king: positions by rule, exact tables of one piece, and play with one or two pieces."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from lmgym.env.games.chess.game import Game
from lmgym.env.games.chess.position import EMPTY, NEAR, RAYS, ChessPosition, Move
from lmgym.errors import InstanceError

PIECES = ("Q", "R", "QR", "RR")  # White's beside the king, by instance in turn
STREAM = {"train": 0, "test": 4}  # the first of test for which all 645 positions differ
TESTED = 52  # of 256 digests of positions, for the test split
UNKNOWN = 255  # of a table: the lone king is not lost
FAR = 1000  # moves to mate if White is left without pieces

Moves = npt.NDArray[np.uint8]  # White's moves to mate, by the squares of White's king, its piece and the lone king


class MateTable(NamedTuple):
    """Exact values of all positions of a king and one piece against a king."""

    lost: Moves  # where the lone king is on turn
    won: Moves  # where White is


@lru_cache(maxsize=4096)
def first_position(split: str, index: int) -> ChessPosition:
    """Draw the first position of an instance: pieces at random, White on turn, until legal and of this split."""
    rng = np.random.default_rng([STREAM[split], index])
    men = f"Kk{PIECES[index % len(PIECES)]}"
    while True:
        board = [EMPTY] * 64
        for square, piece in zip(rng.choice(64, len(men), replace=False), men, strict=True):
            board[int(square)] = piece
        position = ChessPosition("".join(board))
        if not position.impossible and _split_of(position) == split:
            return position


def _split_of(position: ChessPosition) -> str:
    """Return the split of a position: by the digest that it shares with its turned and mirrored images."""
    grid = np.array(list(position.board)).reshape(8, 8)
    images = [np.rot90(each, turns) for each in (grid, grid.T) for turns in range(4)]
    first = min("".join(image.ravel()) for image in images)
    return "test" if hashlib.blake2b(first.encode(), digest_size=1).digest()[0] < TESTED else "train"


def checked_ending(position: ChessPosition) -> ChessPosition:
    """Return a position if it is one of the endgames with White on turn, else raise InstanceError."""
    men = "".join(sorted(position.board.replace(EMPTY, "")))
    if men not in {"".join(sorted(f"Kk{pieces}")) for pieces in PIECES} or not position.white:
        raise InstanceError(
            f"an endgame has White on turn with king and {', '.join(PIECES)} against a king: {position.fen!r}"
        )
    return position


# The lone king -----------------------------------------------------------------------------------------------------


def lone_king_move(position: ChessPosition) -> Move:
    """Return the lone king's best move, two plies deep: out of mate, towards captures, stalemate and the centre."""
    best, value = position.moves[0], -math.inf
    for move in sorted(position.moves, key=lambda each: each.target):  # the first of equal ones
        worst = _worst(position.after(move), above=value)
        if worst > value:
            best, value = move, worst
    return best


def _worst(position: ChessPosition, *, above: float) -> float:
    """Return the least value for Black after any move of White; stop at the first that is not above `above`."""
    if len(position.board.replace(EMPTY, "")) == 2:
        return FAR
    least = math.inf
    for move in position.moves:
        least = min(least, _standing(position.after(move)))
        if least <= above:
            break
    return least if position.moves else 0.0


def _standing(position: ChessPosition) -> float:
    """Return the value of a position for Black, who is on turn."""
    if not position.moves:
        return -FAR if position.in_check else FAR
    king, white = position.board.index("k"), position.board.index("K")
    takes = sum(position.board[move.target] != EMPTY for move in position.moves)
    centre = max(abs(2 * (king % 8) - 7), abs(2 * (king // 8) - 7))
    return 20 * takes + len(position.moves) - 4 * centre + max(abs(king % 8 - white % 8), abs(king // 8 - white // 8))


# Exact tables ------------------------------------------------------------------------------------------------------


@cache
def table(piece: str) -> MateTable:
    """Return White's moves to mate with king and `piece`, found by retrograde analysis."""
    near, rays = np.zeros((64, 64), bool), _covered(piece)
    for square in range(64):
        near[square, list(NEAR["K"][square])] = True  # squares that are next to each other
    squares = np.arange(64)
    white, other, black = np.ix_(squares, squares, squares)
    apart = ~near[white, black] & (white != black) & (white != other) & (other != black)
    # the lone king may step to a square that neither White's king nor the piece covers, or take an uncovered piece
    covered = rays | near[:, None, :]
    own = squares[None, :, None] == squares[None, None, :]
    open_squares = ~covered & (squares[:, None, None] != squares[None, None, :])  # [king, piece, to]
    takes = np.einsum("wxt,bt->wxb", open_squares & own, near, dtype=np.int32) > 0
    steps = [np.flatnonzero(near[square]) for square in range(64)]
    reach = rays[:, :, None, :] & ~_between()[None, :, :, :]  # [king, piece, lone king, to]
    reach &= (squares[:, None] != squares[None, :])[None, None]
    values = MateTable(np.full((64, 64, 64), UNKNOWN, np.uint8), np.full((64, 64, 64), UNKNOWN, np.uint8))
    for depth in range(UNKNOWN):
        lost, won = apart & ~takes & (values.lost == UNKNOWN), values.won != UNKNOWN
        for square in range(64):
            may, to = open_squares[:, :, steps[square]] & ~own[:, :, steps[square]], won[:, :, steps[square]]
            lost[:, :, square] &= (~may | to).all(-1) & (may.any(-1) | rays[:, :, square])
        if not lost.any() and depth:
            return values
        values.lost[lost] = depth
        pieces = np.einsum("wxbt,wtb->wxb", reach, lost, dtype=np.int32) > 0
        kings = np.einsum("wt,txb->wxb", near, lost, dtype=np.int32) > 0
        values.won[(pieces | kings) & apart & ~rays & ~won] = depth + 1
    raise AssertionError("mate takes less than 255 moves")


def _covered(piece: str) -> npt.NDArray[np.bool_]:
    """Return the squares that a piece covers, (king that stands in its way, piece, square)."""
    covered = np.zeros((64, 64, 64), bool)
    for king in range(64):
        for start in range(64):
            for ray in RAYS[piece][start]:
                end = ray.index(king) if king in ray else len(ray)
                covered[king, start, list(ray[:end])] = True
    return covered


def _between() -> npt.NDArray[np.bool_]:
    """Return which squares block a way, (start, block, target)."""
    blocked = np.zeros((64, 64, 64), bool)
    for start in range(64):
        for ray in RAYS["Q"][start]:
            for place, block in enumerate(ray):
                blocked[start, block, list(ray[place + 1 :])] = True
    return blocked


def winning_move(game: Game) -> Move:
    """Return a move of White that mates soonest, exact with one piece; two pieces win as their better one does.

    The pieces may stand in each other's way, so moves that repeat a position come last.
    """
    afters = {move: game.position.after(move) for move in game.position.moves}
    return min(afters, key=lambda move: (game.met(afters[move]), _to_mate(afters[move])))


def _to_mate(position: ChessPosition) -> int:
    """Return White's moves to mate where the lone king is on turn."""
    if not position.moves:
        return -1 if position.in_check else FAR
    if len(position.board.replace(EMPTY, "")) == 3:
        return min(_moves_to_mate(position.board, white=False))
    return max(min(_moves_to_mate(position.after(move).board, white=True), default=FAR) for move in position.moves)


def _moves_to_mate(board: str, *, white: bool) -> Iterator[int]:
    """Yield the moves to mate with each of White's pieces alone; `white` is on turn."""
    king, lone_king = board.index("K"), board.index("k")
    for square, piece in enumerate(board):
        if piece in "QR":
            moves = int((table(piece).won if white else table(piece).lost)[king, square, lone_king])
            yield FAR if moves == UNKNOWN else moves
