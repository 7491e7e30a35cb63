"""Pictures as PNG: named by what they show, kept once."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from lmgym.types import digest_of

START = b"\x89PNG\r\n\x1a\n"


def encode(picture: NDArray[np.uint8]) -> tuple[str, bytes]:
    """Return the digest of an (H, W, 3) picture and its PNG.

    The digest is of the pixels: builds of zlib differ in the bytes they make, and recorded episodes are compared.
    """
    height, width, _ = picture.shape
    digest = digest_of(height, width, picture.tobytes())
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, width * 3)], axis=1)  # no filter
    parts = (
        _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        _chunk(b"IDAT", zlib.compress(rows.tobytes())),
        _chunk(b"IEND", b""),
    )
    return digest, START + b"".join(parts)


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def decode(content: bytes, height: int, width: int) -> NDArray[np.uint8]:
    """Return the (height, width, 3) picture of a PNG that `encode` made, which anybody may have sent.

    Raises ValueError for any other; no more memory is taken than the picture needs.
    """
    found = _chunks(content)
    if found.get(b"IHDR") != struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0):
        raise ValueError(f"no PNG of {width} by {height} RGB pixels")
    size = height * (1 + width * 3)
    reader = zlib.decompressobj()
    try:
        rows = reader.decompress(found.get(b"IDAT", b""), size + 1)
    except zlib.error as error:
        raise ValueError(f"the pixels of a PNG cannot be read: {error}") from error
    if len(rows) != size or not reader.eof:
        raise ValueError(f"a PNG of {size} bytes has {len(rows)} or more")
    lines = np.frombuffer(rows, np.uint8).reshape(height, 1 + width * 3)
    if lines[:, 0].any():
        raise ValueError("the rows of a PNG are filtered, which lmgym does not do")
    return lines[:, 1:].reshape(height, width, 3).copy()


def _chunks(content: bytes) -> dict[bytes, bytes]:
    """Head and pixels of a PNG, whatever else is in it; where one comes twice, the last."""
    if not content.startswith(START):
        raise ValueError("no PNG")
    found: dict[bytes, bytes] = {}
    place = len(START)
    while place + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, place)
        kind = content[place + 4 : place + 8]
        if kind in (b"IHDR", b"IDAT"):
            found[kind] = content[place + 8 : place + 8 + length]
        place += 12 + length
    return found
