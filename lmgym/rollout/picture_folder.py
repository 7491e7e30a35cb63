"""Pictures in the folder of a run: PNGs by digest, one file each."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterable, Iterator, MutableMapping
from functools import lru_cache
from pathlib import Path

from lmgym.errors import InstanceError
from lmgym.types import Trajectory

PICTURES = "pictures"  # the folder's name in that of a run
DIGEST = re.compile(r"[0-9a-f]{1,128}")


class PictureFolder(MutableMapping[str, bytes]):
    """PNGs by digest, on disk from the first: an evaluation shows more than memory holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read = lru_cache(maxsize=256)(self._bytes)

    def __getitem__(self, digest: str) -> bytes:
        return self._read(digest)

    def __setitem__(self, digest: str, png: bytes) -> None:
        path = self._path(digest)
        if not path.exists() or path.read_bytes() != png:  # whoever changed a file does not change what is shown
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
        """The file of a picture; raises InstanceError for a name that is no digest and could lead out of the folder."""
        if DIGEST.fullmatch(digest) is None:
            raise InstanceError(f"{digest[:80]!r} is no digest of a picture: those are hexadecimal")
        return self._folder / f"{digest}.png"

    def _bytes(self, digest: str) -> bytes:
        try:
            return self._path(digest).read_bytes()
        except FileNotFoundError:
            raise KeyError(digest) from None


class RunPictures(MutableMapping[str, bytes]):
    """The pictures of a training run: those of the present step in memory, those of episodes that are kept on disk.

    `sources` are further folders to read from, such as that of a data set.
    """

    def __init__(self, folder: Path) -> None:
        self._kept = PictureFolder(folder)
        self._fresh: dict[str, bytes] = {}
        self.sources: list[PictureFolder] = []

    def __getitem__(self, digest: str) -> bytes:
        if digest in self._fresh:
            return self._fresh[digest]
        return next((source for source in self.sources if digest in source), self._kept)[digest]

    def __setitem__(self, digest: str, png: bytes) -> None:
        self._fresh[digest] = png

    def __delitem__(self, digest: str) -> None:
        del self._fresh[digest]

    def __contains__(self, digest: object) -> bool:
        return digest in self._fresh or digest in self._kept or any(digest in source for source in self.sources)

    def __iter__(self) -> Iterator[str]:
        """Those in memory."""
        return iter(self._fresh)

    def __len__(self) -> int:
        return len(self._fresh)

    def keep(self, digests: Iterable[str]) -> None:
        """Write pictures to the folder."""
        for digest in digests:
            self._kept[digest] = self[digest]

    def forget(self) -> None:
        """Let go of what is in memory alone."""
        self._fresh.clear()


def shown_in(trajectories: Iterable[Trajectory]) -> list[str]:
    """Digests of all pictures in episodes, each once."""
    found: dict[str, None] = {}
    for trajectory in trajectories:
        last = () if trajectory.final is None else (trajectory.final,)
        for message in (*(turn.observation for turn in trajectory.turns), *last):
            found |= dict.fromkeys(message.images)
    return list(found)


def folders_beside(path: Path) -> list[PictureFolder]:
    """The folders that may have the pictures of the episodes in `path`: in it, beside it, and in a run around it."""
    return [PictureFolder(place / PICTURES) for place in (path, path.parent, path.parent.parent)]


def write_whole(path: Path, content: bytes) -> None:
    """Write a file as a whole: whoever reads `path` finds the old one or the new one."""
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
