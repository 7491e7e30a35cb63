"""A proxy that confines a browser context to a task's own sites.

Chromium sends everything that a context loads (pages, redirects, workers, sockets) through its HTTP proxy. The gate is
that proxy: it serves the sites that live in this process, forwards requests to the real sites that a task names, and
refuses and counts all others. It resolves no other host name.
"""

from __future__ import annotations

import asyncio
import contextlib
import mimetypes
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lmgym.errors import InstanceError

HEAD = 1 << 16  # bytes of a request's head at most
BODY = 1 << 24  # bytes of a request's body at most
CHUNK = 1 << 16  # bytes passed on at a time
EMPTY = "/.lmgym/empty"  # path of an empty page on every site served here
PORTS = {"http": 80, "https": 443}
BROKEN = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)  # bugs of a site


@dataclass(frozen=True)
class Request:
    """A page's request to a site."""

    method: str
    path: str  # with its query
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""


@dataclass(frozen=True)
class Response:
    """A site's answer."""

    body: bytes = b""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


Site = Callable[[Request], Response]


@dataclass(frozen=True)
class Sites:
    """The sites that a context may load, by origin ("http://shop.test")."""

    served: Mapping[str, Site] = field(default_factory=dict)  # answered in this process
    passed: frozenset[str] = frozenset()  # reached over the network, as they are
    stored: Mapping[str, Any] | None = None  # cookies and local storage to begin with, as Playwright keeps them

    def __post_init__(self) -> None:
        for name in (*self.served, *self.passed):
            if origin(name) != name:
                raise InstanceError(f"a site is named by its origin, such as http://shop.test; got {name!r}")
        if secure := [name for name in self.served if not name.startswith("http://")]:
            raise InstanceError(f"a site served here is an http:// one; got {secure[0]!r}")

    def allow(self, url: str) -> bool:
        """Return True if a page may be loaded from `url`."""
        return url == "about:blank" or origin(url) in self.served or origin(url) in self.passed


def origin(url: str) -> str:
    """Return scheme, host and port of an http(s) address; "" for any other."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in PORTS or not parts.hostname:
        return ""
    suffix = "" if port in (None, PORTS[parts.scheme]) else f":{port}"
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{suffix}"


def folder(path: Path) -> Site:
    """Return a site that serves the files below `path`."""
    return partial(_serve_file, path.resolve())


def _serve_file(root: Path, request: Request) -> Response:
    name = unquote(urlsplit(request.path).path).lstrip("/")
    if "\0" in name or len(name) >= 1000:
        return Response(b"no such file", "text/plain", 404)
    return _read_file(root, name)


@lru_cache(maxsize=512)
def _read_file(root: Path, name: str) -> Response:
    target = (root / name).resolve()
    if not target.is_relative_to(root) or not target.is_file():
        return Response(b"no such file", "text/plain", 404)
    kind = mimetypes.guess_type(target.name)[0] or "application/octet-stream"
    kind += "; charset=utf-8" if kind.startswith("text/") or kind.endswith("javascript") else ""
    return Response(target.read_bytes(), kind, headers={"Cache-Control": "max-age=86400"})


class Gate:
    """One context's proxy, on a loopback port."""

    def __init__(self, sites: Sites) -> None:
        self.sites = sites
        self.blocked: Counter[str] = Counter()  # what was refused, by origin
        self.in_flight = 0  # requests that are not answered yet
        self.settled = asyncio.Event()  # set whenever a request was answered
        self.broken: Exception | None = None  # what a site of this process raised
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> int:
        """Listen, and return the port."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=HEAD)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Stop listening and drop all connections."""
        if self._server is not None:
            self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one connection's requests until it ends."""
        over = contextlib.suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError)
        with over, contextlib.closing(writer):
            while (head := await reader.readuntil(b"\r\n\r\n")) and await self._answer(head, reader, writer):
                pass

    async def _answer(self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return True if the connection stays open."""
        first, *lines = head.decode("latin-1").rstrip("\r\n").split("\r\n")
        method, target, _ = first.split(" ", 2)
        headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if method == "CONNECT":
            await self._tunnel(target, reader, writer)
            return False
        self.in_flight += 1
        try:
            if "transfer-encoding" in headers or int(headers.get("content-length", 0)) > BODY:
                return await _say(writer, Response(b"too much", "text/plain", 413))
            body = await reader.readexactly(int(headers.get("content-length", 0)))
            parts = urlsplit(target)
            path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
            return await self._forward(target, Request(method, path, headers, body), writer)
        finally:
            self.in_flight -= 1
            self.settled.set()

    async def _forward(self, target: str, request: Request, writer: asyncio.StreamWriter) -> bool:
        place = origin(target)
        if (site := self.sites.served.get(place)) is not None:
            if request.path == EMPTY:
                return await _say(writer, Response(b"<!doctype html>"))
            try:
                response = site(request)
            except BROKEN as error:  # handed over: the task's own thread raises it
                self.broken = error
                response = Response(f"{type(error).__name__}".encode(), "text/plain", 500)
            return await _say(writer, response)
        if place in self.sites.passed:
            await _fetch(target, request, writer)
            return False
        self.blocked[place or "unreadable address"] += 1
        return await _say(writer, Response(b"blocked", "text/plain", 403))

    async def _tunnel(self, target: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tunnel to a real https site; refuse WebSockets, which arrive in the same way."""
        host, _, port = target.rpartition(":")
        secure, plain = origin(f"https://{target}"), origin(f"http://{target}")
        if secure not in self.sites.passed:
            self.blocked[secure if port == "443" else f"websocket {plain}"] += 1
            await _say(writer, Response(b"blocked", "text/plain", 403))
            return
        there, back = await asyncio.open_connection(host.strip("[]"), int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with contextlib.closing(back):
            await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def _say(writer: asyncio.StreamWriter, response: Response) -> bool:
    headers = {"Content-Type": response.kind, "Content-Length": str(len(response.body)), **response.headers}
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items() if not {"\r", "\n"} & set(value))
    writer.write(f"HTTP/1.1 {response.status} -\r\n{lines}\r\n".encode("latin-1", "replace") + response.body)
    await writer.drain()
    return True


async def _fetch(target: str, request: Request, writer: asyncio.StreamWriter) -> None:
    """Forward a request to a real site and copy its answer back."""
    parts = urlsplit(target)
    try:
        there, back = await asyncio.open_connection(parts.hostname, parts.port or PORTS[parts.scheme])
    except OSError as error:
        await _say(writer, Response(f"{parts.netloc}: {error}".encode(), "text/plain", 502))
        return
    with contextlib.closing(back):
        hop = ("proxy-connection", "connection", "keep-alive", "proxy-authorization")
        lines = "".join(f"{name}: {value}\r\n" for name, value in request.headers.items() if name not in hop)
        head = f"{request.method} {request.path} HTTP/1.1\r\n{lines}connection: close\r\n\r\n"
        back.write(head.encode("latin-1") + request.body)
        await back.drain()
        await _copy(there, writer)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    with contextlib.suppress(OSError):
        writer.write_eof()
