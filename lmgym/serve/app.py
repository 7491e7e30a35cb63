"""The application: one message form, by HTTP and by WebSocket.

`POST /v1/call` answers one message; `/v1/ws` answers one after the other, and ends the sessions that it opened when it
is gone. `GET /v1/tasks` says what can be opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect

from lmgym.backends import wire
from lmgym.serve.catalogue import Refusal
from lmgym.serve.clients import Client, Limits
from lmgym.serve.desk import Desk

STATUS = {"size": 413, "message": 400, "rate": 429, "limit": 429, "slow": 408}  # of a message as a whole
BEYOND = 1 << 20  # bytes of a message that is too large, which are not kept: closed upon them, it hears no answer
DECODER = msgspec.json.Decoder(wire.Asked)
ENCODER = msgspec.json.Encoder()


def application(desk: Desk) -> FastAPI:
    """Return what answers requests, once `Guard` has let them in."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        keepers = [asyncio.create_task(desk.reap()), asyncio.create_task(desk.lanes.watch())]
        yield
        for keeper in keepers:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
        desk.close()

    app = FastAPI(title="lmgym", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    @app.get(f"{wire.PATH}/tasks")
    async def tasks(request: Request) -> Response:
        try:
            _spend(_client(request), 1)
        except Refusal as refusal:
            return _response(wire.Answered(error=refusal.error))
        return _response({"tasks": desk.catalogue.listing(), "reveals": sorted(desk.catalogue.reveals)})

    @app.post(f"{wire.PATH}/call")
    async def call(request: Request) -> Response:
        try:
            raw = await _body(request, desk.limits)
            return _response(await answered(desk, _client(request), raw))
        except Refusal as refusal:
            return _response(wire.Answered(error=refusal.error))

    @app.websocket(f"{wire.PATH}/ws")
    async def talk(socket: WebSocket) -> None:
        await _talk(socket, desk)

    return app


async def answered(
    desk: Desk, client: Client, raw: bytes | str, connection: object | None = None
) -> wire.Said | wire.Answered:
    """Answer a message, or say why it is none."""
    number = 0
    try:
        try:
            message = DECODER.decode(raw)
        except wire.MALFORMED as error:
            _spend(client, 1)
            raise Refusal("message", f"no message of this server: {error}"[:300]) from error
        number = message.id
        if not 0 < len(message.calls) <= desk.limits.calls:
            raise Refusal("message", f"a message has 1 to {desk.limits.calls} calls; got {len(message.calls)}")
        _spend(client, len(message.calls))
        return wire.Said(await desk.answer(client, message.calls, connection), number)
    except Refusal as refusal:
        return wire.Answered(number, error=refusal.error)


async def _talk(socket: WebSocket, desk: Desk) -> None:
    """Answer the messages of a connection in their order."""
    client = _client(socket)
    if client.connections >= desk.limits.connections_per_client:
        most = f"a client has {desk.limits.connections_per_client} connections at most: close some"
        await socket.send_denial_response(_response(wire.Answered(error=wire.Error("limit", most, 10.0))))
        return
    connection = object()
    client.connections += 1
    try:
        await socket.accept()
        while True:
            event = await socket.receive()
            raw = event.get("text") or event.get("bytes") or b""
            if event["type"] == "websocket.disconnect":
                return
            said = await answered(desk, client, raw, connection)
            async with asyncio.timeout(desk.limits.slow):
                await socket.send_text(ENCODER.encode(said).decode())
    except (WebSocketDisconnect, TimeoutError):
        return  # nobody is there, or nobody listens
    finally:
        client.connections -= 1
        desk.leave(connection)


async def _body(request: Request, limits: Limits) -> bytes:
    """The body of a request, if it is short and comes in time. Raises Refusal."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.slow):
            async for part in request.stream():
                size += len(part)
                if size > limits.message + BEYOND:
                    break
                if size <= limits.message:
                    parts.append(part)
    except TimeoutError as error:
        raise Refusal("slow", f"a message takes {limits.slow:g} seconds at most to arrive") from error
    if size > limits.message:
        raise Refusal("size", f"a message has {limits.message} bytes at most")
    return b"".join(parts)


def _spend(client: Client, calls: int) -> None:
    if wait := client.spend(calls):
        raise Refusal("rate", f"a client makes {client.limits.rate:g} calls a second at most", round(wait, 3))


def _client(connection: Request | WebSocket) -> Client:
    found: Client = connection.scope["client of lmgym"]
    return found


def _response(content: object) -> Response:
    error = content.error if isinstance(content, wire.Answered) else None
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if error is not None and error.retry_after:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if error is not None and error.code in ("size", "slow"):
        headers["Connection"] = "close"
    status = 200 if error is None else STATUS.get(error.code, 400)
    return Response(ENCODER.encode(content), status, headers, "application/json")
