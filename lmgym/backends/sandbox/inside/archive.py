"""The writable folders as a tar stream, out of a sandbox and into one."""

from __future__ import annotations

import errno
import os
import shutil
import tarfile
from collections.abc import Callable
from typing import IO, Any, cast

CHUNK = 1 << 20  # bytes of one message of a stream


class Outgoing:
    """A file whose content leaves as messages."""

    def __init__(self, send: Callable[[dict[str, Any], bytes], None]) -> None:
        self.send, self.buffer = send, bytearray()

    def write(self, data: bytes) -> int:
        """Send data, in messages of CHUNK bytes."""
        self.buffer += data
        while len(self.buffer) >= CHUNK:
            self.send({"more": True}, bytes(self.buffer[:CHUNK]))
            del self.buffer[:CHUNK]
        return len(data)


class Incoming:
    """A file whose content arrives as messages."""

    def __init__(self, receive: Callable[[], tuple[dict[str, Any], bytes]]) -> None:
        self.receive, self.buffer, self.last = receive, bytearray(), False

    def read(self, size: int) -> bytes:
        """Return up to `size` bytes."""
        while len(self.buffer) < size and not self.last:
            self._next()
        data = bytes(self.buffer[:size])
        del self.buffer[:size]
        return data

    def finish(self) -> None:
        """Skip what is left."""
        while not self.last:
            self._next()

    def _next(self) -> None:
        header, payload = self.receive()
        self.last = not header.get("more")
        self.buffer += payload


def pack(folders: list[str], target: Outgoing, limit: int) -> None:
    """Write all files as a tar stream; raise OSError if they hold more than `limit` bytes, sparse ones in full."""
    left = [limit]

    def counted(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uname = member.gname = ""
        left[0] -= member.size
        if left[0] < 0:
            raise OSError(errno.EFBIG, "more bytes than the disk has; sparse files count in full")
        return member

    with tarfile.open(fileobj=cast(IO[bytes], target), mode="w|", format=tarfile.PAX_FORMAT) as archive:
        for number, folder in enumerate(folders):
            for name in sorted(os.listdir(folder)):
                archive.add(os.path.join(folder, name), f"{number}/{name}", filter=counted)


def unpack(folders: list[str], source: Incoming) -> None:
    """Write the files of a tar stream into empty folders; raise OSError if one would land elsewhere."""
    later = []  # folders get their modes when they are full
    with tarfile.open(fileobj=cast(IO[bytes], source), mode="r|") as archive:
        for member in archive:
            path = _inside(folders, member.name)
            if member.isdir():
                os.mkdir(path, 0o700)
                later.append((path, member))
            elif member.issym():
                os.symlink(member.linkname, path)
                os.utime(path, (member.mtime, member.mtime), follow_symlinks=False)
            elif member.islnk():
                os.link(_inside(folders, member.linkname), path, follow_symlinks=False)
            elif member.isfifo():
                os.mkfifo(path)
                _dress(path, member)
            elif member.isreg():
                with open(path, "xb") as file:
                    shutil.copyfileobj(cast(IO[bytes], archive.extractfile(member)), file, CHUNK)
                _dress(path, member)
    for path, member in reversed(later):
        _dress(path, member)


def _inside(folders: list[str], name: str) -> str:
    """Return the path of a member "NUMBER/..." below its folder."""
    number, _, rest = name.partition("/")
    base = folders[int(number)] if number.isdigit() and int(number) < len(folders) else "/nowhere"
    path = os.path.normpath(os.path.join(base, rest))
    above = os.path.dirname(path)
    if not path.startswith(base + "/") or os.path.realpath(above) != above:
        raise OSError(errno.EINVAL, "an archive's member lies outside of the writable folders")
    return path


def _dress(path: str, member: tarfile.TarInfo) -> None:
    os.chmod(path, member.mode)
    os.utime(path, (member.mtime, member.mtime))
