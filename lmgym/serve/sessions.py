"""Sessions: who has them, where they live, and the calls that are made to them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from msgspec import structs

from lmgym.backends import wire
from lmgym.errors import BackendError, InstanceError, MissingExtra
from lmgym.serve.catalogue import Catalogue, Refusal, tellable
from lmgym.serve.clients import Client, Limits
from lmgym.serve.worker import AnswerBudget, BudgetSpent, Errand, SessionWorker
from lmgym.serve.workers import SessionWorkers

LOG = logging.getLogger("lmgym.serve")
METHODS: dict[type[wire.AnyCall], str] = {
    wire.Reset: "reset",
    wire.Step: "step",
    wire.Cut: "cut",
    wire.Ask: "ask",
    wire.Close: "close",
}
GONE = "no such session: it ended, was idle for too long, or never was yours"


@dataclass(eq=False)
class SessionRecord:
    """One environment of a client."""

    name: str  # nobody guesses it
    task: str
    client: Client
    connection: object | None  # with which it ends; None: it was opened by a request of its own
    worker: SessionWorker
    slot: int
    used: float = field(default_factory=time.monotonic)
    busy: object | None = None  # the message whose calls are under way


Todo = tuple[int, SessionRecord, Errand]  # place of a call in its message, and what it comes to


class Sessions:
    """Answers calls."""

    def __init__(self, catalogue: Catalogue, limits: Limits, *, processes: int | None = None) -> None:
        self.catalogue, self.limits = catalogue, limits
        self.workers = SessionWorkers(timeout=limits.call, processes=processes)
        self.by_name: dict[str, SessionRecord] = {}
        self._opening = 0

    async def answer(
        self, client: Client, calls: Sequence[wire.AnyCall], connection: object | None = None
    ) -> list[wire.Answer]:
        """Answer the calls of a message, each in its place; those to one session are made in their order."""
        message = object()
        answers: list[Any] = [None] * len(calls)
        todo: dict[SessionWorker, list[Todo]] = {}
        opening = []
        for place, call in enumerate(calls):
            try:
                if isinstance(call, wire.Open):
                    self._reserve(client)
                    opening.append(self._open(client, call, connection, place, answers))
                else:
                    self.catalogue.permit(call)
                    session = self._session(client, call.session, message)
                    errand = (session.slot, METHODS[type(call)], () if isinstance(call, wire.Close) else (call,))
                    todo.setdefault(session.worker, []).append((place, session, errand))
            except Refusal as refusal:
                answers[place] = wire.ErrorAnswer(refusal.error)
        budget = AnswerBudget(self.limits.answers)
        work = [*opening, *(self._run(worker, client, part, budget, answers) for worker, part in todo.items())]
        if len(work) == 1:
            await work[0]  # by far the most, and no task is needed
        else:
            await asyncio.gather(*work)
        return answers

    async def reap(self) -> None:
        """Close sessions that nobody called for too long, for ever."""
        while True:
            await asyncio.sleep(min(self.limits.idle / 4, 30.0))
            self.reap_once()

    def reap_once(self) -> None:
        """Close sessions that nobody called for too long."""
        now = time.monotonic()
        for session in list(self.by_name.values()):
            if session.busy is None and now - session.used > self.limits.idle:
                self._end(session)

    def leave(self, connection: object) -> None:
        """End the sessions of a connection that is gone."""
        for session in list(self.by_name.values()):
            if session.connection is connection:
                self._end(session)

    def close(self) -> None:
        """Close all environments."""
        for session in list(self.by_name.values()):
            self._end(session)
        self.workers.close()

    # Inside ----------------------------------------------------------------------------------------------------

    def _reserve(self, client: Client) -> None:
        """Count one more session. Raises Refusal where there are too many."""
        if client.sessions >= self.limits.sessions_per_client:
            raise Refusal("limit", f"a client has {self.limits.sessions_per_client} sessions at most: close some")
        if len(self.by_name) + self._opening >= self.limits.sessions:
            raise Refusal("limit", f"this server has {self.limits.sessions} sessions at most, and they are taken", 10.0)
        client.sessions += 1
        self._opening += 1

    async def _open(
        self, client: Client, call: wire.Open, connection: object | None, place: int, answers: list[Any]
    ) -> None:
        try:
            config = self.catalogue.config(call)
            worker, slot = self.workers.place(config.spec.player)
            said = await self.workers.run(worker, client.name, [(slot, "open", (config,)), (slot, "describe", ())])
            if broken := [answer for answer in said if isinstance(answer, BaseException)]:
                self.workers.leave(worker, client.name, slot)
                raise self._refusal(config.spec.id, broken[0])
        except Refusal as refusal:
            client.sessions -= 1
            answers[place] = wire.ErrorAnswer(refusal.error)
        else:
            session = SessionRecord(secrets.token_urlsafe(18), config.spec.id, client, connection, worker, slot)
            self.by_name[session.name] = session
            answers[place] = structs.replace(said[1], session=session.name)
        finally:
            self._opening -= 1

    def _session(self, client: Client, name: str, message: object) -> SessionRecord:
        """The client's session. Raises Refusal, the same for one that never was and for a stranger's."""
        session = self.by_name.get(name)
        if session is None or session.client is not client:
            raise Refusal("session", GONE)
        if session.busy not in (None, message):
            raise Refusal("busy", "another message's call to this session is under way: wait for its answer")
        session.busy = message
        return session

    async def _run(
        self, worker: SessionWorker, client: Client, todo: Sequence[Todo], budget: AnswerBudget, answers: list[Any]
    ) -> None:
        said = await self.workers.run(worker, client.name, [errand for _, _, errand in todo], budget)
        now = time.monotonic()
        for (place, session, (_, method, _)), answer in zip(todo, said, strict=True):
            session.used, session.busy = now, None
            if isinstance(answer, BaseException):
                answers[place] = wire.ErrorAnswer(self._refusal(session.task, answer).error)
            elif session.name not in self.by_name:  # an earlier call of this message ended it
                answers[place] = wire.ErrorAnswer(wire.Error("session", GONE))
            else:
                answers[place] = wire.CloseAnswer() if method == "close" else answer
            if method == "close" or (
                isinstance(answer, BaseException) and not isinstance(answer, InstanceError | BudgetSpent)
            ):
                self._end(session)

    def _refusal(self, task: str, error: BaseException) -> Refusal:
        """What a client is told of an error; the log is told all of it."""
        if isinstance(error, BudgetSpent):
            return Refusal(
                "size", f"the answers before it have {self.limits.answers} characters: ask in another message"
            )
        if isinstance(error, InstanceError):
            LOG.info("%s refused: %s", task, error)
            return Refusal("instance", tellable(error))
        LOG.warning("%s broke: %r", task, error, exc_info=error)
        if isinstance(error, MissingExtra):
            return Refusal("task", f"{task} cannot be played here: packages are missing")
        if isinstance(error, BackendError):
            return Refusal("backend", tellable(error))
        return Refusal("internal", f"{task} failed; its session is closed")

    def _end(self, session: SessionRecord) -> None:
        if self.by_name.pop(session.name, None) is not None:
            session.client.sessions -= 1
            self.workers.leave(session.worker, session.client.name, session.slot)
