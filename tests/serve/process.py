"""`lmgym serve` in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .conftest import OTHER, TOKEN

COMMAND = (sys.executable, "-c", "from lmgym.cli import main; main()", "serve")


@dataclass(frozen=True)
class Process:
    """A server that runs."""

    url: str
    pid: int
    said: tuple[str, ...]  # lines up to the last one before it waits

    @property
    def memory(self) -> int:
        """Bytes that it holds."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def serving(*words: str, tokens: str | None = f"{TOKEN} {OTHER}") -> Iterator[Process]:
    """Run `lmgym serve` with these words, and end it as Ctrl-C would."""
    environment = {name: value for name, value in os.environ.items() if name != "LMGYM_SERVE_TOKEN"}
    if tokens is not None:
        environment["LMGYM_SERVE_TOKEN"] = tokens
    process = subprocess.Popen([*COMMAND, *words], env=environment, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        said = []
        for line in process.stdout:
            said.append(line.strip())
            if "Ctrl-C" in line:
                break
        (url,) = re.findall(r"at (http\S+)", said[0])
        yield Process(url, process.pid, tuple(said))
    finally:
        process.terminate()
        process.wait(30)
        process.stdout.close()
