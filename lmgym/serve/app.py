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
from lmgym.serve.guard import CLIENT
from lmgym.serve.sessions import Sessions

STATUS = {"size": 413, "message": 400, "rate": 429, "limit": 429, "slow": 408}  # of a message as a whole
BEYOND = 1 << 20  # bytes of a message that is too large, which are not kept: closed upon them, it hears no answer
DECODER = msgspec.json.Decoder(wire.RequestMessage)
ENCODER = msgspec.json.Encoder()


def application(sessions: Sessions) -> FastAPI:
    """Return what answers requests, once `Guard` has let them in."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        keepers = [asyncio.create_task(sessions.reap()), asyncio.create_task(sessions.watch())]
        yield
        for keeper in keepers:
            keeper.cancel()
            with suppress(asyncio.CancelledError):
                await keeper
        sessions.close()

    app = FastAPI(title="lmgym", docs_url=None, redoc_url=None, openapi_url=None, lifespan=lifespan)

    @app.get(f"{wire.PATH}/tasks")
    async def tasks(request: Request) -> Response:
        try:
            _spend(_client(request), 1)
        except Refusal as refusal:
            return _response(wire.RawResponse(error=refusal.error))
        return _response({"tasks": sessions.catalogue.listing(), "reveals": sorted(sessions.catalogue.reveals)})

    @app.post(f"{wire.PATH}/call")
    async def call(request: Request) -> Response:
        try:
            raw = await _body(request, sessions.limits)
            return _response(await answered(sessions, _client(request), raw))
        except Refusal as refusal:
            return _response(wire.RawResponse(error=refusal.error))

    @app.websocket(f"{wire.PATH}/ws")
    async def talk(socket: WebSocket) -> None:
        await _talk(socket, sessions)

    return app


async def answered(
    sessions: Sessions, client: Client, raw: bytes | str, connection: object | None = None
) -> wire.ResponseMessage | wire.RawResponse:
    """Answer a message, or say why it is none."""
    number = 0
    try:
        try:
            message = DECODER.decode(raw)
        except wire.MALFORMED as error:
            _spend(client, 1)
            raise Refusal("message", f"no message of this server: {error}"[:300]) from error
        number = message.id
        if not 0 < len(message.calls) <= sessions.limits.calls:
            raise Refusal("message", f"a message has 1 to {sessions.limits.calls} calls; got {len(message.calls)}")
        _spend(client, len(message.calls))
        return wire.ResponseMessage(await sessions.answer(client, message.calls, connection), number)
    except Refusal as refusal:
        return wire.RawResponse(number, error=refusal.error)


async def _talk(socket: WebSocket, sessions: Sessions) -> None:
    """Answer the messages of a connection in their order."""
    client = _client(socket)
    if client.connections >= sessions.limits.connections_per_client:
        most = f"a client has {sessions.limits.connections_per_client} connections at most: close some"
        await socket.send_denial_response(_response(wire.RawResponse(error=wire.Error("limit", most, 10.0))))
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
            said = await answered(sessions, client, raw, connection)
            async with asyncio.timeout(sessions.limits.slow):
                await socket.send_text(ENCODER.encode(said).decode())
    except (WebSocketDisconnect, TimeoutError):
        return  # nobody is there, or nobody listens
    finally:
        client.connections -= 1
        sessions.leave(connection)


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
    client: Client = connection.scope[CLIENT]
    return client


def _response(content: object) -> Response:
    error = content.error if isinstance(content, wire.RawResponse) else None
    headers = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
    if error is not None and error.retry_after:
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    if error is not None and error.code in ("size", "slow"):
        headers["Connection"] = "close"
    status = 200 if error is None else STATUS.get(error.code, 400)
    return Response(ENCODER.encode(content), status, headers, "application/json")
