"""Pictures as a model takes them: named by digest in messages, by place among ids, decoded where they are computed.

Within a session a picture's places carry a number of its own in place of the placeholder's id, so that two prompts with
the same words and other pictures never count as alike. Whatever says where pictures stand was written by the template:
a placeholder that a policy samples is an id like any other and shows nothing.
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

NAMES = 1 << 31  # ids from here on name pictures: no vocabulary has as many
ROOM = 1 << 29  # bytes of decoded pictures that are kept


@dataclass(frozen=True)
class Sight:
    """A picture as a model's encoder takes it."""

    digest: str
    words: str  # what stands for it in a rendering
    places: int  # placeholders among them
    inputs: Mapping[str, Tensor]
    grid: tuple[int, int] | None = None  # rows and columns of its tokens, where positions follow them


class Vision(Protocol):
    """How a family of models takes pictures."""

    @property
    def token(self) -> int:
        """Id of the placeholder."""

    @property
    def written(self) -> str:
        """What the chat template writes for a picture."""

    @property
    def settings(self) -> str:
        """What the tokens of a picture depend on: with other settings it may take more or fewer."""

    @property
    def turned(self) -> bool:
        """Whether positions of a picture's tokens are those of its grid (rotary positions of three axes)."""

    def look(self, digest: str, picture: Image) -> Sight:
        """Prepare a picture."""

    def inputs(self, sights: Sequence[Sight]) -> dict[str, Tensor]:
        """What the model's own forward pass takes for these pictures."""

    def save(self, folder: Path) -> None:
        """Write what another process needs to make the same of pictures."""


class Gallery:
    """The pictures that a policy is shown, by digest, each prepared once while there is room."""

    def __init__(self, vision: Vision, pictures: Mapping[str, bytes] | None = None) -> None:
        """`pictures` are PNGs by digest."""
        self.vision = vision
        self.pictures: Mapping[str, bytes] = {} if pictures is None else pictures
        self._made: OrderedDict[str, Sight] = OrderedDict()
        self._bytes = 0

    def __getitem__(self, digest: str) -> Sight:
        """The picture `digest`; raises PolicyError where nobody showed it."""
        sight = self._made.get(digest)
        if sight is None:
            sight = self._made[digest] = self.vision.look(digest, decoded(digest, self.pictures))
            self._bytes += _size(sight)
            while self._bytes > ROOM and len(self._made) > 1:
                self._bytes -= _size(self._made.popitem(last=False)[1])
        self._made.move_to_end(digest)
        return sight

    def located(self, digests: Sequence[str], ids: Sequence[int]) -> tuple[Picture, ...]:
        """Where the pictures `digests`, which a template wrote one after another, stand among its `ids`."""
        places = [place for place, token in enumerate(ids) if token == self.vision.token]
        counts = [self[digest].places for digest in digests]
        if sum(counts) != len(places):
            raise PolicyError(f"{len(digests)} pictures take {sum(counts)} tokens; the prompt has {len(places)}")
        found, begin = [], 0
        for digest, count in zip(digests, counts, strict=True):
            first, last = places[begin], places[begin + count - 1]
            found.append(Picture(digest, first, last + 1 - first))
            begin += count
        return tuple(found)


def decoded(digest: str, pictures: Mapping[str, bytes]) -> Image:
    """The picture `digest` in RGB; raises PolicyError where it is not there, cannot be read or is another."""
    try:
        from PIL import Image, UnidentifiedImageError
    except ModuleNotFoundError as error:
        raise MissingExtra(f"pictures need: pip install 'lmgym[train]' ({error})") from error
    if digest not in pictures:
        raise PolicyError(f"the picture {digest} is not there: give the policy the engine's pictures")
    try:
        found = Image.open(io.BytesIO(pictures[digest])).convert("RGB")
    except (UnidentifiedImageError, Image.DecompressionBombError, OSError, ValueError, SyntaxError) as error:
        raise PolicyError(f"the picture {digest} cannot be read: {error}") from error
    if digest_of(found.height, found.width, found.tobytes()) != digest:
        raise PolicyError(f"what is kept as the picture {digest} is another one: its file was changed")
    return found


@dataclass(frozen=True)
class Media:
    """The pictures of rows of tokens, decoded when a model computes them."""

    rows: tuple[tuple[Picture, ...], ...]
    gallery: Gallery

    def __bool__(self) -> bool:
        """Whether there is any picture."""
        return any(self.rows)

    def some(self, index: Iterable[int]) -> Media:
        """Those of the rows `index`."""
        return Media(tuple(self.rows[i] for i in index), self.gallery)

    def before(self, ends: Sequence[int]) -> Media:
        """Those that begin before the place where their row ends, one for each row."""
        pairs = zip(self.rows, ends, strict=True)
        return Media(tuple(tuple(p for p in row if p.start < end) for row, end in pairs), self.gallery)

    def shown(self, ids: Tensor) -> Tensor:
        """Where in `ids` (B, T), padded on the right, pictures stand; (B, T) bool. Raises PolicyError for other counts.

        A policy that takes pictures otherwise than the one that was shown them would put them at other places.
        """
        within = torch.zeros(ids.shape, dtype=torch.bool)
        for row, pictures in enumerate(self.rows):
            for picture in pictures:
                within[row, picture.start : picture.start + picture.length] = True
        found: Tensor = within.to(ids.device) & (ids == self.gallery.vision.token)
        for row, pictures in enumerate(self.rows):
            wanted, stand = sum(self.gallery[p.digest].places for p in pictures), int(found[row].sum())
            if wanted != stand:
                raise PolicyError(f"a row has {stand} places for pictures that take {wanted}: another model's ids")
        return found

    def fed(self, ids: Tensor, shown: Tensor) -> Tensor:
        """`ids` (B, T) as a model is given them that looks for placeholders: there are none but those `shown`."""
        return ids.masked_fill((ids == self.gallery.vision.token) & ~shown, stand_in(self.gallery.vision))

    def positions(self, shown: Tensor) -> Tensor | None:
        """Rotary positions (3, B, T) of rows in which pictures are `shown` (B, T); None where they are plain."""
        if not self.gallery.vision.turned:
            return None
        pairs = zip(shown, self.rows, strict=True)
        return torch.stack([turned(row, [self.gallery[p.digest] for p in found])[0] for row, found in pairs], 1)

    def sights(self) -> list[Sight]:
        """All pictures, row by row."""
        return [self.gallery[picture.digest] for row in self.rows for picture in row]


def named(ids: Sequence[int], pictures: Iterable[Picture], token: int, names: dict[str, int]) -> list[int]:
    """`ids` with the places of pictures by the pictures' names; new ones are added to `names`."""
    out = list(ids)
    for picture in pictures:
        name = names.setdefault(picture.digest, NAMES + len(names))
        for place in range(picture.start, picture.start + picture.length):
            if out[place] == token:
                out[place] = name
    return out


def turned(shown: Tensor, sights: Sequence[Sight]) -> tuple[Tensor, int]:
    """Rotary positions (3, T) of a row whose pictures are `shown` (T,), and what later tokens' are beyond their places.

    Words count on along all three axes; a picture's tokens stand still on the first and have its rows and columns on
    the others; what follows counts on from the largest.
    """
    places = shown.nonzero()[:, 0].tolist()
    out = torch.arange(len(shown), device=shown.device).repeat(3, 1)
    begin = beyond = 0
    for sight in sights:
        assert sight.grid is not None, "a picture without a grid"
        rows, columns = sight.grid
        first, end = places[begin], places[begin] + sight.places
        assert places[begin + sight.places - 1] == end - 1, "a picture in pieces"
        down = torch.arange(rows).repeat_interleave(columns)
        across = torch.arange(columns).repeat(rows)
        out[:, first:end] = (first + beyond + torch.stack((torch.zeros_like(down), down, across))).to(out)
        beyond += max(rows, columns) - sight.places
        out[:, end:] = torch.arange(end, len(shown), device=out.device) + beyond
        begin += sight.places
    return out, beyond


def stand_in(vision: Vision) -> int:
    """An id that a placeholder which shows nothing is fed as."""
    return 1 if vision.token == 0 else 0


def _size(sight: Sight) -> int:
    return sum(part.nbytes for part in sight.inputs.values())
