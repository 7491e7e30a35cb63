"""Many sessions at once: none is lost, none is crossed with another, and memory stays where it was."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from lmgym.env.registry import build, find

from .conftest import OTHER, TOKEN, said
from .process import Process, serving

SESSIONS = 64
ALONE = 24  # of them are stepped one by one, in threads; the others by one message for all
TASKS = ("guess_number", "wordle", "alfworld")
TRIES = 6  # of a stranger at least
WORDS = ("crane", "slate", "50", "12", "go to shelf 1", "look", "", "é 漢 🙂", "take mug 1 from shelf 1", "99")


@dataclass
class Player:
    """One session, what it should be answered, and what it was."""

    number: int
    name: str = ""
    steps: int = 0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.task = TASKS[self.number % len(TASKS)]
        self.env = build(self.task)
        self.episode = -1
        self.over = True

    def call(self) -> dict[str, Any]:
        """Make the next call, and play it here: `expected` is the answer."""
        if self.over:
            self.episode += 1
            index = (self.number * 5 + self.episode) % 300
            observation, info = self.env.reset(seed=self.number, options={"index": index})
            self.expected = (observation["text"], 0.0, False, False, info)
            self.over = False
            return {"op": "reset", "session": self.name, "seed": self.number, "index": index}
        action = WORDS[(self.number + self.steps) % len(WORDS)]
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.expected = (observation["text"], float(reward), terminated, truncated, info)
        self.over = terminated or truncated
        self.steps += 1
        return {"op": "step", "session": self.name, "action": action}

    def hear(self, answer: dict[str, Any]) -> None:
        """Compare an answer with what it should be."""
        text, reward, terminated, truncated, info = self.expected
        mine = (answer.get("text"), answer.get("reward", 0.0), answer.get("terminated", False))
        told = {name: value for name, value in info.items() if name != "answer"}
        if (*mine, answer.get("truncated", False), answer.get("info")) != (text, reward, terminated, truncated, told):
            self.wrong.append(f"session {self.number}, step {self.steps}: {str(answer)[:200]}")


def opened(process: Process, stack: ExitStack, token: str) -> ClientConnection:
    url = process.url.replace("http", "ws") + "/v1/ws"
    headers = {"Authorization": f"Bearer {token}"}
    return stack.enter_context(connect(url, additional_headers=headers, compression=None, max_size=None))


def begin(connection: ClientConnection, players: list[Player]) -> None:
    answers = said(connection, *({"op": "open", "task": player.task} for player in players))
    for player, answer in zip(players, answers, strict=True):
        assert answer["task"] == find(player.task).id
        player.name = answer["session"]


def play(connection: ClientConnection, players: list[Player], steps: int) -> None:
    """Step players together until each has made so many steps."""
    while waiting := [player for player in players if player.steps < steps]:
        for player, answer in zip(waiting, said(connection, *(each.call() for each in waiting)), strict=True):
            player.hear(answer)


def pry(process: Process, names: Iterator[str], ended: threading.Event) -> set[str]:
    """Ask for the sessions of others, with no token, a wrong one and another client's; what that came to."""
    heard: set[str] = set()
    count = 0
    with httpx.Client(base_url=process.url) as http:
        for token, name in zip(itertools.cycle(["", "x" * 24, OTHER]), names, strict=False):
            calls = [
                {"op": op, "session": name, **({"action": "x"} if op == "step" else {})} for op in ("step", "close")
            ]
            answered = http.post(
                "/v1/call", json={"calls": calls}, headers={"Authorization": f"Bearer {token}"} if token else {}
            ).json()
            found = answered.get("answers", [answered])
            heard |= {answer["error"]["code"] if "error" in answer else json.dumps(answer) for answer in found}
            count += 1
            if count >= TRIES and ended.wait(0.05):
                break
    return heard


def crowd(steps: int, warm: int) -> tuple[list[Player], set[str], list[int]]:
    """Play all sessions; the players, what a stranger heard, the server's bytes after `warm` steps and at the end."""
    players = [Player(number) for number in range(SESSIONS)]
    alone, together = players[:ALONE], players[ALONE:]
    ended = threading.Event()
    memory = []
    with serving(*TASKS, "--port", "0") as process, ExitStack() as stack, ThreadPoolExecutor(ALONE + 2) as pool:
        batch = opened(process, stack, TOKEN)
        begin(batch, together)
        lines = [opened(process, stack, TOKEN) for _ in alone]
        for line, player in zip(lines, alone, strict=True):
            begin(line, [player])
        stranger = pool.submit(pry, process, itertools.cycle([player.name for player in players]), ended)
        for limit in (warm, steps):
            work = [pool.submit(play, line, [player], limit) for line, player in zip(lines, alone, strict=True)]
            play(batch, together, limit)
            for each in work:
                each.result()
            memory.append(process.memory)
        ended.set()
        heard = stranger.result()
    return players, heard, memory


def check(players: list[Player], heard: set[str], steps: int) -> None:
    assert [line for player in players for line in player.wrong] == []
    assert {player.steps for player in players} == {steps}
    assert len({player.name for player in players}) == SESSIONS
    assert heard == {"token", "session"}


def test_sessions_are_neither_lost_nor_crossed():
    players, heard, _ = crowd(30, 10)
    check(players, heard, 30)


@pytest.mark.slow
def test_a_thousand_steps_of_each_session_leave_memory_where_it_was():
    players, heard, (warm, end) = crowd(1000, 200)
    check(players, heard, 1000)
    assert end <= 1.05 * warm
