"""One worker: a thread that does calls to the environments in its slots, one after the other, clients in turn.

Where calls are cheap all environments share a worker, and a batch of them costs one hand-over. A call that turns out to
be slow is then set aside: it ends in the thread that began it, and another thread goes on with everybody else's.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from lmgym.backends import wire
from lmgym.errors import BackendError, LmgymError
from lmgym.rollout.env_handle import EnvHost
from lmgym.rollout.workers import Lost, patience
from lmgym.rollout.workers import ProcessHost as Process

MARGIN = 5.0  # seconds
SLICE = 0.005  # seconds after which the next client is on turn
ASIDE = 4  # slow calls that are set aside at once, at most: their threads share one interpreter with the worker's
GONE = "the environment was lost, or others that lived where it did"

Errand = tuple[int, str, tuple[Any, ...]]  # slot, method of what lives there, arguments
Waiting = tuple[asyncio.AbstractEventLoop, "asyncio.Future[list[Any]]"]


class BudgetSpent(LmgymError):
    """A call was not made: what its message's earlier calls are answered is as much as there may be."""


@dataclass
class AnswerBudget:
    """What the answers to a message may still take, in whatever workers they are made."""

    left: int  # characters; the answer that oversteps it is the last

    def take(self, answer: Any) -> None:
        """Count an answer, whose texts and pictures are nearly all of it."""
        if isinstance(answer, wire.StepAnswer):
            self.left -= len(answer.text) + sum(map(len, answer.images))


@dataclass(eq=False)
class CallQueue:
    """Errands of a client's message in this worker."""

    client: str
    errands: Sequence[Errand]
    budget: AnswerBudget | None = None  # None: as much as they take
    waiting: Waiting | None = None  # None: nobody
    answers: list[Any] = field(default_factory=list)

    @property
    def done(self) -> bool:
        """Whether all errands were done."""
        return len(self.answers) == len(self.errands)

    def hear(self, answer: Any) -> None:
        """Keep the answer to the next errand."""
        if self.budget is not None:
            self.budget.take(answer)
        self.answers.append(answer)

    def settle(self) -> None:
        """Hand the answers to who waits."""
        if self.waiting is not None:
            loop, future = self.waiting
            with contextlib.suppress(RuntimeError):  # the loop was closed meanwhile: nobody waits for an answer
                loop.call_soon_threadsafe(_settle, future, self.answers)


@dataclass(eq=False, slots=True)
class RunningCall:
    """The next errand of a job, under way."""

    job: CallQueue
    errand: Errand = (-1, "", ())
    since: float = 0.0
    answer: Any = None
    over: bool = False  # whether `answer` is there
    error: BackendError | None = None  # with which it was given up

    def lasts(self, seconds: float) -> bool:
        """Whether it took longer than this."""
        return time.monotonic() - self.since > seconds


class SessionWorker:
    """A thread, and the environments that it alone touches, here or in a process that it drives.

    With `slow` seconds a call that takes longer is set aside while others wait.
    """

    def __init__(self, host: EnvHost | Process, *, slow: float | None = None) -> None:
        self.slots: set[int] = set()
        self.lost = False  # stuck or dead: its environments are gone
        self._host, self._slow = host, slow
        self._inbox: SimpleQueue[CallQueue | RunningCall | None] = SimpleQueue()
        self._waiting: dict[asyncio.Future[list[Any]], int] = {}  # for how many answers
        self._timer: asyncio.TimerHandle | None = None
        self._lock = threading.Lock()  # of `_call`: who has the worker
        self._call: RunningCall | None = (
            None  # under way in the thread that has the worker, which alone touches what follows
        )
        self._turns: dict[str, deque[CallQueue]] = {}  # by client, who is on turn first
        self._latest, self._ending = "", False
        self._aside: dict[RunningCall, list[CallQueue]] = {}  # with what waits for the same environment
        self._gone: set[int] = set()  # slots in which a call was given up
        self._thread = self._started(None)

    def do(
        self, client: str, errands: Sequence[Errand], budget: AnswerBudget | None = None
    ) -> asyncio.Future[list[Any]]:
        """Do all of this after what the client asked before, but for what was set aside.

        The result has an answer or an exception for each.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[Any]] = loop.create_future()
        self._waiting[future] = len(errands)
        future.add_done_callback(self._waiting.pop)
        self._inbox.put(CallQueue(client, errands, budget, (loop, future)))
        if self._timer is None and self._slow is not None:
            self._timer = loop.call_later(self._slow, self._look, loop, self._slow)
        return future

    def leave(self, client: str, slot: int) -> None:
        """Close an environment in turn; nobody waits for it."""
        self.slots.discard(slot)
        self._inbox.put(CallQueue(client, [(slot, "close", ())]))

    def stuck(self, timeout: float) -> bool:
        """Whether it is lost, or a call takes longer than `timeout` seconds; a process has more, for its own clock."""
        call = self._call
        margin = MARGIN if isinstance(self._host, Process) else 0.0
        return self.lost or (call is not None and call.lasts(_limit(call, timeout) + margin))

    def give_up(self, timeout: float, error: BackendError) -> None:
        """Answer calls aside that take longer than `timeout` seconds with an error; their environments are gone."""
        for call in list(self._aside):
            if call.lasts(_limit(call, timeout)):
                call.error = error
                self._inbox.put(call)

    def overtake(self, after: float) -> bool:
        """Set the call aside that is under way, if it takes longer than `after` seconds; whether it was."""
        with self._lock:
            call = self._call
            if self._slow is None or call is None or not call.lasts(after) or len(self._aside) >= ASIDE:
                return False
            self._call = None
        self._thread = self._started(call)
        return True

    def stop(self) -> None:
        """End after what is under way."""
        self._inbox.put(None)

    def kill(self, error: BackendError) -> None:
        """Give up what is under way: whoever waits is told, a process dies, a thread is left to itself."""
        self.lost = True
        for future, count in list(self._waiting.items()):
            _settle(future, [error] * count)
        if isinstance(self._host, Process):
            self._host.kill()
        self.stop()

    def join(self, seconds: float) -> None:
        """Wait for the end, but not for ever."""
        self._thread.join(seconds)

    def _look(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        """Set a slow call aside where others wait for it; look again while anybody waits."""
        held = [call for call in (*self._aside, self._call) if call is not None and call.job.waiting is not None]
        if len(self._waiting) > len(held):
            self.overtake(seconds)
        self._timer = loop.call_later(seconds, self._look, loop, seconds) if self._waiting else None

    # In the thread that has the worker -----------------------------------------------------------------------------

    def _started(self, slow: RunningCall | None) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(slow,), name="lmgym-worker", daemon=True)
        thread.start()
        return thread

    def _run(self, slow: RunningCall | None) -> None:
        """Do errands until the end, or until another thread does because a call took too long here."""
        if slow is not None:
            self._set_aside(slow)
        while self._listened():
            if self._latest in self._turns:  # behind the others, those that came meanwhile included
                self._turns[self._latest] = self._turns.pop(self._latest)
            self._latest = next(iter(self._turns))
            if not self._slice(self._turns[self._latest]):
                return
            if not self._turns[self._latest]:
                del self._turns[self._latest]
        self._host.close()

    def _listened(self) -> bool:
        """Take in what came, and wait for it while there is nothing to do; False at the end."""
        while not self._turns or not self._inbox.empty():
            if self._ending and not self._turns and not self._aside:
                return False
            self._take(self._inbox.get())
        return True

    def _take(self, came: CallQueue | RunningCall | None) -> None:
        if came is None:
            self._ending = True
        elif isinstance(came, RunningCall):
            self._return(came)
        else:
            for call, behind in self._aside.items():
                if any(slot == call.errand[0] for slot, *_ in came.errands):
                    behind.append(came)
                    return
            self._turns.setdefault(came.client, deque()).append(came)

    def _set_aside(self, call: RunningCall) -> None:
        """Leave a call to the thread that it is under way in, and its job until it returns."""
        self._aside[call] = []
        for job in self._turns.pop(call.job.client):
            if job is not call.job:
                self._take(job)

    def _return(self, call: RunningCall) -> None:
        """Go on with what waited for a call, which is over or given up."""
        slot = call.errand[0]
        behind = self._aside.pop(call, None)
        if behind is not None:
            if not call.over:
                self._gone.add(slot)
            call.job.hear(call.answer if call.over else call.error)
            for job in (call.job, *behind):
                self._take(job)
        elif call.over and slot in self._gone:  # too late
            self._gone.discard(slot)
            self._answer((slot, "close", ()), None)

    def _slice(self, jobs: deque[CallQueue]) -> bool:
        """Do a client's errands for a while, one at least; whether this thread has the worker still."""
        until = time.monotonic() + SLICE
        while jobs:
            if not self._did(jobs[0], until):
                return False
            if jobs[0].done:
                jobs.popleft().settle()
            if time.monotonic() > until:
                break
        return True

    def _did(self, job: CallQueue, until: float) -> bool:
        """Do errands of a job; False where one was set aside meanwhile, and this thread has that alone."""
        call, now = RunningCall(job), time.monotonic()
        while not job.done:
            call.errand, call.since = job.errands[len(job.answers)], now
            self._call = call
            answer = self._answer(call.errand, job.budget)
            with self._lock:
                if self._call is not call:
                    call.answer, call.over = answer, True
                    self._inbox.put(call)
                    return False
                self._call = None
            job.hear(answer)
            if (now := time.monotonic()) > until:
                break
        return True

    def _answer(self, errand: Errand, budget: AnswerBudget | None) -> Any:
        if self.lost or errand[0] in self._gone:
            return BackendError(GONE)
        if budget is not None and budget.left <= 0 and errand[1] != "close":
            return BudgetSpent()
        try:
            return self._host.call(*errand)
        except Lost as error:
            self.lost = True
            return error
        except BaseException as error:  # noqa: BLE001  (handed over: whoever asked is told that it broke)
            return error


def _limit(call: RunningCall, timeout: float) -> float:
    """Seconds that a call may take."""
    return patience(call.errand[1], timeout) or timeout


def _settle(future: asyncio.Future[list[Any]], answers: list[Any]) -> None:
    if not future.done():
        future.set_result(answers)
