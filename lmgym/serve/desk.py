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
from lmgym.serve.lane import Errand, Full, Lane, Room
from lmgym.serve.lanes import Lanes

LOG = logging.getLogger("lmgym.serve")
METHODS: dict[type[wire.Call], str] = {
    wire.Reset: "reset",
    wire.Step: "step",
    wire.Cut: "cut",
    wire.Ask: "ask",
    wire.Close: "close",
}
GONE = "no such session: it ended, was idle for too long, or never was yours"


@dataclass(eq=False)
class Session:
    """One environment of a client."""

    name: str  # nobody guesses it
    task: str
    client: Client
    connection: object | None  # with which it ends; None: it was opened by a request of its own
    lane: Lane
    slot: int
    used: float = field(default_factory=time.monotonic)
    busy: object | None = None  # the message whose calls are under way


Todo = tuple[int, Session, Errand]  # place of a call in its message, and what it comes to


class Desk:
    """Answers calls."""

    def __init__(self, catalogue: Catalogue, limits: Limits, *, processes: int | None = None) -> None:
        self.catalogue, self.limits = catalogue, limits
        self.lanes = Lanes(timeout=limits.call, processes=processes)
        self.sessions: dict[str, Session] = {}
        self._opening = 0

    async def answer(
        self, client: Client, calls: Sequence[wire.Call], connection: object | None = None
    ) -> list[wire.Answer]:
        """Answer the calls of a message, each in its place; those to one session are made in their order."""
        message = object()
        answers: list[Any] = [None] * len(calls)
        todo: dict[Lane, list[Todo]] = {}
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
                    todo.setdefault(session.lane, []).append((place, session, errand))
            except Refusal as refusal:
                answers[place] = wire.Refused(refusal.error)
        room = Room(self.limits.answers)
        work = [*opening, *(self._run(lane, client, part, room, answers) for lane, part in todo.items())]
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
        for session in list(self.sessions.values()):
            if session.busy is None and now - session.used > self.limits.idle:
                self._end(session)

    def leave(self, connection: object) -> None:
        """End the sessions of a connection that is gone."""
        for session in list(self.sessions.values()):
            if session.connection is connection:
                self._end(session)

    def close(self) -> None:
        """Close all environments."""
        for session in list(self.sessions.values()):
            self._end(session)
        self.lanes.close()

    # Inside ----------------------------------------------------------------------------------------------------

    def _reserve(self, client: Client) -> None:
        """Count one more session. Raises Refusal where there are too many."""
        if client.sessions >= self.limits.sessions_per_client:
            raise Refusal("limit", f"a client has {self.limits.sessions_per_client} sessions at most: close some")
        if len(self.sessions) + self._opening >= self.limits.sessions:
            raise Refusal("limit", f"this server has {self.limits.sessions} sessions at most, and they are taken", 10.0)
        client.sessions += 1
        self._opening += 1

    async def _open(
        self, client: Client, call: wire.Open, connection: object | None, place: int, answers: list[Any]
    ) -> None:
        try:
            offer = self.catalogue.offer(call)
            lane, slot = self.lanes.place(offer.spec.player)
            said = await self.lanes.run(lane, client.name, [(slot, "open", (offer,)), (slot, "describe", ())])
            if broken := [answer for answer in said if isinstance(answer, BaseException)]:
                self.lanes.leave(lane, client.name, slot)
                raise self._refusal(offer.spec.id, broken[0])
        except Refusal as refusal:
            client.sessions -= 1
            answers[place] = wire.Refused(refusal.error)
        else:
            session = Session(secrets.token_urlsafe(18), offer.spec.id, client, connection, lane, slot)
            self.sessions[session.name] = session
            answers[place] = structs.replace(said[1], session=session.name)
        finally:
            self._opening -= 1

    def _session(self, client: Client, name: str, message: object) -> Session:
        """The client's session. Raises Refusal, the same for one that never was and for a stranger's."""
        session = self.sessions.get(name)
        if session is None or session.client is not client:
            raise Refusal("session", GONE)
        if session.busy not in (None, message):
            raise Refusal("busy", "another message's call to this session is under way: wait for its answer")
        session.busy = message
        return session

    async def _run(self, lane: Lane, client: Client, todo: Sequence[Todo], room: Room, answers: list[Any]) -> None:
        said = await self.lanes.run(lane, client.name, [errand for _, _, errand in todo], room)
        now = time.monotonic()
        for (place, session, (_, method, _)), answer in zip(todo, said, strict=True):
            session.used, session.busy = now, None
            if isinstance(answer, BaseException):
                answers[place] = wire.Refused(self._refusal(session.task, answer).error)
            elif session.name not in self.sessions:  # an earlier call of this message ended it
                answers[place] = wire.Refused(wire.Error("session", GONE))
            else:
                answers[place] = wire.Closed() if method == "close" else answer
            if method == "close" or (
                isinstance(answer, BaseException) and not isinstance(answer, InstanceError | Full)
            ):
                self._end(session)

    def _refusal(self, task: str, error: BaseException) -> Refusal:
        """What a client is told of an error; the log is told all of it."""
        if isinstance(error, Full):
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

    def _end(self, session: Session) -> None:
        if self.sessions.pop(session.name, None) is not None:
            session.client.sessions -= 1
            self.lanes.leave(session.lane, session.client.name, session.slot)
