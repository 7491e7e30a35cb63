"""Files of a coding agent's sandbox."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping

from lmgym.backends.sandbox import Sandbox
from lmgym.errors import BackendError

EPOCH = 1_700_000_000  # seconds: the time of all files


def archive(files: Mapping[str, str]) -> bytes:
    """Return files by path as a tar archive, with constant times and owners."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, text in sorted(files.items()):
            data = text.encode()
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode = len(data), EPOCH, 0o644
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def put(sandbox: Sandbox, files: Mapping[str, str]) -> None:
    """Write files below the sandbox's folder."""
    done = sandbox.run(["tar", "-xf", "-"], stdin=archive(files))
    if done.code:
        raise BackendError(f"files cannot be written into the sandbox: {done.text.strip()[-300:]}")
