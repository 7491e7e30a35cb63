"""Reading files of strangers: zstd, JSON lines and JSON that are exactly what they should be, or one clear refusal.

Nothing is held in memory whole: a frame is fed in pieces so small that what one of them can grow to is bounded.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import zstandard

from lmgym.errors import SubmissionError

PIECE = 512  # bytes of a frame fed at a time: zstd makes at most 32,768 bytes of one, so 16 MiB
WINDOW = 1 << 23  # bytes a frame may ask to look back
CONTENT = 1 << 29  # bytes that the lines of an entry take
LINE = 1 << 23  # bytes of one line
ENTRY = 1 << 18  # bytes of an entry's JSON
DIGITS = 20  # of a whole number
DEPTH = 32  # brackets in brackets


def compress(content: bytes) -> bytes:
    """One frame that states its size."""
    return zstandard.ZstdCompressor(level=19).compress(content)


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file of one zstd frame, without their ends."""
    rest = b""
    for part in _decompressed(path):
        *whole, rest = (rest + part).split(b"\n")
        for line in whole:
            yield _short(line, path)
        _short(rest, path)
    if rest:
        raise SubmissionError(f"{path.name}: the last line has no end: the file was cut")


def _short(line: bytes, path: Path) -> bytes:
    if len(line) > LINE:
        raise SubmissionError(f"{path.name}: a line is longer than {LINE:,} bytes")
    return line


def _decompressed(path: Path) -> Iterator[bytes]:
    total = 0
    with regular(path).open("rb") as file:
        _check_header(file.read(18), path)
        file.seek(0)
        frame = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
        while piece := file.read(PIECE):
            if frame.eof:
                raise SubmissionError(f"{path.name}: something follows the zstd frame; one frame is all there may be")
            try:
                part = frame.decompress(piece)
            except zstandard.ZstdError as error:
                raise SubmissionError(f"{path.name} is no zstd file: {error}") from error
            total += len(part)
            if total > CONTENT:
                raise SubmissionError(f"{path.name} unpacks to more than {CONTENT:,} bytes")
            if frame.unused_data:
                raise SubmissionError(f"{path.name}: something follows the zstd frame; one frame is all there may be")
            yield part
    if not frame.eof:
        raise SubmissionError(f"{path.name}: the zstd frame is cut off")


def _check_header(head: bytes, path: Path) -> None:
    try:
        frame = zstandard.get_frame_parameters(head)
    except zstandard.ZstdError as error:
        raise SubmissionError(f"{path.name} is no zstd file: {error}") from error
    stated = frame.content_size
    if stated not in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR) and stated > CONTENT:
        raise SubmissionError(f"{path.name} states that it unpacks to {stated:,} bytes; {CONTENT:,} is the limit")
    if frame.window_size > WINDOW:
        raise SubmissionError(f"{path.name} asks for a window of {frame.window_size:,} bytes; {WINDOW:,} are given")
    if frame.dict_id:
        raise SubmissionError(f"{path.name} needs the zstd dictionary {frame.dict_id}; entries use none")


def regular(path: Path) -> Path:
    """The path of a plain file that is no link."""
    if path.is_symlink():
        raise SubmissionError(f"{path.name} is a link; an entry is made of plain files")
    if not path.is_file():
        raise SubmissionError(f"{path} is missing")
    return path


def small(path: Path) -> bytes:
    """The content of an entry's JSON file."""
    if (size := regular(path).stat().st_size) > ENTRY:
        raise SubmissionError(f"{path.name} has {size:,} bytes; an entry has at most {ENTRY:,}")
    return path.read_bytes()


def parse(content: bytes, where: str) -> Any:
    """What a JSON text says; SubmissionError for what JSON's own grammar lets through and nobody means."""
    try:
        found = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=lambda pairs: _unique(pairs, where),
            parse_constant=lambda word: _refuse(f"{where}: {word} is no number"),
            parse_int=lambda digits: _whole(digits, where),
            parse_float=lambda digits: _finite(digits, where),
        )
    except RecursionError:
        raise SubmissionError(f"{where}: brackets are nested deeper than {DEPTH}") from None
    except UnicodeDecodeError as error:
        raise SubmissionError(f"{where} is not UTF-8: {error.reason}") from error
    except json.JSONDecodeError as error:
        raise SubmissionError(f"{where} is no JSON: {error.msg} at character {error.pos}") from error
    _check_words(found, where, DEPTH)
    return found


def canonical(content: Any) -> bytes:
    """The one JSON text of a value: keys sorted, no spaces, ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(content: bytes) -> str:
    """64 hex digits of SHA-256."""
    return hashlib.sha256(content).hexdigest()


def _refuse(message: str) -> NoReturn:
    raise SubmissionError(message)


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise SubmissionError(f"{where}: the key {twice[:40]!r} stands there twice")
    return found


def _whole(digits: str, where: str) -> int:
    if len(digits) > DIGITS:
        raise SubmissionError(f"{where}: a whole number of {len(digits):,} digits; {DIGITS} are the most")
    return int(digits)


def _finite(digits: str, where: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise SubmissionError(f"{where}: {digits[:40]} is too large for a number")
    return value


def _check_words(value: Any, where: str, depth: int) -> None:
    """Refuse what is nested too deeply, and lone surrogates: no encoding writes them."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as error:
                raise SubmissionError(f"{where}: a text has half a surrogate pair") from error
    elif isinstance(value, dict | list):
        if not depth:
            raise SubmissionError(f"{where}: brackets are nested deeper than {DEPTH}")
        for part in value if isinstance(value, list) else [*value, *value.values()]:
            _check_words(part, where, depth - 1)
