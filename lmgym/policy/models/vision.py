"""Pictures for models: named by digest in messages, located among ids, decoded when a model computes them.

Within a session each picture has ids of its own in place of the placeholder's id, so that two prompts with the same
words and different pictures never count as equal. Only the chat template places pictures: a placeholder that a policy
samples is an ordinary id and shows nothing.
"""

from __future__ import annotations

import io
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch
from torch import Tensor

from lmgym.errors import MissingExtra, PolicyError
from lmgym.types import Picture, digest_of

if TYPE_CHECKING:
    from PIL.Image import Image

PICTURE_IDS = 1 << 31  # ids from here on stand for pictures: no vocabulary is as large
CACHE_BYTES = 1 << 29  # bytes of prepared pictures that are kept


@dataclass(frozen=True)
class PreparedPicture:
    """A picture as a model's encoder takes it."""

    digest: str
    text: str  # what stands for it in a rendering
    tokens: int  # placeholders in `text`
    inputs: Mapping[str, Tensor]
    grid: tuple[int, int] | None = None  # rows and columns of its tokens, if positions follow them


class Vision(Protocol):
    """The way in which a family of models takes pictures."""

    @property
    def token(self) -> int:
        """Id of the placeholder."""

    @property
    def template_text(self) -> str:
        """Text that the chat template writes for a picture."""

    @property
    def settings(self) -> str:
        """All settings on which the tokens of a picture depend."""

    @property
    def grid_positions(self) -> bool:
        """True if the tokens of a picture have its grid as positions (rotary positions of three axes)."""

    def prepare(self, digest: str, picture: Image) -> PreparedPicture:
        """Prepare a picture."""

    def inputs(self, pictures: Sequence[PreparedPicture]) -> dict[str, Tensor]:
        """Return the arguments of the model's own forward pass for these pictures."""

    def save(self, folder: Path) -> None:
        """Write all that another process needs to prepare pictures alike."""


class Gallery:
    """The pictures that a policy is shown, by digest; prepared ones are cached."""

    def __init__(self, vision: Vision, pictures: Mapping[str, bytes] | None = None) -> None:
        """`pictures` maps digests to PNGs."""
        self.vision = vision
        self.pictures: Mapping[str, bytes] = {} if pictures is None else pictures
        self._cache: OrderedDict[str, PreparedPicture] = OrderedDict()
        self._bytes = 0

    def __getitem__(self, digest: str) -> PreparedPicture:
        """Return the prepared picture `digest`; raise PolicyError if it is missing."""
        picture = self._cache.get(digest)
        if picture is None:
            picture = self._cache[digest] = self.vision.prepare(digest, decode_picture(digest, self.pictures))
            self._bytes += _bytes_of(picture)
            while self._bytes > CACHE_BYTES and len(self._cache) > 1:
                self._bytes -= _bytes_of(self._cache.popitem(last=False)[1])
        self._cache.move_to_end(digest)
        return picture

    def locate(self, digests: Sequence[str], ids: Sequence[int]) -> tuple[Picture, ...]:
        """Locate the pictures `digests`, which a template wrote in this order, among its `ids`."""
        places = [place for place, token in enumerate(ids) if token == self.vision.token]
        counts = [self[digest].tokens for digest in digests]
        if sum(counts) != len(places):
            raise PolicyError(f"{len(digests)} pictures take {sum(counts)} tokens; the prompt has {len(places)}")
        pictures, begin = [], 0
        for digest, count in zip(digests, counts, strict=True):
            first, last = places[begin], places[begin + count - 1]
            pictures.append(Picture(digest, first, last + 1 - first))
            begin += count
        return tuple(pictures)


def decode_picture(digest: str, pictures: Mapping[str, bytes]) -> Image:
    """Return the picture `digest` in RGB; raise PolicyError if it is missing, unreadable or a different one."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise MissingExtra(f"pictures need: pip install 'lmgym[train]' ({error})") from error
    if digest not in pictures:
        raise PolicyError(f"picture {digest} is missing: give the policy the engine's pictures")
    try:
        image = Image.open(io.BytesIO(pictures[digest])).convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise PolicyError(f"picture {digest} cannot be read: {error}") from error
    if digest_of(image.height, image.width, image.tobytes()) != digest:
        raise PolicyError(f"the file of picture {digest} contains a different picture: it was changed")
    return image


@dataclass(frozen=True)
class Media:
    """The pictures of rows of tokens, decoded when a model computes them."""

    rows: tuple[tuple[Picture, ...], ...]
    gallery: Gallery

    def __bool__(self) -> bool:
        """Return True if there is any picture."""
        return any(self.rows)

    def select(self, index: Iterable[int]) -> Media:
        """Return the pictures of the rows `index`."""
        return Media(tuple(self.rows[i] for i in index), self.gallery)

    def joined(self, other: Media) -> Media:
        """Return the pictures of these rows, then those of `other`."""
        return Media(self.rows + other.rows, self.gallery)

    def before(self, ends: Sequence[int]) -> Media:
        """Return the pictures that begin before the end of their row, `ends` holding one end for each row."""
        pairs = zip(self.rows, ends, strict=True)
        return Media(tuple(tuple(p for p in row if p.start < end) for row, end in pairs), self.gallery)

    def placeholders(self, ids: Tensor) -> Tensor:
        """Return the mask (B, T) of picture tokens in `ids` (B, T), padded on the right.

        Raise PolicyError if their number differs from that of the pictures' tokens, as under a policy that prepares
        pictures otherwise than the one that sampled the ids.
        """
        within = torch.zeros(ids.shape, dtype=torch.bool)
        for row, pictures in enumerate(self.rows):
            for picture in pictures:
                within[row, picture.start : picture.start + picture.length] = True
        mask: Tensor = within.to(ids.device) & (ids == self.gallery.vision.token)
        for row, pictures in enumerate(self.rows):
            expected, actual = sum(self.gallery[p.digest].tokens for p in pictures), int(mask[row].sum())
            if expected != actual:
                raise PolicyError(f"a row has {actual} tokens for pictures that take {expected}: another model's ids")
        return mask

    def model_ids(self, ids: Tensor, placeholders: Tensor) -> Tensor:
        """Return `ids` (B, T) without sampled placeholders, for a model that takes any placeholder for a picture."""
        vision = self.gallery.vision
        return ids.masked_fill((ids == vision.token) & ~placeholders, neutral_id(vision))

    def positions(self, placeholders: Tensor) -> Tensor | None:
        """Return rotary positions (3, B, T) for the mask `placeholders` (B, T); None if positions are plain."""
        if not self.gallery.vision.grid_positions:
            return None
        pairs = zip(placeholders, self.rows, strict=True)
        return torch.stack([rotary_positions(mask, [self.gallery[p.digest] for p in row])[0] for mask, row in pairs], 1)

    def prepared(self) -> list[PreparedPicture]:
        """Return all pictures, row by row."""
        return [self.gallery[picture.digest] for row in self.rows for picture in row]


def with_picture_ids(
    ids: Sequence[int], pictures: Iterable[Picture], token: int, picture_ids: dict[str, int]
) -> list[int]:
    """Return `ids` with the placeholders of each picture replaced by its id; new ids are added to `picture_ids`."""
    replaced = list(ids)
    for picture in pictures:
        picture_id = picture_ids.setdefault(picture.digest, PICTURE_IDS + len(picture_ids))
        for place in range(picture.start, picture.start + picture.length):
            if replaced[place] == token:
                replaced[place] = picture_id
    return replaced


def rotary_positions(placeholders: Tensor, pictures: Sequence[PreparedPicture]) -> tuple[Tensor, int]:
    """Return rotary positions (3, T) of a row with picture tokens at `placeholders` (T,), and the later tokens' offset.

    Words count on along all three axes. A picture's tokens share one position on the first axis and have its rows and
    columns on the others; the next word continues after the largest.
    """
    places = placeholders.nonzero()[:, 0].tolist()
    out = torch.arange(len(placeholders), device=placeholders.device).repeat(3, 1)
    begin = offset = 0
    for picture in pictures:
        assert picture.grid is not None, "a picture without a grid"
        rows, columns = picture.grid
        first, end = places[begin], places[begin] + picture.tokens
        assert places[begin + picture.tokens - 1] == end - 1, "a picture in pieces"
        down = torch.arange(rows).repeat_interleave(columns)
        across = torch.arange(columns).repeat(rows)
        out[:, first:end] = (first + offset + torch.stack((torch.zeros_like(down), down, across))).to(out)
        offset += max(rows, columns) - picture.tokens
        out[:, end:] = torch.arange(end, len(placeholders), device=out.device) + offset
        begin += picture.tokens
    return out, offset


def neutral_id(vision: Vision) -> int:
    """Return the id that replaces sampled placeholders."""
    return 1 if vision.token == 0 else 0


def _bytes_of(picture: PreparedPicture) -> int:
    return sum(part.nbytes for part in picture.inputs.values())
