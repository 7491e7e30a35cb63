"""Pictures as PNG, named by a digest of their pixels."""

from __future__ import annotations

import struct
import zlib

import numpy as np
from numpy.typing import NDArray

from lmgym.types import digest_of

START = b"\x89PNG\r\n\x1a\n"


def encode(picture: NDArray[np.uint8]) -> tuple[str, bytes]:
    """Return the digest of an (H, W, 3) picture and its PNG.

    The digest is of the pixels, as recorded episodes are compared and the PNG's bytes differ between builds of zlib.
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
    """Return the (height, width, 3) picture of an untrusted PNG made by `encode`.

    Raises ValueError for other content; decompression is limited to the size of the picture.
    """
    chunks = _chunks(content)
    if chunks.get(b"IHDR") != struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0):
        raise ValueError(f"not a PNG of {width} by {height} RGB pixels")
    size = height * (1 + width * 3)
    reader = zlib.decompressobj()
    try:
        rows = reader.decompress(chunks.get(b"IDAT", b""), size + 1)
    except zlib.error as error:
        raise ValueError(f"the pixels of a PNG cannot be read: {error}") from error
    if len(rows) != size or not reader.eof:
        raise ValueError(f"a PNG must have {size} bytes of pixels; got {len(rows)} or more")
    lines = np.frombuffer(rows, np.uint8).reshape(height, 1 + width * 3)
    if lines[:, 0].any():
        raise ValueError("the rows of a PNG are filtered; send unfiltered rows")
    return lines[:, 1:].reshape(height, width, 3).copy()


def _chunks(content: bytes) -> dict[bytes, bytes]:
    """Return the header and pixel chunks of a PNG; of repeated chunks the last."""
    if not content.startswith(START):
        raise ValueError("not a PNG")
    chunks: dict[bytes, bytes] = {}
    place = len(START)
    while place + 12 <= len(content):
        (length,) = struct.unpack_from(">I", content, place)
        kind = content[place + 4 : place + 8]
        if kind in (b"IHDR", b"IDAT"):
            chunks[kind] = content[place + 8 : place + 8 + length]
        place += 12 + length
    return chunks
