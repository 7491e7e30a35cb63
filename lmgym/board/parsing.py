"""Reading of untrusted files: zstd frames, lines and JSON that follow one strict form, or a clear refusal.

Memory is bounded: a frame is decompressed in pieces, so that no input can expand without limit.
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

PIECE = 512  # bytes decompressed at a time; zstd expands a byte to at most 32,768, so a piece to 16 MiB
WINDOW = 1 << 23  # bytes of a frame's window
CONTENT = 1 << 29  # bytes of an uncompressed file of episodes
LINE = 1 << 23  # bytes of a line
ENTRY = 1 << 18  # bytes of an entry's JSON file
DIGITS = 20  # of an integer
DEPTH = 32  # nested brackets


def compress(content: bytes) -> bytes:
    """Compress into one frame that states its size."""
    return zstandard.ZstdCompressor(level=19).compress(content)


def lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a file that is one zstd frame, without line breaks."""
    rest = b""
    for part in _decompressed(path):
        *complete, rest = (rest + part).split(b"\n")
        if any(len(line) > LINE for line in (*complete, rest)):
            raise SubmissionError(f"{path.name}: a line is longer than {LINE:,} bytes")
        yield from complete
    if rest:
        raise SubmissionError(f"{path.name}: the last line has no line break: the file was cut")


def _decompressed(path: Path) -> Iterator[bytes]:
    total = 0
    with regular_file(path).open("rb") as file:
        try:
            header = zstandard.get_frame_parameters(file.read(18))
        except zstandard.ZstdError as error:
            raise SubmissionError(f"{path.name} is not a zstd file: {error}") from error
        size, window = header.content_size, header.window_size
        if size not in (zstandard.CONTENTSIZE_UNKNOWN, zstandard.CONTENTSIZE_ERROR) and size > CONTENT:
            raise SubmissionError(f"{path.name} states a size of {size:,} bytes; the limit is {CONTENT:,}")
        if window > WINDOW:
            raise SubmissionError(f"{path.name} needs a window of {window:,} bytes; the limit is {WINDOW:,}")
        if header.dict_id:
            name = f"zstd dictionary {header.dict_id}"
            raise SubmissionError(f"{path.name} needs the {name}; dictionaries are not allowed")
        file.seek(0)
        frame = zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
        while piece := file.read(PIECE):
            if not frame.eof:
                try:
                    part = frame.decompress(piece)
                except zstandard.ZstdError as error:
                    raise SubmissionError(f"{path.name} is not a zstd file: {error}") from error
                piece = frame.unused_data
            if piece and frame.eof:
                raise SubmissionError(f"{path.name}: data after the zstd frame; a file is exactly one frame")
            total += len(part)
            if total > CONTENT:
                raise SubmissionError(f"{path.name} unpacks to more than {CONTENT:,} bytes")
            yield part
    if not frame.eof:
        raise SubmissionError(f"{path.name}: the zstd frame is cut off")


def regular_file(path: Path) -> Path:
    """Return the path of a regular file. Raises SubmissionError if it is missing or a link."""
    if path.is_symlink():
        raise SubmissionError(f"{path.name} is a link; an entry consists of regular files")
    if not path.is_file():
        raise SubmissionError(f"{path} is missing")
    return path


def read_small(path: Path) -> bytes:
    """Read an entry's JSON file."""
    if (size := regular_file(path).stat().st_size) > ENTRY:
        raise SubmissionError(f"{path.name} has {size:,} bytes; an entry has at most {ENTRY:,}")
    return path.read_bytes()


def parse(content: bytes, where: str) -> Any:
    """Parse JSON. Raises SubmissionError also for repeated keys, NaN, huge numbers, deep nesting, lone surrogates."""
    try:
        value = json.loads(
            content.decode("utf-8"),
            object_pairs_hook=lambda pairs: _unique(pairs, where),
            parse_constant=lambda word: _refuse(f"{where}: {word} is not a JSON number"),
            parse_int=lambda digits: _integer(digits, where),
            parse_float=lambda digits: _finite(digits, where),
        )
    except RecursionError:
        raise SubmissionError(f"{where}: brackets are nested deeper than {DEPTH}") from None
    except UnicodeDecodeError as error:
        raise SubmissionError(f"{where} is not UTF-8: {error.reason}") from error
    except json.JSONDecodeError as error:
        raise SubmissionError(f"{where} is not JSON: {error.msg} at character {error.pos}") from error
    _check_value(value, where, DEPTH)
    return value


def canonical(content: Any) -> bytes:
    """Return the canonical JSON text of a value: sorted keys, no spaces, ASCII."""
    return json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def digest(content: bytes) -> str:
    """Return the SHA-256 of a content, 64 hex digits."""
    return hashlib.sha256(content).hexdigest()


def _refuse(message: str) -> NoReturn:
    raise SubmissionError(message)


def _unique(pairs: list[tuple[str, Any]], where: str) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        key = next(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
        raise SubmissionError(f"{where}: the key {key[:40]!r} is repeated")
    return members


def _integer(digits: str, where: str) -> int:
    if len(digits) > DIGITS:
        raise SubmissionError(f"{where}: an integer has {len(digits):,} digits; the limit is {DIGITS}")
    return int(digits)


def _finite(digits: str, where: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise SubmissionError(f"{where}: {digits[:40]} is too large for a number")
    return value


def _check_value(value: Any, where: str, depth: int) -> None:
    """Refuse deep nesting, and lone surrogates, which no encoding can write."""
    if isinstance(value, str):
        if not value.isascii():
            try:
                value.encode("utf-8")
            except UnicodeEncodeError as error:
                raise SubmissionError(f"{where}: a text has a lone surrogate") from error
    elif isinstance(value, dict | list):
        if not depth:
            raise SubmissionError(f"{where}: brackets are nested deeper than {DEPTH}")
        for part in value if isinstance(value, list) else [*value, *value.values()]:
            _check_value(part, where, depth - 1)
