"""`cmd:PROGRAM`: a program that reads requests as JSON lines and writes answers as JSON lines, in any order.

A request is `{"id", "messages", "tools", "temperature", "max_tokens", "draw"}`, an answer `{"id", "text"}`, optionally
with `thinking`, `tool_calls` as in chat completions, `finish` ("stop" or "length") and `usage` ("in", "out", "cost");
or `{"id", "error"}`. A program that dies, hangs or writes anything else is started again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import shlex
from asyncio.subprocess import PIPE, Process
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, functions
from lmgym.policy.endpoints.calls import (
    MAX_REPLY_BYTES,
    EndpointRefused,
    ParsedReply,
    RawReply,
    RequestOptions,
    TransientError,
)
from lmgym.policy.endpoints.chat import (
    DIGEST,
    MAX_QUOTE,
    Pictures,
    broken,
    encoded,
    parse_object,
    read_reply,
    token_counts,
)
from lmgym.policy.tools import split_thinking

SHUTDOWN_TIMEOUT = 2.0  # seconds for the program to end by itself
MAX_SILENT_STARTS = 3  # starts in a row without an answer before the program is given up


@dataclass(frozen=True)
class JsonLines:
    """Requests and answers of a program."""

    options: RequestOptions
    pictures: Pictures

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """Return the complete request, with pictures by their digests."""
        messages = [
            {"role": message.role, "content": message.text} | ({DIGEST: list(message.images)} if message.images else {})
            for message in conversation.messages
        ]
        return self.options.body(
            {
                "messages": messages,
                "tools": functions(conversation.tools) or None,
                "temperature": self.options.temperature,
                "max_tokens": conversation.max_tokens or self.options.max_tokens,
                "draw": list(conversation.noise),
            }
        )

    def outgoing(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the request with the pictures of each message in base64."""
        messages = []
        for message in body["messages"]:
            images = [encoded(digest, self.pictures) for digest in message.get(DIGEST, ())]
            sent = {name: value for name, value in message.items() if name != DIGEST}
            messages.append({**sent, "images": images} if images else sent)
        return {**body, "messages": messages}

    def read(self, raw: RawReply) -> ParsedReply:
        """Parse an answer; raise TransientError for one without text and tool calls."""
        if raw.get("error"):
            raise TransientError("server", f"the program reports an error: {raw['error']}")
        thinking, text = split_thinking(raw["text"]) if isinstance(raw.get("text"), str) else ("", None)
        message = {"content": text, "tool_calls": raw.get("tool_calls"), "reasoning": raw.get("thinking") or thinking}
        if text is None and not message["tool_calls"]:
            raise broken("the program's answer has no text", raw)
        reply = read_reply({"choices": [{"message": message, "finish_reason": raw.get("finish")}]})
        usage = raw.get("usage")
        if not isinstance(usage, Mapping):
            return reply
        counts = token_counts(usage, **{name: name for name in ("in", "out", "cached", "thinking")})
        cost = usage.get("cost")
        valid = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf
        return replace(reply, usage={**reply.usage, **counts, **({"cost": cost} if valid else {})})


class Command:
    """A program that answers requests."""

    def __init__(self, line: str, *, options: RequestOptions, pictures: Pictures) -> None:
        """`line` is split as by a shell, and run without one."""
        self.name = f"cmd:{line}"
        self.dialect = JsonLines(options, pictures)
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise PolicyError(f"cmd:{line} cannot be split into words: {error}") from error
        if not self._words:
            raise PolicyError("cmd: needs a program, such as cmd:./player.py or 'cmd:node player.js'")
        self._numbers = itertools.count()
        self._pending: dict[int, asyncio.Future[RawReply]] = {}
        self._process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._starting = asyncio.Lock()
        self._stderr: deque[str] = deque(maxlen=5)  # its last lines
        self._silent_starts = 0  # since the last answer

    async def exchange(self, request: Mapping[str, Any]) -> RawReply:
        """Send a request and return the answer; a cancelled exchange kills the program, which hangs."""
        number = next(self._numbers)
        process = await self._running()
        assert process.stdin is not None
        future: asyncio.Future[RawReply] = asyncio.get_running_loop().create_future()
        self._pending[number] = future
        try:
            process.stdin.write(json.dumps({"id": number, **request}).encode() + b"\n")
            await process.stdin.drain()
            return await future
        except (BrokenPipeError, ConnectionResetError):
            raise TransientError("connection", f"the program ended; {self._last_words()}") from None
        except asyncio.CancelledError:
            self._kill(process)
            raise
        finally:
            self._pending.pop(number, None)
            if future.done() and not future.cancelled():
                future.exception()  # marks it as retrieved

    async def close(self) -> None:
        """End the program and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), SHUTDOWN_TIMEOUT)
        except TimeoutError:
            self._kill(process)
            await process.wait()
        await asyncio.gather(*self._readers, return_exceptions=True)

    async def _running(self) -> Process:
        """Return the running program, started if there is none."""
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return self._process
            await asyncio.gather(*self._readers, return_exceptions=True)
            if self._silent_starts >= MAX_SILENT_STARTS:
                raise EndpointRefused(
                    f"the program ended {MAX_SILENT_STARTS} times without an answer; {self._last_words()}"
                )
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._words, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=MAX_REPLY_BYTES
                )
            except OSError as error:
                raise EndpointRefused(f"{self.name} cannot be started: {error.strerror}") from error
            self._silent_starts += 1
            self._process = process
            self._readers = [
                asyncio.create_task(self._read_answers(process)),
                asyncio.create_task(self._read_stderr(process)),
            ]
            return process

    async def _read_answers(self, process: Process) -> None:
        """Resolve pending exchanges until the program ends or writes anything but an answer."""
        assert process.stdout is not None
        failure = TransientError("connection", "the program ended")
        try:
            while line := await process.stdout.readline():
                raw = parse_object(line)
                number = raw.get("id")
                future = self._pending.get(number) if isinstance(number, int) else None
                if future is not None and not future.done():
                    self._silent_starts = 0
                    future.set_result({name: value for name, value in raw.items() if name != "id"})
        except TransientError as error:
            failure = error
        except ValueError:
            failure = TransientError("broken", f"the program wrote a line longer than {MAX_REPLY_BYTES} bytes")
        self._kill(process)
        await process.wait()
        for future in list(self._pending.values()):
            if not future.done():
                future.set_exception(TransientError(failure.kind, f"{failure}; {self._last_words()}"))

    async def _read_stderr(self, process: Process) -> None:
        assert process.stderr is not None
        with suppress(ValueError):  # a line longer than the limit
            while line := await process.stderr.readline():
                self._stderr.append(line.decode("utf-8", "replace").strip()[:MAX_QUOTE])

    def _last_words(self) -> str:
        return f"standard error: {' | '.join(self._stderr) or 'empty'}"

    def _kill(self, process: Process) -> None:
        with suppress(ProcessLookupError):
            process.kill()
