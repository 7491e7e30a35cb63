"""A worker does calls in turn; one that is slow is set aside, and holds up its own session alone."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from lmgym.errors import BackendError
from lmgym.rollout.env_handle import EnvHost
from lmgym.serve.catalogue import Catalogue
from lmgym.serve.worker import ASIDE, SessionWorker

from .conftest import served
from .test_server import SHELF, Moody, reset, step, until


class Diary:
    """What lives in a slot; it writes down what it was called to do, and "slow" words wait for the gate."""

    def __init__(self, pages: list[str], gate: threading.Event) -> None:
        self.pages, self.gate = pages, gate
        self.alone = threading.Lock()

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


def write(slot: int, *words: str) -> list[tuple[int, str, tuple[Any, ...]]]:
    return [(slot, "write", (word,)) for word in words]


Told = Callable[[Awaitable[list[Any]]], Awaitable[list[Any]]]


def run(
    play: Callable[[SessionWorker, threading.Event, list[str], Told], Awaitable[None]], *, slots: int = 8
) -> list[str]:
    """Play on a worker of diaries in which a call is slow after 10 ms; what was written down in the end."""
    pages: list[str] = []
    gate = threading.Event()

    async def played() -> None:
        worker = SessionWorker(EnvHost(), slow=0.01)
        for slot in range(slots):
            await worker.do("c", [(slot, "open", (Diary(pages, gate),))])
        try:
            await play(worker, gate, pages, lambda answers: asyncio.wait_for(answers, 30))
        finally:
            gate.set()
            worker.stop()
            worker.join(30)

    asyncio.run(played())
    return pages


@pytest.mark.parametrize("client", ["the same", "another"])
def test_a_slow_call_holds_up_no_other_session_whosever_it_is(client):
    async def play(worker, gate, pages, told):
        slow = worker.do("the same", write(0, "slow", "then"))
        for number in range(3):
            assert await told(worker.do(client, write(1 + number, f"quick {number}"))) == [f"quick {number}"]
        assert not slow.done()
        gate.set()
        assert await told(slow) == ["slow", "then"]

    assert run(play)[:5] == ["quick 0", "quick 1", "quick 2", "slow", "then"]


def test_what_waited_before_the_slow_call_came_and_after_is_done_meanwhile():
    async def play(worker, gate, pages, told):
        early = worker.do("a", write(1, "early"))
        slow = worker.do("a", write(0, "slow"))
        late = [worker.do("a", write(2, "late")), worker.do("b", write(3, "late too"))]
        assert await told(early) == ["early"]
        assert [await told(each) for each in late] == [["late"], ["late too"]]
        assert not slow.done()

    assert sorted(run(play)[:3]) == ["early", "late", "late too"]


def test_an_environment_is_closed_after_its_slow_call():
    async def play(worker, gate, pages, told):
        slow = worker.do("a", write(0, "slow"))
        await told(worker.do("b", write(1, "quick")))
        worker.leave("a", 0)
        await told(worker.do("b", write(1, "quick")))
        assert pages == ["quick", "quick"]
        gate.set()
        await told(slow)

    assert run(play, slots=2)[2:] == ["slow", "closed", "closed"]


def test_a_call_that_is_given_up_loses_its_environment_alone():
    async def play(worker, gate, pages, told):
        slow = worker.do("a", [*write(0, "slow", "never"), *write(1, "after")])
        await told(worker.do("b", write(2, "quick")))
        worker.give_up(0.0, error := BackendError("too late"))
        answers = await told(slow)
        assert answers[0] is error
        assert isinstance(answers[1], BackendError)
        assert answers[2] == "after"
        worker.leave("a", 0)
        assert await told(worker.do("a", write(1, "still"))) == ["still"]
        gate.set()
        while "closed" not in pages:
            await asyncio.sleep(0.01)

    assert run(play, slots=3) == ["quick", "after", "still", "slow", "closed", "closed", "closed"]


def test_slow_calls_beyond_the_most_that_are_set_aside_wait_and_so_do_others():
    async def play(worker, gate, pages, told):
        slow = [worker.do(f"client {slot}", write(slot, f"slow {slot}")) for slot in range(ASIDE + 1)]
        quick = worker.do("b", write(ASIDE + 1, "quick"))
        while len(worker._aside) < ASIDE:
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert (quick.done(), pages) == (False, [])
        gate.set()
        assert await told(quick) == ["quick"]
        assert [await told(each) for each in slow] == [[f"slow {slot}"] for slot in range(ASIDE + 1)]

    run(play)


@pytest.mark.parametrize("seed", range(5))
def test_every_call_is_made_once_in_the_order_of_its_session_however_often_lanes_change_hands(seed):
    chance = random.Random(seed)
    pages: dict[int, list[str]] = {slot: [] for slot in range(12)}
    gate = threading.Event()
    gate.set()

    async def session(worker: SessionWorker, slot: int) -> None:
        for number in range(12):
            words = [f"{slot}.{number}.{n}" for n in range(chance.randint(1, 4))]
            errands = [(slot, "write", (word, chance.choice([0.0, 0.0, 0.002, 0.01]))) for word in words]
            assert await worker.do(f"client {slot % 3}", errands) == words
            asked[slot] += words

    async def played() -> int:
        worker = SessionWorker(EnvHost(), slow=0.001)
        for slot in pages:
            await worker.do("c", [(slot, "open", (Diary(pages[slot], gate),))])
        first = worker._thread
        await asyncio.gather(*(session(worker, slot) for slot in pages))
        worker.stop()
        worker.join(30)
        assert not worker._thread.is_alive()
        return worker._thread is not first

    asked: dict[int, list[str]] = {slot: [] for slot in pages}
    assert asyncio.run(played())
    assert pages == {slot: [*words, "closed"] for slot, words in asked.items()}


# On a server --------------------------------------------------------------------------------------------------------


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


def test_a_session_that_is_stuck_is_lost_alone(gate):
    with served(catalogue=Catalogue(specs=SHELF), call=0.5) as asking, ThreadPoolExecutor(1) as pool:
        stuck, other = (asking.open("test/Moody-v0") for _ in range(2))
        asking.call(reset(stuck), reset(other))
        code = pool.submit(asking.code, step(stuck, "wait"))
        assert asking.call(step(other, "x"))[0]["text"] == "did x"
        assert code.result(30) == "backend"
        assert asking.code(step(stuck, "x")) == "session"
        assert asking.call(step(other, "y"))[0]["text"] == "did y"
        gate.set()
