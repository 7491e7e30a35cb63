"""A policy computed elsewhere: many calls in flight, repeated after failures, recorded, and never bought twice."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception_type

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints.calls import (
    CallError,
    CallLedger,
    Halted,
    ParsedReply,
    PictureSource,
    Provider,
    RawReply,
    RequestRejected,
    StoredReply,
    TransientError,
    call_key,
)
from lmgym.policy.endpoints.pace import Attempts, RetryLimits, Throttle
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.policy.endpoints.status import QUOTE, shortened
from lmgym.types import Completion, Message

POLL = 0.05  # seconds that a step waits for an answer
GRACE = 20.0  # seconds that an ending run waits for replies in flight
CHARACTERS_PER_TOKEN = 4  # an estimate: the tokenizer is on the other side


class RemotePolicy:
    """A policy that asks a provider from a thread of its own, until `close`."""

    version = 0
    wants: frozenset[str] = frozenset()

    def __init__(
        self,
        provider: Provider,
        *,
        ledger: CallLedger | None,
        retries: RetryLimits,
        concurrency: int,
        secrets: Secrets,
        costs: Callable[[Mapping[str, Any]], float | None],
        pictures: PictureSource,
    ) -> None:
        """`concurrency` limits the calls in flight; `costs` maps a call's usage to its cost, None if unknown.

        `pictures` are those of the provider's dialect.
        """
        self.name = provider.name
        self.pictures = pictures
        self.provider = provider
        self.ledger = CallLedger() if ledger is None else ledger
        self.retries = retries
        self.secrets = secrets
        self.costs = costs
        self.throttle = Throttle(most=concurrency)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="lmgym-calls", daemon=True)
        self._thread.start()
        self._calls: dict[str, asyncio.Task[StoredReply]] = {}  # under way, by key
        self._in_flight: set[asyncio.Task[StoredReply]] = set()  # those of them with an exchange under way
        self._halted = ""

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        futures = [self.ask(conversation) for conversation in conversations]
        return [future.result() for future in futures]

    def count(self, messages: Sequence[Message]) -> int:
        """Estimate the tokens of messages from their length."""
        return sum(len(message.text) // CHARACTERS_PER_TOKEN + CHARACTERS_PER_TOKEN for message in messages)

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Look up pictures in `pictures`, a mapping of digests to PNGs, from now on; an engine calls this itself."""
        self.pictures.current = pictures

    def session(self) -> RemoteSession:
        """Return a session that asks for all conversations at once."""
        return RemoteSession(self)

    def ask(self, conversation: Conversation) -> Future[Completion]:
        """Begin a call and return its future completion."""
        return self._submit(self._answer(conversation))

    def halt(self, reason: str, *, grace: float = GRACE) -> None:
        """Start no further exchange, and wait at most `grace` seconds for replies in flight."""
        if not self._halted:
            self._submit(self._halt(reason, grace)).result()

    def close(self) -> None:
        """Halt, then close connections and the thread."""
        if self._loop.is_closed():
            return
        self.halt("the policy is closed")
        self._submit(self.provider.close()).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _submit(self, work: Coroutine[Any, Any, Any]) -> Future[Any]:
        if self._loop.is_closed():
            work.close()
            raise PolicyError(f"{self.name} is closed: load it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _halt(self, reason: str, grace: float) -> None:
        self._halted = reason
        for task in set(self._calls.values()) - self._in_flight:
            task.cancel()
        if self._in_flight and grace > 0:
            await asyncio.wait(self._in_flight, timeout=grace)
        for task in list(self._calls.values()):
            task.cancel()
        if self._calls:
            await asyncio.wait(list(self._calls.values()))

    async def _answer(self, conversation: Conversation) -> Completion:
        body = self.secrets.struck_all(self.provider.dialect.body(conversation))
        key = call_key(self.name, body, conversation.noise)
        stored = self.ledger.find(key)
        try:
            if stored is None:
                stored = await self._joined_call(key, body, conversation.noise)
            reply = self._read(stored.raw)
        except (TransientError, RequestRejected) as error:
            return Completion(text="", finish="broken", usage={"fault": str(error)})
        usage = {**reply.usage, "seconds": stored.seconds, "call": key[:16]}
        text = reply.text
        if conversation.parallel_calls:
            text = "\n".join((text, *reply.more))
        elif reply.more:
            usage["calls_left_out"] = len(reply.more)
        return Completion(text=text, thinking=reply.thinking, finish=reply.finish, usage=usage)

    async def _joined_call(self, key: str, body: Mapping[str, Any], draw: Sequence[int]) -> StoredReply:
        """Return the reply to a call; an equal call under way is joined."""
        task = self._calls.get(key)
        if task is None:
            task = self._calls[key] = asyncio.ensure_future(self._call(key, body, draw))
            task.add_done_callback(lambda _: self._calls.pop(key, None))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            raise Halted(self._halted or "the run ended") from None

    async def _call(self, key: str, body: Mapping[str, Any], draw: Sequence[int]) -> StoredReply:
        """Repeat an exchange until it succeeds or the limits are reached."""
        attempts = Attempts(self.retries)
        retrying = AsyncRetrying(
            retry=retry_if_exception_type(TransientError),
            stop=lambda state: bool(self._halted) or attempts.stop(state),
            wait=attempts.wait,
            reraise=True,
        )
        async for attempt in retrying:
            with attempt:
                async with self.throttle.call():
                    begun = self.throttle.clock()
                    try:
                        stored = await self._exchange(key, body, draw)
                    except TransientError as error:
                        attempts.record(error)
                        if error.kind == "rate":
                            hold = None if error.after is None else min(error.after, self.retries.longest_retry_after)
                            self.throttle.rate_limited(begun, hold=hold)
                        raise
                    self.throttle.succeeded()
                    return stored
        raise AssertionError("tenacity ends with a result or an error")

    async def _exchange(self, key: str, body: Mapping[str, Any], draw: Sequence[int]) -> StoredReply:
        """Make one exchange and record it in the ledger; a cancelled one stays there as begun."""
        if self._halted:
            raise Halted(self._halted)
        task = asyncio.current_task()
        assert task is not None
        exchange = self.ledger.begin(key, draw)
        begun = time.monotonic()
        self._in_flight.add(task)
        try:
            raw, reply = await self._send(body)
        except PolicyError as error:
            self.ledger.fail(exchange, error.outcome if isinstance(error, CallError) else "policyerror", str(error))
            raise
        finally:
            self._in_flight.discard(task)
        stored = StoredReply(raw=raw, seconds=round(time.monotonic() - begun, 3))
        self.ledger.store(exchange, key, stored, reply)
        return stored

    async def _send(self, body: Mapping[str, Any]) -> tuple[RawReply, ParsedReply]:
        """Return the reply, raw and parsed; raise errors that repeat no secret and are chained to none that does."""
        dialect = self.provider.dialect
        try:
            async with asyncio.timeout(self.retries.timeout):
                raw = await self.provider.exchange(dialect.outgoing(body))
            dialect.read(raw)  # refuses an oversized reply before it is copied
            raw = shortened(self.secrets.struck_all(raw))
            return raw, self._read(raw)
        except TimeoutError:
            raise TransientError("timeout", f"no complete reply within {self.retries.timeout:g} seconds") from None
        except RecursionError:
            raise TransientError("broken", "the reply is nested too deeply") from None
        except TransientError as error:
            raise TransientError(error.kind, self._quoted(error), after=error.after) from None
        except PolicyError as error:
            raise type(error)(self._quoted(error)) from None

    def _read(self, raw: RawReply) -> ParsedReply:
        """Parse a reply, strike out secrets and add the cost."""
        reply = self.provider.dialect.read(raw)
        text, thinking, *more = map(self.secrets.struck, (reply.text, reply.thinking, *reply.more))
        reply = replace(reply, text=text, thinking=thinking, more=tuple(more))
        cost = self.costs(reply.usage)
        return reply if cost is None else replace(reply, usage={**reply.usage, "cost": cost})

    def _quoted(self, error: PolicyError) -> str:
        """Return an error as one line without secrets and terminal control characters."""
        text = "".join(letter if letter.isprintable() else " " for letter in self.secrets.struck(str(error)))
        return " ".join(text.split())[:QUOTE]


class RemoteSession:
    """Conversations in flight to a RemotePolicy."""

    def __init__(self, policy: RemotePolicy) -> None:
        self._policy = policy
        self._futures: dict[Hashable, Future[Completion]] = {}
        self._done: SimpleQueue[tuple[Hashable, Future[Completion]]] = SimpleQueue()

    def put(self, key: Hashable, conversation: Conversation) -> None:
        """Begin a call at once."""
        future = self._futures[key] = self._policy.ask(conversation)
        future.add_done_callback(lambda done: self._done.put((key, done)))

    def step(self) -> list[tuple[Hashable, Completion]]:
        """Wait briefly for answers and return those that arrived.

        Raise PolicyError if no more can arrive, after replies in flight have been recorded.
        """
        return self._arrived(POLL)

    def poll(self) -> list[tuple[Hashable, Completion]]:
        """Return the answers that arrived, as `step` does, without waiting."""
        return self._arrived(0.0)

    def _arrived(self, wait: float) -> list[tuple[Hashable, Completion]]:
        finished = []
        with suppress(Empty):
            key, future = self._done.get(timeout=wait)
            while True:
                if self._futures.get(key) is future:  # not dropped meanwhile
                    del self._futures[key]
                    try:
                        finished.append((key, future.result()))
                    except PolicyError as error:
                        self._policy.halt(str(error))
                        raise
                key, future = self._done.get_nowait()
        return finished

    def drop(self, key: Hashable) -> None:
        """Forget `key`; its reply is paid for and still goes into the ledger."""
        self._futures.pop(key, None)

    def __len__(self) -> int:
        """Return the number of conversations put and not finished."""
        return len(self._futures)
