"""Files that a policy may have replaced by anything: only plain ones are read, and only so many bytes."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path


def read_plain(path: Path, largest: int, *, inside: Callable[[Path], bool] | None = None) -> bytes | None:
    """Return the content of a plain file; None for any other, one of more than `largest` bytes, or a link.

    With `inside`, links are followed by the system, and the path of the file that was opened decides.
    """
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC  # a pipe without a writer would wait for ever
    try:
        descriptor = os.open(path, flags if inside else flags | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > largest:
            return None
        if inside and not inside(Path(os.readlink(f"/proc/self/fd/{descriptor}"))):
            return None
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(largest)
    finally:
        os.close(descriptor)
