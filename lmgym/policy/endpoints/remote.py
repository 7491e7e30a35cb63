"""A policy that somebody else computes: many calls in flight, tried again, written down, and never bought twice."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Self

from tenacity import AsyncRetrying, retry_if_exception_type

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints.calls import Halted, Kept, Ledger, Memory, Provider, Rejected, Said, Trouble, call_key
from lmgym.policy.endpoints.pace import Pace, Patience, Tries
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.policy.endpoints.status import shortened
from lmgym.types import Completion, Message

POLL = 0.05  # seconds that a step waits for an answer
GRACE = 20.0  # seconds that replies on their way are waited for when a run ends early
LETTERS = 4  # of a token, where nobody counts


class RemotePolicy:
    """Asks a provider; works in a thread of its own, which `close` ends, or the end of a `with` block."""

    version = 0
    wants: frozenset[str] = frozenset()

    def __init__(
        self,
        provider: Provider,
        *,
        ledger: Ledger | None = None,
        patience: Patience | None = None,
        concurrency: int = 64,
        secrets: Secrets | None = None,
        costs: Callable[[Mapping[str, Any]], float | None] = lambda usage: usage.get("cost"),
    ) -> None:
        """At most `concurrency` calls are in flight; `costs` says what a call costs by its usage, None: unknown."""
        self.name = provider.name
        self.provider = provider
        self.ledger: Ledger = Memory() if ledger is None else ledger
        self.patience = patience or Patience()
        self.secrets = secrets or Secrets.of_environment()
        self.costs = costs
        self.pace = Pace(most=concurrency)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lmgym-calls", daemon=True)
        self._thread.start()
        self._buying: dict[str, asyncio.Task[Kept]] = {}  # by key of the call
        self._sending: set[asyncio.Task[Kept]] = set()  # of them, those whose exchange is under way
        self._halted = ""

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        asked = [self.ask(conversation) for conversation in conversations]
        return [future.result() for future in asked]

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of the messages, estimated from their length: the tokenizer is not here."""
        return sum(len(message.text) // LETTERS + LETTERS for message in messages)

    def session(self) -> RemoteSession:
        """A session, in which all conversations are asked at once."""
        return RemoteSession(self)

    def ask(self, conversation: Conversation) -> Future[Completion]:
        """Begin to ask."""
        return self._submit(self._answer(conversation))

    def halt(self, reason: str, *, grace: float = GRACE) -> None:
        """Ask for nothing more; replies on their way are waited for, `grace` seconds at most."""
        if not self._halted:
            self._submit(self._halt(reason, grace)).result()

    def close(self) -> None:
        """Let everything go, once the replies on their way are there or have taken too long."""
        if self._loop.is_closed():
            return
        self.halt("the policy is closed")
        self._submit(self.provider.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Self:
        """Close when the block ends."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close."""
        self.close()

    def _submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        if self._loop.is_closed():
            work.close()
            raise PolicyError(f"{self.name} is closed: load it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _halt(self, reason: str, grace: float) -> None:
        self._halted = reason
        for task in set(self._buying.values()) - self._sending:
            task.cancel()
        if self._sending and grace > 0:
            await asyncio.wait(self._sending, timeout=grace)
        for task in list(self._buying.values()):
            task.cancel()
        if self._buying:
            await asyncio.wait(list(self._buying.values()))

    async def _answer(self, conversation: Conversation) -> Completion:
        body = self.secrets.struck_all(self.provider.body(conversation))
        key = call_key(self.name, body, conversation.noise)
        kept = self.ledger.find(key)
        try:
            if kept is None:
                kept = await self._bought(key, body, conversation.noise)
            said = self._read(kept.raw)
        except (Trouble, Rejected) as error:
            return Completion(text="", finish="broken", usage={"fault": str(error)})
        usage = {**said.usage, "seconds": kept.seconds, "call": key[:16]}
        return Completion(text=said.text, thinking=said.thinking, finish=said.finish, usage=usage)

    async def _bought(self, key: str, body: Mapping[str, Any], draw: Sequence[int]) -> Kept:
        """The reply to a call; one that is already being made is waited for."""
        task = self._buying.get(key)
        if task is None:
            task = self._buying[key] = asyncio.ensure_future(self._buy(key, body, draw))
            task.add_done_callback(lambda _: self._buying.pop(key, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            raise Halted(self._halted or "the run ended") from None

    async def _buy(self, key: str, body: Mapping[str, Any], draw: Sequence[int]) -> Kept:
        tries = Tries(self.patience)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(Trouble),
            stop=lambda state: bool(self._halted) or tries.stop(state),
            wait=tries.wait,
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                async with self.pace:
                    begun = self.pace.clock()
                    try:
                        kept = await self._exchange(key, body, draw)
                    except Trouble as trouble:
                        tries.count(trouble)
                        if trouble.ailment == "rate":
                            hold = None if trouble.after is None else min(trouble.after, self.patience.obey)
                            self.pace.full(begun, hold=hold)
                        raise
                    self.pace.replied()
                    return kept
        raise AssertionError("tenacity ends with a result or an error")

    async def _exchange(self, key: str, body: Mapping[str, Any], draw: Sequence[int]) -> Kept:
        """One exchange, in the book before and after. One that is cancelled stays in it as begun."""
        if self._halted:
            raise Halted(self._halted)
        task = asyncio.current_task()
        assert task is not None
        exchange = self.ledger.intend(key, draw)
        begun = time.monotonic()
        self._sending.add(task)
        try:
            raw, said = await self._sent(body)
        except PolicyError as error:
            self.ledger.fail(exchange, _ailment(error), str(error))
            raise
        finally:
            self._sending.discard(task)
        kept = Kept(raw=raw, seconds=round(time.monotonic() - begun, 3))
        self.ledger.keep(exchange, key, kept, said)
        return kept

    async def _sent(self, body: Mapping[str, Any]) -> tuple[Mapping[str, Any], Said]:
        """The reply and what it says; errors repeat no secret, and bring no chain that does."""
        try:
            async with asyncio.timeout(self.patience.timeout):
                raw = shortened(self.secrets.struck_all(await self.provider.send(body)))
            return raw, self._read(raw)
        except TimeoutError:
            raise Trouble("timeout", f"no whole reply within {self.patience.timeout:g} seconds") from None
        except RecursionError:
            raise Trouble("broken", "the reply is nested too deep") from None
        except Trouble as error:
            raise Trouble(error.ailment, self._quoted(error), after=error.after) from None
        except PolicyError as error:
            raise type(error)(self._quoted(error)) from None

    def _read(self, raw: Mapping[str, Any]) -> Said:
        said = self.provider.read(raw)
        said = replace(said, text=self.secrets.struck(said.text), thinking=self.secrets.struck(said.thinking))
        cost = self.costs(said.usage)
        return said if cost is None else replace(said, usage={**said.usage, "cost": cost})

    def _quoted(self, error: PolicyError) -> str:
        """An error in one line, without secrets and without what a terminal would obey."""
        words = "".join(letter if letter.isprintable() else " " for letter in self.secrets.struck(str(error)))
        return " ".join(words.split())[:400]


def _ailment(error: PolicyError) -> str:
    return error.ailment if isinstance(error, Trouble) else type(error).__name__.lower()


class RemoteSession:
    """Conversations that are being answered elsewhere."""

    def __init__(self, policy: RemotePolicy) -> None:
        self._policy = policy
        self._asked: dict[Hashable, Future[Completion]] = {}
        self._ended: SimpleQueue[tuple[Hashable, Future[Completion]]] = SimpleQueue()

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Ask at once."""
        future = self._asked[key] = self._policy.ask(conversation)
        future.add_done_callback(lambda done: self._ended.put((key, done)))

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Wait a moment for answers and return those that are there.

        Raises PolicyError where no more will come; replies that are on their way are kept in the book before that.
        """
        finished = []
        with suppress(Empty):
            key, future = self._ended.get(timeout=POLL)
            while True:
                if self._asked.get(key) is future:  # else it was dropped
                    del self._asked[key]
                    finished.append((key, self._result(future)))
                key, future = self._ended.get_nowait()
        return finished

    def drop(self, key: Hashable) -> None:
        """Forget `key`; what was asked for is paid for, so the reply still goes into the book."""
        self._asked.pop(key, None)

    def __len__(self) -> int:
        """Conversations put and not finished."""
        return len(self._asked)

    def _result(self, future: Future[Completion]) -> Completion:
        try:
            return future.result()
        except PolicyError as error:
            self._policy.halt(str(error))
            raise
