"""Spaces for Unicode text and for pictures, with the shared memory that vector environments need.

Gymnasium's own `Text` refuses spaces and non-ASCII by default and, read through `AsyncVectorEnv`'s shared memory,
keeps returning the text of the first reset: the vector environment expects a live view instead of a tuple of strings.
`_LiveView` below is one.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Space
from gymnasium.vector.utils import create_shared_memory, read_from_shared_memory, write_to_shared_memory
from numpy.typing import NDArray

MAX_TEXT = 1 << 20  # characters, of an observation or an action
SAMPLE_CHARACTERS = (
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 \n\t.,:;!?'\"()[]{}<>|/\\äßéñ漢字кириллицаעברית🙂🚀"
)
SURROGATE = re.compile("[\ud800-\udfff]")


def clean(text: str, *, max_length: int = MAX_TEXT) -> str:
    """Return `text` cut to `max_length` characters, lone surrogates replaced by U+FFFD."""
    text = text[:max_length]
    return text if text.isascii() else SURROGATE.sub("\ufffd", text)


class UnicodeText(Space[str]):
    """Any Unicode string up to `max_length` characters; only lone surrogates, which no tokenizer takes, are refused."""

    def __init__(self, max_length: int = MAX_TEXT, *, seed: int | np.random.Generator | None = None) -> None:
        self.max_length = max_length
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: text has no array form."""
        return False

    def sample(self, mask: None = None, probability: None = None) -> str:
        """Return up to 32 random characters of several scripts."""
        if mask is not None or probability is not None:
            raise ValueError("UnicodeText takes neither a mask nor probabilities")
        length = int(self.np_random.integers(min(32, self.max_length) + 1))
        return "".join(SAMPLE_CHARACTERS[i] for i in self.np_random.integers(len(SAMPLE_CHARACTERS), size=length))

    def contains(self, x: Any) -> bool:
        """Return True if `x` is a valid string of at most `max_length` characters."""
        return isinstance(x, str) and len(x) <= self.max_length and clean(x, max_length=self.max_length) == x

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"UnicodeText({self.max_length})"

    def __eq__(self, other: object) -> bool:
        """Compare the limits."""
        return isinstance(other, UnicodeText) and self.max_length == other.max_length

    __hash__ = None  # type: ignore[assignment]  # spaces hold a generator and are mutable


class Images(Space[NDArray[np.uint8]]):
    """Up to `most` RGB pictures of one size: a uint8 array of shape (n, height, width, 3), 0 <= n <= most."""

    def __init__(
        self, height: int, width: int, *, most: int = 1, seed: int | np.random.Generator | None = None
    ) -> None:
        self.height, self.width, self.most = height, width, most
        super().__init__(shape=None, dtype=np.uint8, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        """False: the number of pictures varies."""
        return False

    def sample(self, mask: None = None, probability: None = None) -> NDArray[np.uint8]:
        """Return random pictures, any allowed number of them."""
        if mask is not None or probability is not None:
            raise ValueError("Images takes neither a mask nor probabilities")
        count = int(self.np_random.integers(self.most + 1))
        return self.np_random.integers(256, size=(count, self.height, self.width, 3), dtype=np.uint8)

    def contains(self, x: Any) -> bool:
        """Return True if `x` is an array of the right type and shape."""
        fits = isinstance(x, np.ndarray) and x.dtype == np.uint8 and x.ndim == 4
        return fits and len(x) <= self.most and x.shape[1:] == (self.height, self.width, 3)

    def __repr__(self) -> str:
        """Return the constructor call."""
        return f"Images({self.height}, {self.width}, 3, most={self.most})"

    def __eq__(self, other: object) -> bool:
        """Compare the sizes."""
        mine = (self.height, self.width, self.most)
        return isinstance(other, Images) and mine == (other.height, other.width, other.most)

    __hash__ = None  # type: ignore[assignment]  # spaces hold a generator and are mutable


class _LiveView(Sequence[Any]):
    """The current observations of all environments, read from shared memory at each access."""

    def __init__(self, count: int, read: Callable[[int], Any]) -> None:
        self.size, self.read = count, read

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return tuple(self.read(i) for i in range(self.size)[index])
        return self.read(range(self.size)[index])

    def __deepcopy__(self, memo: dict[int, Any]) -> tuple[Any, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        return repr(tuple(self))


def _create(space: UnicodeText | Images, n: int = 1, ctx: Any = multiprocessing) -> list[Any]:
    """Return the memory of `n` observations: the 8-byte size of each and the most bytes that may follow."""
    most = space.max_length * 4 if isinstance(space, UnicodeText) else space.most * space.height * space.width * 3
    return [ctx.Array("B", 8 + most, lock=True) for _ in range(n)]


def _write(space: UnicodeText | Images, index: int, value: Any, shared_memory: list[Any]) -> None:
    memory = memoryview(shared_memory[index].get_obj()).cast("B")
    content = value.encode() if isinstance(space, UnicodeText) else np.ascontiguousarray(value).tobytes()
    memory[:8] = len(content).to_bytes(8, "little")
    memory[8 : 8 + len(content)] = content


def _read(space: UnicodeText | Images, shared_memory: list[Any], n: int = 1) -> _LiveView:
    def read(index: int) -> Any:
        memory = memoryview(shared_memory[index].get_obj()).cast("B")
        content = bytes(memory[8 : 8 + int.from_bytes(memory[:8], "little")])
        if isinstance(space, UnicodeText):
            return content.decode()
        return np.frombuffer(content, np.uint8).reshape(-1, space.height, space.width, 3)

    return _LiveView(n, read)


for _space in (UnicodeText, Images):
    create_shared_memory.register(_space, _create)  # type: ignore[arg-type]  # Gymnasium lists only its own types
    write_to_shared_memory.register(_space, _write)
    read_from_shared_memory.register(_space, _read)  # type: ignore[arg-type]  # as above
