"""Folders for files that are expensive to make: the user's cache, or a private folder where that cannot be written."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path


def cache_folders(name: str) -> list[Path]:
    """Return the folders to read cached files from; new files go into the last one.

    The first is `name` in $LMGYM_CACHE or ~/.cache/lmgym. Where that cannot be written, a folder in the system's
    temporary directory follows if it is safe: it belongs to this user and nobody else can write to it.
    """
    cache = os.environ.get("LMGYM_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "lmgym")
    folder = Path(cache, name)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError:
        writable = False
    else:
        writable = os.access(folder, os.W_OK)
    return [folder] if writable else [folder, *_private_folder(name)]


def _private_folder(name: str) -> list[Path]:
    root = Path(tempfile.gettempdir(), f"lmgym-{os.getuid()}")
    try:
        for path in (root, root / name):
            path.mkdir(exist_ok=True, mode=0o700)
            status = path.lstat()  # of the entry itself: another user may have left a link here
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & 0o022:
                return []
    except OSError:
        return []
    return [root / name]
