"""Stockfish as a separate process, spoken to in UCI.

With one thread, a fixed number of nodes and a new game before every search, a search depends on the position alone:
any process of the same version finds the same lines. Limited strength, skill levels and time limits do not.
"""

from __future__ import annotations

import os
import re
import select
import shutil
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lmgym.errors import BackendError, MissingExtra

EXECUTABLE = "LMGYM_STOCKFISH"  # variable with the path of the program
PLACES = ("stockfish", "/usr/games/stockfish")  # Debian's folder of games is not on root's PATH
HASH = 1  # MiB; clearing more takes longer than the search
HANDSHAKE = 20.0  # seconds for the first answer of a program, which may not be Stockfish at all
PATIENCE = 300.0  # seconds without a line of output, after which a process counts as hung
LINE = re.compile(rb"info .*?\bmultipv (\d+) score (cp|mate) (-?\d+).*? pv (\S+)")
MATE = 100_000  # centipawns of a mate, less its distance in moves
CHUNK = 1 << 16


@dataclass(frozen=True)
class CandidateLine:
    """A first move that a search considered."""

    move: str  # in UCI
    value: int  # centipawns for the side on turn; a mate counts nearly MATE


def executable() -> str:
    """Return the path of Stockfish. Raises MissingExtra if there is none."""
    if named := os.environ.get(EXECUTABLE):
        if Path(named).is_file():
            return named
        raise MissingExtra(
            f"${EXECUTABLE} is {named!r}, which is no file: apt-get install stockfish, and unset it or name the program"
        )
    for place in PLACES:
        if path := shutil.which(place):
            return path
    raise MissingExtra(f"chess against Stockfish needs it: apt-get install stockfish, or set ${EXECUTABLE}")


@dataclass(frozen=True)
class Analysis:
    """Result of a search."""

    best: str  # move to play, in UCI; with limited strength it may be in no line
    lines: list[CandidateLine]  # best first


class Stockfish:
    """A process of Stockfish."""

    def __init__(self, options: Mapping[str, int | str] | None = None) -> None:
        self.options = {"Threads": 1, "Hash": HASH, **(options or {})}
        self.name = ""  # as the engine calls itself, such as "Stockfish 15.1"
        self._process: subprocess.Popen[bytes] | None = None
        self._finalizer: weakref.finalize[..., Stockfish] | None = None  # ends the process, also if nobody closes
        self._rest = b""

    @property
    def pid(self) -> int | None:
        """Number of the process; None if it does not run."""
        return self._process.pid if self._process else None

    def search(
        self, fen: str, moves: Sequence[str], *, nodes: int = 0, milliseconds: int = 0, lines: int = 1
    ) -> Analysis:
        """Search the position after `moves` from `fen`; limit the nodes or the time.

        Raises BackendError if the process is gone or hangs; start it first.
        """
        limit = f"nodes {nodes}" if nodes else f"movetime {milliseconds}"
        played = f" moves {' '.join(moves)}" if moves else ""
        orders = ("ucinewgame", f"setoption name MultiPV value {lines}", f"position fen {fen}{played}", f"go {limit}")
        lines_by_number: dict[int, CandidateLine] = {}
        best = b""
        for line in self._answers(orders, until=b"bestmove"):
            best = line
            if match := LINE.match(line):
                value = int(match[3])
                if match[2] == b"mate":
                    value = MATE - value if value > 0 else -MATE - value
                lines_by_number[int(match[1])] = CandidateLine(match[4].decode(), value)
        return Analysis(best.split()[1].decode(), [lines_by_number[number] for number in sorted(lines_by_number)])

    def start(self) -> None:
        """Start the process if it does not run, and read its name.

        Raises BackendError if it does not answer, MissingExtra if Stockfish is not installed.
        """
        if self._process is not None:
            if self._process.poll() is None:
                return
            self.close()
        path = executable()
        try:
            self._process = subprocess.Popen(
                [path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
            )
        except OSError as error:
            raise BackendError(f"Stockfish does not start: {error}") from error
        self._finalizer = weakref.finalize(self, _kill, self._process)
        self._rest = b""
        for line in self._answers(("uci",), until=b"uciok", seconds=HANDSHAKE):
            if line.startswith(b"id name "):
                self.name = line.removeprefix(b"id name ").decode("utf-8", "replace").strip()
        settings = [f"setoption name {name} value {value}" for name, value in self.options.items()]
        self._answers((*settings, "isready"), until=b"readyok")

    def close(self) -> None:
        """End the process; it can be started again."""
        self._process = None
        if self._finalizer is not None:
            self._finalizer()

    def _answers(self, orders: Sequence[str], *, until: bytes, seconds: float | None = None) -> list[bytes]:
        """Send orders and return the lines of the answer to one that starts with `until`.

        Raises BackendError if no line comes for `PATIENCE` seconds, or the answer is not there after `seconds`.
        """
        process = self._process
        if process is None or process.stdin is None:
            raise BackendError("Stockfish does not run")
        lines: list[bytes] = []
        deadline = None if seconds is None else time.monotonic() + seconds
        try:
            process.stdin.write("".join(f"{order}\n" for order in orders).encode())
            while not lines or not lines[-1].startswith(until):
                lines.append(self._line(process, deadline))
        except (OSError, EOFError) as error:
            self.close()
            raise BackendError(f"Stockfish {error or 'has died'}; reset the environment to start it again") from error
        return lines

    def _line(self, process: subprocess.Popen[bytes], deadline: float | None = None) -> bytes:
        """Return the next line of output; it must come by `deadline`, or within `PATIENCE`.

        Raises EOFError at the end of the output and TimeoutError if no line comes.
        """
        if process.stdout is None:
            raise EOFError("has no output")
        start = time.monotonic()
        deadline = start + PATIENCE if deadline is None else deadline
        output = select.poll()  # unlike select.select, it takes file descriptors of any number
        output.register(process.stdout, select.POLLIN)
        while b"\n" not in self._rest:
            if not output.poll(1000 * max(0.0, deadline - time.monotonic())):
                raise TimeoutError(f"gave no answer for {time.monotonic() - start:.0f} seconds")
            chunk = os.read(process.stdout.fileno(), CHUNK)
            if not chunk:
                raise EOFError("has died")
            self._rest += chunk
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and wait for its end."""
    process.kill()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
    process.wait()
