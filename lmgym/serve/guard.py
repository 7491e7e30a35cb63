"""Who is let in at all: a request's Host, Origin and token, looked at before its body is read."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec

from lmgym import hosts
from lmgym.backends import wire
from lmgym.serve.clients import Clients

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Headers = dict[bytes, list[bytes]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEADERS = [
    (b"content-type", b"application/json"),
    (b"x-content-type-options", b"nosniff"),
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
]


PREFLIGHT = [
    (b"access-control-allow-methods", b"GET, POST"),
    (b"access-control-allow-headers", b"authorization, content-type"),
    (b"access-control-max-age", b"600"),
]


@dataclass(frozen=True, kw_only=True)
class Address:
    """Where a server listens, and what else it is called."""

    host: str
    bound: str  # the number of `host`
    port: int
    names: frozenset[str] = frozenset()  # Host headers beside its own, as a proxy in front of it sends them
    origins: frozenset[str] = frozenset()  # pages that may ask; programs send no Origin


def _headers(scope: Scope) -> Headers:
    found: Headers = {}
    for name, value in scope["headers"]:
        found.setdefault(name, []).append(value)
    return found


def _preflight(scope: Scope, found: Headers) -> bool:
    """Whether a browser asks, for a page and without its token, if the page may ask."""
    asks = b"origin" in found and b"access-control-request-method" in found
    return asks and scope["type"] == "http" and scope["method"] == "OPTIONS"


async def _drained(receive: Receive, *, most: int = 1 << 20, seconds: float = 1.0) -> None:
    """Take the body of a request that is refused, unread: closed upon it, the answer might be lost on its way."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            while most > 0:
                event = await receive()
                most -= len(event.get("body", b"")) + 1
                if not event.get("more_body"):
                    return


class Guard:
    """The application behind its door."""

    def __init__(self, app: App, address: Address, clients: Clients) -> None:
        self.app, self.address, self.clients = app, address, clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request in, with its client's name on it, or answer why not."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        found = _headers(scope)
        send = self._shared(found, send)
        refusal = self._stranger(found)
        if refusal is None and _preflight(scope, found):
            await send({"type": "http.response.start", "status": 204, "headers": PREFLIGHT})
            await send({"type": "http.response.body"})
            return
        refusal = refusal or self._nobody(scope, found)
        if refusal is None:
            await self.app(scope, receive, send)
            return
        status, error = refusal
        if scope["type"] == "http":
            await _drained(receive)
        kind = "http.response" if scope["type"] == "http" else "websocket.http.response"
        content = msgspec.json.encode(wire.RawResponse(error=error))
        length = (b"content-length", str(len(content)).encode())
        headers = [*HEADERS, length, (b"connection", b"close")]
        if status == 401:
            headers.append((b"www-authenticate", b"Bearer"))
        await send({"type": f"{kind}.start", "status": status, "headers": headers})
        await send({"type": f"{kind}.body", "body": content})

    def _shared(self, found: Headers, send: Send) -> Send:
        """Answer so that a page of an allowed origin may read it; browsers give it to no other."""
        origin = found.get(b"origin", [b""])[0]
        if origin.decode("latin-1") not in self.address.origins:
            return send
        more = [
            (b"access-control-allow-origin", origin),
            (b"access-control-expose-headers", b"retry-after"),
            (b"vary", b"origin"),
        ]

        async def shared(event: MutableMapping[str, Any]) -> None:
            if event["type"] == "http.response.start":
                event = {**event, "headers": [*event.get("headers", ()), *more]}
            await send(event)

        return shared

    def _stranger(self, found: Headers) -> tuple[int, wire.Error] | None:
        """Why nobody may ask from there, by this name."""
        asked = found.get(b"host", [])
        if len(asked) != 1 or not self._knows(asked[0]):
            return 421, wire.Error("host", "this server has another name")
        if any(origin.decode("latin-1") not in self.address.origins for origin in found.get(b"origin", [])):
            return 403, wire.Error("origin", "pages of this origin may not ask here")
        return None

    def _nobody(self, scope: Scope, found: Headers) -> tuple[int, wire.Error] | None:
        """Why a request is no client's; a client's has its name put on."""
        said = found.get(b"authorization", [])
        kind, _, token = said[0].partition(b" ") if len(said) == 1 else (b"", b"", b"")
        client = self.clients.of(token.strip()) if kind.lower() == b"bearer" else None
        if client is None:
            return 401, wire.Error("token", "the token is missing or wrong: Authorization: Bearer TOKEN")
        scope["client of lmgym"] = client
        return None

    def _knows(self, asked: bytes) -> bool:
        at = self.address
        return hosts.knows(asked.decode("latin-1"), host=at.host, bound=at.bound, port=at.port, names=at.names)
