"""`cmd:PROGRAM`: a program that reads requests as JSON lines and writes answers as JSON lines, in any order.

It is told `{"id", "messages", "tools", "temperature", "max_tokens", "draw"}` and says `{"id", "text"}`, optionally
with `thinking`, `tool_calls` as endpoints have them, `finish` ("stop" or "length") and `usage` ("in", "out", "cost");
or `{"id", "error"}`. One that dies, hangs or talks nonsense is started again.
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
from typing import Any

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints import chat
from lmgym.policy.endpoints.calls import Raw, Refused, Said, Trouble
from lmgym.policy.endpoints.openai import Asking
from lmgym.policy.tools import functions, split_thinking

LONGEST = 1 << 26  # bytes of a line
FAREWELL = 2.0  # seconds for the program to end by itself
STILLBORN = 3  # starts in a row without one answer, after which the program is given up


class Command:
    """A program of anybody's."""

    def __init__(self, line: str, *, asking: Asking, pictures: chat.Pictures) -> None:
        """`line` is split as a shell would; it is run without one."""
        self.name = f"cmd:{line}"
        try:
            self._words = shlex.split(line)
        except ValueError as error:
            raise PolicyError(f"cmd:{line} cannot be split into words: {error}") from error
        if not self._words:
            raise PolicyError("cmd: needs a program, such as cmd:./player.py or 'cmd:node player.js'")
        self._asking = asking
        self._pictures = pictures
        self._numbers = itertools.count()
        self._waiting: dict[int, asyncio.Future[Raw]] = {}
        self._process: Process | None = None
        self._readers: list[asyncio.Task[None]] = []
        self._starting = asyncio.Lock()
        self._complaints: deque[str] = deque(maxlen=5)  # the last lines on standard error
        self._silent = 0  # starts since the last answer

    def body(self, conversation: Conversation) -> dict[str, Any]:
        """The request in full; pictures by their digests."""
        messages = [
            {"role": message.role, "content": message.text}
            | ({chat.PICTURE: list(message.images)} if message.images else {})
            for message in conversation.messages
        ]
        return self._asking.body(
            {
                "messages": messages,
                "tools": functions(conversation.tools) or None,
                "temperature": self._asking.temperature,
                "max_tokens": conversation.max_tokens or self._asking.max_tokens,
                "draw": list(conversation.noise),
            }
        )

    async def send(self, body: Mapping[str, Any]) -> Raw:
        """Ask the program. Whoever stops waiting kills it: it hangs."""
        number = next(self._numbers)
        line = json.dumps({"id": number, **body, "messages": [self._sent(each) for each in body["messages"]]})
        process = await self._running()
        assert process.stdin is not None
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        try:
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()
            return await future
        except (BrokenPipeError, ConnectionResetError):
            raise Trouble("connection", f"the program ended: {self._last_words()}") from None
        except asyncio.CancelledError:
            self._kill(process)
            raise
        finally:
            self._waiting.pop(number, None)
            if future.done() and not future.cancelled():
                future.exception()  # taken note of

    def read(self, raw: Raw) -> Said:
        """What an answer says."""
        if raw.get("error"):
            raise Trouble("server", f"the program says: {raw['error']}")
        thinking, text = split_thinking(raw["text"]) if isinstance(raw.get("text"), str) else ("", None)
        message = {"content": text, "tool_calls": raw.get("tool_calls"), "reasoning": raw.get("thinking") or thinking}
        if text is None and not message["tool_calls"]:
            raise Trouble("broken", f"the program's answer has no text: {str(raw)[: chat.LONG]}")
        said = chat.read({"choices": [{"message": message, "finish_reason": raw.get("finish")}]})
        usage = raw.get("usage")
        return Said(
            text=said.text,
            thinking=said.thinking,
            finish=said.finish,
            usage={**said.usage, **(_usage(usage) if isinstance(usage, Mapping) else {})},
        )

    async def close(self) -> None:
        """End the program, and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), FAREWELL)
        except TimeoutError:
            self._kill(process)
            await process.wait()
        await asyncio.gather(*self._readers, return_exceptions=True)

    def _sent(self, message: Mapping[str, Any]) -> dict[str, Any]:
        pictures = [chat.encoded(digest, self._pictures) for digest in message.get(chat.PICTURE, ())]
        sent = {name: value for name, value in message.items() if name != chat.PICTURE}
        return {**sent, "images": pictures} if pictures else sent

    async def _running(self) -> Process:
        async with self._starting:
            if self._process is not None and self._process.returncode is None:
                return self._process
            await asyncio.gather(*self._readers, return_exceptions=True)
            if self._silent >= STILLBORN:
                raise Refused(f"the program ended {STILLBORN} times without an answer: {self._last_words()}")
            try:
                process = await asyncio.create_subprocess_exec(
                    *self._words, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=LONGEST
                )
            except OSError as error:
                raise Refused(f"{self.name} cannot be started: {error.strerror}") from error
            self._silent += 1
            self._process = process
            self._readers = [asyncio.create_task(self._hear(process)), asyncio.create_task(self._overhear(process))]
            return process

    async def _hear(self, process: Process) -> None:
        """Take the program's answers until it ends, or until it says what is none."""
        assert process.stdout is not None
        trouble = Trouble("connection", "the program ended")
        try:
            while line := await process.stdout.readline():
                raw = chat.parse_object(line)
                number = raw.get("id")
                future = self._waiting.get(number) if isinstance(number, int) else None
                if future is not None and not future.done():
                    self._silent = 0
                    future.set_result({name: value for name, value in raw.items() if name != "id"})
        except Trouble as error:
            trouble = error
        except ValueError:
            trouble = Trouble("broken", f"the program wrote a line longer than {LONGEST} bytes")
        self._kill(process)
        await process.wait()
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(Trouble(trouble.ailment, f"{trouble}; its last words: {self._last_words()}"))

    async def _overhear(self, process: Process) -> None:
        assert process.stderr is not None
        with suppress(ValueError):  # a line too long to keep
            while line := await process.stderr.readline():
                self._complaints.append(line.decode("utf-8", "replace").strip()[: chat.LONG])

    def _last_words(self) -> str:
        return " | ".join(self._complaints) or "none"

    def _kill(self, process: Process) -> None:
        with suppress(ProcessLookupError):
            process.kill()


def _usage(usage: Mapping[str, Any]) -> dict[str, Any]:
    """What the program counts, as far as these are figures."""
    cost = usage.get("cost")
    known = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 <= cost < math.inf
    counted = chat.tokens(usage, **{name: name for name in ("in", "out", "cached", "thinking")})
    return {**counted, "cost": cost} if known else dict(counted)
