"""Environments share a thread; one whose call is slow keeps that thread, and the others get a new one."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lmgym.rollout.env_pool import EnvPool
from lmgym.rollout.workers import Fault
from lmgym.serve.catalogue import Catalogue

from .conftest import OTHER, served
from .test_server import SHELF, Moody, reset, step, until


class Diary:
    """An environment that writes down its calls; words that begin with "slow" wait for the gate."""

    def __init__(self, pages: list[str], gate: threading.Event) -> None:
        self.pages, self.gate = pages, gate
        self.alone = threading.Lock()

    def key(self) -> str:
        return "diary"

    def opened(self) -> Diary:
        return self

    def write(self, word: str, seconds: float = 0.0) -> str:
        assert self.alone.acquire(blocking=False), "two threads at once"
        if word.startswith("slow"):
            self.gate.wait(60)
        time.sleep(seconds)
        self.pages.append(word)
        self.alone.release()
        return word

    def close(self) -> None:
        assert self.alone.acquire(blocking=False), "closed in the middle of a call"
        self.pages.append("closed")
        self.alone.release()


class Diaries:
    """Four diaries on a shared thread, with one list of pages and one gate."""

    def __init__(self, **settings: Any) -> None:
        self.pages: list[str] = []
        self.gate = threading.Event()
        self.pool = EnvPool(**settings)
        self.slots = [self.pool.acquire(Diary(self.pages, self.gate), "shared") for _ in range(4)]

    def write(self, slot: int, *words: str) -> None:
        for word in words:
            self.pool.send(self.slots[slot], "write", word)

    def answers(self, count: int, *, slow: float = 0.01) -> list[Any]:
        """The next answers in their order, while slow calls are moved out of the way."""
        answers: list[Any] = []
        while len(answers) < count:
            self.pool.unblock(slow)
            answers += self.pool.collect(0.01)
        return [answer if isinstance(answer, Fault) else answer[1] for answer in answers]


@pytest.fixture
def diaries() -> Iterator[Diaries]:
    made = Diaries()
    yield made
    made.gate.set()
    made.pool.close()


def test_a_slow_call_holds_up_its_own_environment_alone(diaries):
    diaries.write(1, "early")
    diaries.write(0, "slow", "then")
    for number in range(3):
        diaries.write(1 + number, f"quick {number}")
    assert diaries.answers(4) == ["early", "quick 0", "quick 1", "quick 2"]
    diaries.write(0, "last")
    diaries.gate.set()
    assert diaries.answers(3) == ["slow", "then", "last"]


def test_any_number_of_slow_calls_holds_up_nobody(diaries):
    for slot in range(3):
        diaries.write(slot, f"slow {slot}")
    diaries.write(3, "quick")
    assert diaries.answers(1) == ["quick"]
    diaries.gate.set()
    assert sorted(diaries.answers(3)) == ["slow 0", "slow 1", "slow 2"]


def test_an_environment_is_closed_after_its_slow_call(diaries):
    diaries.write(0, "slow")
    diaries.write(1, "quick")
    assert diaries.answers(1) == ["quick"]
    diaries.pool.retire(diaries.slots[0])
    diaries.write(1, "quick")
    assert diaries.answers(1) == ["quick"]
    assert diaries.pages == ["quick", "quick"]
    diaries.gate.set()
    until(lambda: "closed" in diaries.pages)
    assert diaries.pages[2:] == ["slow", "closed"]


def test_a_call_beyond_the_timeout_loses_its_environment_alone():
    diaries = Diaries(timeout=0.2)
    diaries.write(0, "slow", "never")
    diaries.write(1, "quick")
    quick, fault = diaries.answers(2)
    assert quick == "quick"
    assert fault.slots == (diaries.slots[0],)
    diaries.write(1, "still")
    assert diaries.answers(1) == ["still"]
    diaries.gate.set()
    diaries.pool.close()


@pytest.mark.parametrize("seed", range(5))
def test_every_call_is_made_once_in_order_however_often_threads_change(seed):
    chance = random.Random(seed)
    gate = threading.Event()
    gate.set()
    pool = EnvPool()
    pages: dict[int, list[str]] = {}
    calls: list[tuple[int, str]] = []
    for _ in range(12):
        diary: list[str] = []
        slot = pool.acquire(Diary(diary, gate), "shared")
        pages[slot] = diary
        calls += [(slot, f"{slot}.{number}") for number in range(30)]
    calls.sort(key=lambda call: (int(call[1].split(".")[1]), chance.random()))
    for slot, word in calls:
        pool.send(slot, "write", word, chance.choice([0.0, 0.0, 0.0, 0.003]))
    count = 0
    while count < len(calls):
        pool.unblock(0.001)
        count += len(pool.collect(0.001))
    assert len(pool._threads) > 1
    pool.close()
    assert pages == {slot: [f"{slot}.{number}" for number in range(30)] + ["closed"] for slot in pages}


@pytest.fixture
def gate():
    Moody.gate.clear()
    yield Moody.gate
    Moody.gate.set()


def test_a_slow_step_of_a_session_holds_up_none_of_the_others_on_a_server(gate):
    with served(catalogue=Catalogue(specs=SHELF)) as asking, asking.socket() as connection:
        slow, *others = [asking.open("test/Moody-v0") for _ in range(17)]
        asking.call(*(reset(session) for session in (slow, *others)))
        connection.send(json.dumps({"calls": [step(slow, "wait"), step(slow, "x")]}))
        until(lambda: asking.serving.sessions.by_name[slow].busy is not None)
        for _ in range(3):
            assert {answer["text"] for answer in asking.call(*(step(each, "x") for each in others))} == {"did x"}
        again = asking.open("test/Moody-v0")
        assert asking.call(reset(again), step(again, "y"))[1]["text"] == "did y"
        assert asking.serving.sessions.by_name[slow].busy is not None
        gate.set()
        assert [each["text"] for each in json.loads(connection.recv(timeout=30))["answers"]] == ["did wait", "did x"]


@pytest.mark.parametrize("task", ["test/Moody-v0", "test/Thread-v0"])
def test_a_session_that_is_stuck_is_lost_alone(gate, task):
    with served(catalogue=Catalogue(specs=SHELF), call=0.5) as asking, ThreadPoolExecutor(1) as pool:
        stuck, other = (asking.open(task) for _ in range(2))
        asking.call(reset(stuck), reset(other))
        code = pool.submit(asking.code, step(stuck, "wait"))
        assert asking.call(step(other, "x"))[0]["text"] == "did x"
        assert code.result(30) == "backend"
        assert asking.code(step(stuck, "x")) == "session"
        assert asking.call(step(other, "y"))[0]["text"] == "did y"
        again = asking.open(task)
        assert asking.call(reset(again), step(again, "x"))[1]["text"] == "did x"
        gate.set()


@pytest.mark.parametrize("sessions", [1, 64])
def test_a_long_message_holds_up_no_other_client(gate, sessions):
    with served(catalogue=Catalogue(specs=SHELF)) as asking, asking.socket() as connection:
        mine = [asking.open("test/Moody-v0") for _ in range(sessions)]
        other = asking.open("test/Moody-v0", token=OTHER)
        asking.call(*(reset(session) for session in mine))
        connection.send(json.dumps({"calls": [step(mine[n % sessions], "nap") for n in range(1000)]}))
        until(lambda: asking.serving.sessions.by_name[mine[0]].busy is not None)
        assert asking.call(reset(other), step(other, "x"), token=OTHER)[1]["text"] == "did x"
        assert any(asking.serving.sessions.by_name[session].busy for session in mine)
        assert len(json.loads(connection.recv(timeout=60))["answers"]) == 1000
