"""Moves in standard algebraic notation (SAN) and in UCI."""

from __future__ import annotations

import re

from lmgym.env.games.chess.position import NAMES, PROMOTIONS, ChessPosition, Move

SAN = re.compile(r"([KQRBN])?([a-h])?([1-8])?[x-]?([a-h][1-8])(?:=?([QRBNqrbn]))?")
CASTLING = {"O-O": 2, "0-0": 2, "O-O-O": -2, "0-0-0": -2}  # files that the king moves
SUFFIXES = "+#!?"


def san(position: ChessPosition, move: Move) -> str:
    """Write a legal move in SAN, with the sign of check or mate."""
    after = position.after(move)
    sign = "" if not after.in_check else "+" if after.moves else "#"
    return _body(position, move) + sign


def _body(position: ChessPosition, move: Move) -> str:
    piece = position.board[move.start].upper()
    files = move.target - move.start
    if piece == "K" and abs(files) == 2:
        return "O-O" if files > 0 else "O-O-O"
    name, target = NAMES[move.start], NAMES[move.target]
    captures = position.board[move.target] != "." or (piece == "P" and move.target == position.en_passant)
    cross = "x" if captures else ""
    if piece == "P":
        promotion = f"={move.promotion.upper()}" if move.promotion else ""
        return (name[0] + cross if captures else "") + target + promotion
    rivals = [
        NAMES[each.start]
        for each in position.moves
        if each.target == move.target
        and each.start != move.start
        and position.board[each.start] == position.board[move.start]
    ]
    return piece + _distinction(name, rivals) + cross + target


def _distinction(name: str, rivals: list[str]) -> str:
    """Return the part of a square's name that tells it from those of pieces of the same kind."""
    if not rivals:
        return ""
    if all(name[0] != rival[0] for rival in rivals):
        return name[0]
    return name[1] if all(name[1] != rival[1] for rival in rivals) else name


def read_move(position: ChessPosition, text: str) -> Move | None:
    """Return the legal move that a text names in SAN or UCI; None if it names none, or several.

    Signs of check and comment may be missing or wrong, and more of the start may be named than is needed.
    """
    words = text.strip().rstrip(SUFFIXES)
    if words in CASTLING:
        king = position.board.index("K" if position.white else "k")
        castle = Move(king, king + CASTLING[words])
        return castle if castle in position.moves and king % 8 == 4 else None
    match = SAN.fullmatch(words)
    if match is None:
        return None
    piece, file, rank, target, promotion = match.groups()
    kinds = "KQRBNP" if piece is None and file and rank else piece or "P"  # UCI names any piece's start
    wanted = (promotion or "").lower()
    matching = [
        move
        for move in position.moves
        if NAMES[move.target] == target
        and position.board[move.start].upper() in kinds
        and (file is None or NAMES[move.start][0] == file)
        and (rank is None or NAMES[move.start][1] == rank)
        and move.promotion == wanted
        and not (piece == "K" and abs(move.target - move.start) == 2)  # castling has signs of its own
    ]
    return matching[0] if len(matching) == 1 else None


def from_uci(text: str) -> Move:
    """Return the move with this name in UCI. Raises ValueError if it is none."""
    if text[4:] not in ("", *PROMOTIONS):
        raise ValueError(f"{text!r} is not a move in UCI")
    return Move(NAMES.index(text[:2]), NAMES.index(text[2:4]), text[4:])
