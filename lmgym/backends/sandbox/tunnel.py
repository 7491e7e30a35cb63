"""A tunnel by ssh to the socket of a Docker daemon on another machine."""

from __future__ import annotations

import atexit
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from urllib.parse import urlsplit

from lmgym.backends.sandbox.owner import alive, owner

SOCKET = "/var/run/docker.sock"
PATIENCE = 20.0  # seconds until the connection must stand
PAUSE = 0.05
PREFIX = "lmgym-ssh-"


def forward(address: str) -> str:
    """Return the path of a local socket that leads to `ssh://[USER@]HOST[:PORT][/SOCKET]`, until this process ends.

    Keys and known hosts are ssh's own. Raises OSError if the connection fails.
    """
    parts = urlsplit(address)
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if not alive(left.name[len(PREFIX) :].rpartition("-")[0]):
            shutil.rmtree(left, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{owner()}-"))
    local = folder / "docker.sock"
    command = ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ExitOnForwardFailure=yes", "-o", "ServerAliveInterval=15"]
    command += ["-L", f"{local}:{parts.path or SOCKET}", *(["-p", str(parts.port)] if parts.port else [])]
    host = f"{parts.username}@{parts.hostname}" if parts.username else str(parts.hostname)
    with (folder / "log").open("wb") as log:
        # `cat` ends with its standard input: the tunnel with this process, whatever ends it
        process = subprocess.Popen([*command, "--", host, "cat"], stdin=subprocess.PIPE, stdout=log, stderr=log)
    atexit.register(_end, process, folder)
    deadline = time.monotonic() + PATIENCE
    while not local.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            lines = (folder / "log").read_text(errors="replace").strip().splitlines()
            _end(process, folder)
            raise ConnectionError(lines[-1] if lines else "ssh does not connect")
        time.sleep(PAUSE)
    return str(local)


def _end(process: subprocess.Popen[bytes], folder: Path) -> None:
    if process.stdin is not None:
        process.stdin.close()
    if process.poll() is None:
        process.terminate()
        process.wait()
    shutil.rmtree(folder, ignore_errors=True)
