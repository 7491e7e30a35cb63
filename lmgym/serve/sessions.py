"""Sessions: which client owns them, which slot of the environment pool they have, and the calls made to them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import deque
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from lmgym.backends import wire
from lmgym.errors import BackendError, InstanceError, LmgymError, MissingExtra
from lmgym.rollout.env_pool import EnvPool
from lmgym.rollout.workers import Bug, Fault
from lmgym.serve.catalogue import Catalogue, Refusal, tellable
from lmgym.serve.clients import Client, Limits
from lmgym.serve.env_session import reported

LOG = logging.getLogger("lmgym.serve")
SLOW = 0.05  # seconds after which an environment that blocks the shared thread gets a thread of its own
WINDOW = 64  # sessions on the shared thread that one message calls at once, so that other messages get their turn
GONE = "no such session: it ended, was idle for too long, or belongs to another client"

NumberedCall = tuple[int, wire.EnvCall | wire.Close]  # position in the message, call


@dataclass(eq=False)
class SessionRecord:
    """One environment of a client."""

    name: str  # random, so that other clients cannot guess it
    task: str
    client: Client
    connection: object | None  # the WebSocket that it ends with; None if it was opened by POST
    slot: int
    shared: bool  # True if its environment started on the thread that inline tasks share
    used: float = field(default_factory=time.monotonic)
    busy: object | None = None  # the message whose calls are running


@dataclass
class AnswerBudget:
    """Characters that the answers to a message may still have; the answer that exceeds them is the last."""

    left: int

    def spend(self, answer: object) -> None:
        """Count an answer: its text and pictures are nearly all of it."""
        if isinstance(answer, wire.StepAnswer):
            self.left -= len(answer.text) + sum(map(len, answer.images))


class Sessions:
    """All sessions of a server, on one environment pool."""

    def __init__(self, catalogue: Catalogue, limits: Limits, *, processes: int | None = None) -> None:
        self.catalogue, self.limits = catalogue, limits
        self.pool = EnvPool(timeout=limits.call, processes=processes, outbox=self)
        self.by_name: dict[str, SessionRecord] = {}
        self._by_slot: dict[int, SessionRecord] = {}
        self._due: dict[int, asyncio.Future[Any]] = {}  # answers that the pool owes, by slot
        self._answers: deque[tuple[int, Any] | Fault | Bug] = deque()  # not yet delivered
        self._woken = False  # True while the loop is about to deliver them
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening = 0

    async def answer(
        self, client: Client, calls: Sequence[wire.AnyCall], connection: object | None = None
    ) -> list[wire.Answer]:
        """Return an answer for each call of a message. Calls to one session run in order, sessions run concurrently."""
        self._loop = asyncio.get_running_loop()
        message = object()
        answers: list[Any] = [None] * len(calls)
        opens: list[tuple[int, wire.Open]] = []
        by_session: dict[SessionRecord, list[NumberedCall]] = {}
        for number, call in enumerate(calls):
            try:
                if isinstance(call, wire.Open):
                    self._reserve(client)
                    opens.append((number, call))
                else:
                    self.catalogue.permit(call)
                    by_session.setdefault(self._session(client, call.session, message), []).append((number, call))
            except Refusal as refusal:
                answers[number] = wire.ErrorAnswer(refusal.error)
        budget, window = AnswerBudget(self.limits.answers), asyncio.Semaphore(WINDOW)
        work = [self._play(session, calls, budget, window, answers) for session, calls in by_session.items()]
        work += [self._open(client, call, connection, number, answers) for number, call in opens]
        if len(work) == 1:
            await work[0]  # the usual message needs no task
        else:
            await asyncio.gather(*work)
        return answers

    def put(self, answer: tuple[int, Any] | Fault | Bug) -> None:
        """Take an answer of the pool, in a worker's thread; waking the loop costs more than many calls do."""
        self._answers.append(answer)
        if self._loop is not None and not self._woken:
            self._woken = True
            with suppress(RuntimeError):  # the loop was closed: nobody waits for an answer
                self._loop.call_soon_threadsafe(self._deliver_all)

    async def watch(self) -> None:
        """Keep slow environments from blocking others, and end those that exceed the limit of a call, for ever."""
        while True:
            await asyncio.sleep(SLOW)
            self.pool.unblock(SLOW)
            for fault in self.pool.overdue():
                self._deliver(fault)

    async def reap(self) -> None:
        """Close idle sessions, for ever."""
        while True:
            await asyncio.sleep(min(self.limits.idle / 4, 30.0))
            self.reap_once()

    def reap_once(self) -> None:
        """Close the sessions that are idle now."""
        now = time.monotonic()
        for session in list(self.by_name.values()):
            if session.busy is None and now - session.used > self.limits.idle:
                self._end(session)

    def leave(self, connection: object) -> None:
        """End the sessions that were opened on a closed connection."""
        for session in list(self.by_name.values()):
            if session.connection is connection:
                self._end(session)

    def close(self) -> None:
        """Close all environments."""
        for session in list(self.by_name.values()):
            self._end(session)
        self.pool.close()

    def _reserve(self, client: Client) -> None:
        """Count one more session. Raises Refusal if there are too many."""
        if client.sessions >= self.limits.sessions_per_client:
            raise Refusal("limit", f"a client has at most {self.limits.sessions_per_client} sessions; close some")
        if len(self.by_name) + self._opening >= self.limits.sessions:
            raise Refusal("limit", f"all {self.limits.sessions} sessions of this server are in use; try later", 10.0)
        client.sessions += 1
        self._opening += 1

    async def _open(
        self, client: Client, call: wire.Open, connection: object | None, number: int, answers: list[Any]
    ) -> None:
        try:
            config = self.catalogue.config(call)
            shared = config.spec.player == "inline"
            slot = self.pool.acquire(config, "shared" if shared else config.spec.player)
            answer = await self._called(slot, call)
            if isinstance(answer, LmgymError):
                self.pool.retire(slot)
                raise self._refusal(config.spec.id, answer)
        except Refusal as refusal:
            client.sessions -= 1
            answers[number] = wire.ErrorAnswer(refusal.error)
        else:
            session = SessionRecord(secrets.token_urlsafe(18), config.spec.id, client, connection, slot, shared)
            self.by_name[session.name] = self._by_slot[slot] = session
            answers[number] = structs.replace(answer, session=session.name)
        finally:
            self._opening -= 1

    def _session(self, client: Client, name: str, message: object) -> SessionRecord:
        """Return the client's session. Raises the same Refusal for an unknown session and another client's."""
        session = self.by_name.get(name)
        if session is None or session.client is not client:
            raise Refusal("session", GONE)
        if session.busy not in (None, message):
            raise Refusal("busy", "another message is calling this session: wait for its answer")
        session.busy = message
        return session

    async def _play(
        self,
        session: SessionRecord,
        calls: Sequence[NumberedCall],
        budget: AnswerBudget,
        window: asyncio.Semaphore,
        answers: list[Any],
    ) -> None:
        """Make the calls of a message to one session."""
        async with window if session.shared else nullcontext():
            for number, call in calls:
                try:
                    answers[number] = await self._answer(session, call, budget)
                except Refusal as refusal:
                    answers[number] = wire.ErrorAnswer(refusal.error)
        session.used, session.busy = time.monotonic(), None

    async def _answer(
        self, session: SessionRecord, call: wire.EnvCall | wire.Close, budget: AnswerBudget
    ) -> wire.Answer:
        """Make a call. Raises Refusal if it gets no answer; any error but a caller's mistake ends the session."""
        if session.name not in self.by_name:  # an earlier call of this message ended it
            raise Refusal("session", GONE)
        if isinstance(call, wire.Close):
            self._end(session)
            return wire.CloseAnswer()
        if budget.left <= 0:
            used_up = f"the answers so far exceed {self.limits.answers} characters: make this call in another message"
            raise Refusal("size", used_up)
        answer: wire.Answer | LmgymError = await self._called(session.slot, call)
        budget.spend(answer)
        if not isinstance(answer, LmgymError):
            return answer
        if not isinstance(answer, InstanceError):
            self._end(session)
        raise self._refusal(session.task, answer)

    async def _called(self, slot: int, call: wire.EnvCall) -> Any:
        """Return the pool's answer to a call, or the error in its place."""
        assert self._loop is not None
        self._due[slot] = self._loop.create_future()
        self.pool.send(slot, "answer", call)
        return await self._due[slot]

    def _deliver_all(self) -> None:
        self._woken = False  # first: an answer that comes from here on wakes the loop again
        while self._answers:
            self._deliver(self._answers.popleft())

    def _deliver(self, answer: tuple[int, Any] | Fault | Bug) -> None:
        """Hand the pool's answer to the call that waits for it; a fault or bug ends the sessions that it hits."""
        slots: tuple[int, ...]
        match answer:
            case Fault(slots, result):
                pass
            case Bug(slot, error):
                slots, result = (slot,), reported(error)
                waits = self._due.get(slot)
                if waits is None or waits.done():  # else the refusal of the call logs it
                    LOG.error("an environment broke: %s", error, exc_info=error)
            case slot, result:
                slots = (slot,)
        for slot in slots:
            if (future := self._due.pop(slot, None)) is not None and not future.done():
                future.set_result(result)
            if isinstance(answer, Fault | Bug) and (session := self._by_slot.get(slot)) is not None:
                self._end(session)

    def _refusal(self, task: str, error: LmgymError) -> Refusal:
        """Log an error, and return the part of it that a client may read."""
        if isinstance(error, InstanceError):
            LOG.info("%s refused: %s", task, error)
            return Refusal("instance", tellable(error))
        LOG.warning("%s broke: %s", task, error, exc_info=error)
        if isinstance(error, MissingExtra):
            return Refusal("task", f"{task} cannot be played here: packages are missing")
        if isinstance(error, BackendError):
            return Refusal("backend", tellable(error))
        return Refusal("internal", f"{task} failed; its session is closed")

    def _end(self, session: SessionRecord) -> None:
        if self.by_name.pop(session.name, None) is not None:
            session.client.sessions -= 1
            del self._by_slot[session.slot]
            self.pool.retire(session.slot)
