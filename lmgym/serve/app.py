"""The application: `POST /v1/call` answers one message, `/v1/ws` a sequence of messages, `GET /v1/tasks` lists tasks.

The sessions that were opened over a WebSocket end with it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from fastapi import FastAPI, Request, Response, WebSocket, WebSocketDisconnect

from lmgym.backends import wire
from lmgym.serve.catalogue import Refusal
from lmgym.serve.clients import Client, Limits
from lmgym.serve.guard import CLIENT
from lmgym.serve.sessions import Sessions

STATUS = {"size": 413, "message": 400, "rate": 429, "limit": 429, "slow": 408}  # HTTP status of a refused message
EXCESS = 1 << 20  # bytes of an oversized body that are read and dropped, so that the client receives the answer
DECODER = msgspec.json.Decoder(wire.RequestMessage)
ENCODER = msgspec.json.Encoder()


def application(sessions: Sessions) -> FastAPI:
    """Make the application; `guard.protect` decides which requests reach it."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(sessions.reap()), asyncio.create_task(sessions.watch())]
        yield
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
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
            return _response(await respond(sessions, _client(request), raw))
        except Refusal as refusal:
            return _response(wire.RawResponse(error=refusal.error))

    @app.websocket(f"{wire.PATH}/ws")
    async def connect(socket: WebSocket) -> None:
        """Answer the messages of a connection in order."""
        client = _client(socket)
        if client.connections >= sessions.limits.connections_per_client:
            message = f"a client has at most {sessions.limits.connections_per_client} connections; close some"
            await socket.send_denial_response(_response(wire.RawResponse(error=wire.Error("limit", message, 10.0))))
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
                response = await respond(sessions, client, raw, connection)
                async with asyncio.timeout(sessions.limits.slow):
                    await socket.send_text(ENCODER.encode(response).decode())
        except (WebSocketDisconnect, TimeoutError):
            return  # the client is gone, or does not read
        finally:
            client.connections -= 1
            sessions.leave(connection)

    return app


async def respond(
    sessions: Sessions, client: Client, raw: bytes | str, connection: object | None = None
) -> wire.ResponseMessage | wire.RawResponse:
    """Answer a message, or return why it is refused."""
    number = 0
    try:
        try:
            message = DECODER.decode(raw)
        except wire.MALFORMED as error:
            _spend(client, 1)
            raise Refusal("message", f"malformed message: {error}"[:300]) from error
        number = message.id
        if not 0 < len(message.calls) <= sessions.limits.calls:
            raise Refusal("message", f"a message needs 1 to {sessions.limits.calls} calls; got {len(message.calls)}")
        _spend(client, len(message.calls))
        return wire.ResponseMessage(await sessions.answer(client, message.calls, connection), number)
    except Refusal as refusal:
        return wire.RawResponse(number, error=refusal.error)


async def _body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request. Raises Refusal if it is too long or too slow."""
    parts, size = [], 0
    try:
        async with asyncio.timeout(limits.slow):
            async for part in request.stream():
                size += len(part)
                if size > limits.message + EXCESS:
                    break
                if size <= limits.message:
                    parts.append(part)
    except TimeoutError as error:
        raise Refusal("slow", f"a message must arrive within {limits.slow:g} seconds") from error
    if size > limits.message:
        raise Refusal("size", f"a message may have at most {limits.message} bytes")
    return b"".join(parts)


def _spend(client: Client, calls: int) -> None:
    if wait := client.spend(calls):
        raise Refusal("rate", f"a client may make at most {client.limits.rate:g} calls per second", round(wait, 3))


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
