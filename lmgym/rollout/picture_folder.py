"""The pictures of a run: PNGs by digest, one file each."""

from __future__ import annotations

import os
import re
import tempfile
from collections import UserDict
from collections.abc import Iterable, Iterator, MutableMapping
from functools import lru_cache
from pathlib import Path

from lmgym.errors import InstanceError
from lmgym.types import Trajectory

PICTURES = "pictures"  # name of the folder in a run's folder
DIGEST = re.compile(r"[0-9a-f]{1,128}")


class PictureFolder(MutableMapping[str, bytes]):
    """PNGs by digest on disk: an evaluation may show more than memory holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = lru_cache(maxsize=256)(self._bytes)

    def __getitem__(self, digest: str) -> bytes:
        return self._read(digest)

    def __setitem__(self, digest: str, png: bytes) -> None:
        path = self._path(digest)
        if not path.exists() or path.read_bytes() != png:  # a changed file is replaced
            self._folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, png)
            self._read.cache_clear()

    def __delitem__(self, digest: str) -> None:
        self._path(digest).unlink()
        self._read.cache_clear()

    def __contains__(self, digest: object) -> bool:
        return isinstance(digest, str) and DIGEST.fullmatch(digest) is not None and self._path(digest).exists()

    def __iter__(self) -> Iterator[str]:
        return (path.stem for path in self._folder.glob("*.png"))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _path(self, digest: str) -> Path:
        """Return a picture's path. Raises InstanceError for other names, which could lead out of the folder."""
        if DIGEST.fullmatch(digest) is None:
            raise InstanceError(f"{digest[:80]!r} is not the digest of a picture, which is hexadecimal")
        return self._folder / f"{digest}.png"

    def _bytes(self, digest: str) -> bytes:
        try:
            return self._path(digest).read_bytes()
        except FileNotFoundError:
            raise KeyError(digest) from None


class RunPictures(UserDict[str, bytes]):
    """The pictures of a training run: those of the current step in memory, those of kept episodes on disk.

    `sources` are more folders to read from, such as a data set's. Iteration and length are of those in memory.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._disk = PictureFolder(folder)
        self.sources: list[PictureFolder] = []

    def __missing__(self, digest: str) -> bytes:
        return next((source for source in self.sources if digest in source), self._disk)[digest]

    def __contains__(self, digest: object) -> bool:
        return digest in self.data or digest in self._disk or any(digest in source for source in self.sources)

    def keep(self, digests: Iterable[str]) -> None:
        """Write pictures to the folder."""
        for digest in digests:
            self._disk[digest] = self[digest]

    def forget(self) -> None:
        """Drop all pictures from memory."""
        self.data.clear()


def picture_digests(trajectories: Iterable[Trajectory]) -> list[str]:
    """Return the digests of all pictures in episodes, each once."""
    digests: dict[str, None] = {}
    for trajectory in trajectories:
        last = () if trajectory.final is None else (trajectory.final,)
        for message in (*(turn.observation for turn in trajectory.turns), *last):
            digests |= dict.fromkeys(message.images)
    return list(digests)


def folders_beside(path: Path) -> list[PictureFolder]:
    """Return the folders that may hold the pictures of `path`: in it, beside it and in the run around it."""
    return [PictureFolder(place / PICTURES) for place in (path, path.parent, path.parent.parent)]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file atomically: readers of `path` see the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
