"""Steps/s of `lmgym serve` beside OpenEnv 0.10's server: GuessNumber in a process of its own, played over loopback.

One session is played by both libraries' own clients. Many are not: ours are raw messages by msgspec, theirs the
whole of OpenEnv's client with its pydantic models, whose time is in their figure (`UNEQUAL`).
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import gymnasium
import msgspec
from websockets.asyncio.client import ClientConnection, connect

from lmgym.backends import wire

ROOT = Path(__file__).resolve().parents[2]
PEER = Path(__file__).with_name("openenv_speed.py")
TOKEN = "the-token-of-a-bench"
TASK = "guess_number"
ACTIONS = [str(number) for number in range(1, 101)]
SESSIONS = 64
ROUNDS = 3
UNEQUAL = (
    f"at {SESSIONS} sessions the clients are not equal: lmgym's side is raw messages by msgspec, OpenEnv's its own "
    "client with pydantic models; their ratio is of server and client together"
)


def openenv() -> str:
    """Return the interpreter of OpenEnv's venv, which the adapter tests create on demand."""
    sys.path.insert(0, str(ROOT))
    from tests.interop.venvs import python

    return str(python("openenv"))


@contextmanager
def running(command: Sequence[str], port: int, **variables: str) -> Iterator[str]:
    """Start a server in a process and yield once it listens."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env={**os.environ, **variables})
    try:
        while process.poll() is None:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    """Return a free port."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def alone(url: str, seconds: float) -> float:
    """Return steps/s of one session through `gym.make`."""
    said = itertools.cycle(ACTIONS)
    with closing(gymnasium.make("lmgym/Remote-v0", url=url, task=TASK, token=TOKEN)) as env:
        env.reset(seed=0)
        steps, start = 0, time.perf_counter()
        while time.perf_counter() < start + seconds:
            _, _, terminated, truncated, _ = env.step(next(said))
            steps += 1
            if terminated or truncated:
                env.reset(seed=steps)
        return steps / (time.perf_counter() - start)


async def exchanged(line: ClientConnection, calls: list[wire.AnyCall], shape: Any) -> list[Any]:
    """Return the answers to a message."""
    await line.send(msgspec.json.encode(wire.RequestMessage(calls)), text=True)
    answered = wire.read(await line.recv(decode=False), wire.RawResponse)
    return [wire.read(answer, shape) for answer in answered.answers]


async def together(url: str, seconds: float, lines: int) -> float:
    """Return steps/s of 64 sessions over `lines` connections: one message for all, or one connection each.

    Raw messages, without the library's client.
    """
    each = SESSIONS // lines
    address, headers = url.replace("http", "ws") + f"{wire.PATH}/ws", {"Authorization": f"Bearer {TOKEN}"}
    ready: list[int] = []
    ends: list[float] = []

    async def play(number: int) -> int:
        async with connect(address, additional_headers=headers, compression=None) as line:
            opened = await exchanged(line, [wire.Open(TASK)] * each, wire.OpenAnswer)
            names = [one.session for one in opened]
            over, steps = [True] * each, 0
            ready.append(number)
            while len(ready) < lines:
                await asyncio.sleep(0.01)
            ends[:] = ends or [time.perf_counter() + seconds]
            while time.perf_counter() < ends[0]:
                if again := [wire.Reset(name, seed=steps) for name, end in zip(names, over, strict=True) if end]:
                    await exchanged(line, again, wire.StepAnswer)
                action = ACTIONS[steps % len(ACTIONS)]
                played = await exchanged(line, [wire.Step(name, action) for name in names], wire.StepAnswer)
                over = [one.terminated or one.truncated for one in played]
                steps += each
            return steps

    counts = await asyncio.gather(*(play(number) for number in range(lines)))
    return sum(counts) / (time.perf_counter() - ends[0] + seconds)


def theirs(python: str, url: str, sessions: int, seconds: float) -> float:
    """Return steps/s of OpenEnv's client."""
    job = json.dumps({"url": url, "sessions": sessions, "seconds": seconds, "actions": ACTIONS})
    done = subprocess.run([python, str(PEER), "play", job], capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1])


def compare(seconds: float) -> Iterator[tuple[str, float, float | None, float]]:
    """Yield what is played, medians of our and their steps/s, and the ratio to their best; rounds take turns."""
    python, mine, other = openenv(), free_port(), free_port()
    command = [str(Path(sys.executable).with_name("lmgym")), "serve", TASK, "--port", str(mine), "--rate", "1000000"]
    with (
        running(command, mine, LMGYM_SERVE_TOKEN=TOKEN) as ours_at,
        running([python, str(PEER), "serve", str(other)], other) as theirs_at,
    ):
        ways: dict[str, tuple[Callable[[], float], Callable[[], float] | None]] = {
            "1 session": (lambda: alone(ours_at, seconds), lambda: theirs(python, theirs_at, 1, seconds)),
            f"{SESSIONS} sessions, a connection each": (
                lambda: asyncio.run(together(ours_at, seconds, SESSIONS)),
                lambda: theirs(python, theirs_at, SESSIONS, seconds),
            ),
            f"{SESSIONS} sessions, one message": (lambda: asyncio.run(together(ours_at, seconds, 1)), None),
        }
        rates: dict[str, list[tuple[float, float | None]]] = {name: [] for name in ways}
        for _ in range(ROUNDS):
            for name, (our, their) in ways.items():
                rates[name].append((our(), None if their is None else their()))
    best = 0.0
    for name, rounds in rates.items():
        our_rate = statistics.median(our for our, _ in rounds)
        known = [their for _, their in rounds if their is not None]
        their_rate = statistics.median(known) if known else None
        best = max(best, their_rate or 0.0)
        yield name, our_rate, their_rate, our_rate / (their_rate or best)
