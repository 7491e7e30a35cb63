"""Middleware in front of the application: host names, page origins, CORS and tokens, checked before a body is read."""

from __future__ import annotations

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from lmgym.serve.clients import Clients

HEADERS = {
    "Cache-Control": "no-store",
    "Connection": "close",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
CLIENT = "lmgym.client"  # key of the client in a request's scope


def protect(app: FastAPI, clients: Clients, *, hosts: Sequence[str], origins: Sequence[str]) -> None:
    """Let in requests with a client's token that are addressed to one of `hosts`, and web pages of `origins` only."""
    app.add_middleware(TokenMiddleware, clients=clients)
    app.add_middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=("GET", "POST"),
        allow_headers=("Authorization", "Content-Type"),
        expose_headers=("Retry-After",),
    )
    app.add_middleware(OriginMiddleware, allowed=origins)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False)  # added last, checked first


class OriginMiddleware:
    """Refuses web pages, except those of allowed origins; programs send no Origin."""

    def __init__(self, app: ASGIApp, *, allowed: Sequence[str]) -> None:
        self.app, self.allowed = app, frozenset(allowed)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 403."""
        if scope["type"] == "lifespan" or self.allowed.issuperset(Headers(scope=scope).getlist("origin")):
            await self.app(scope, receive, send)
        else:
            await _refusal(403, "origin", "pages of this origin may not use this server")(scope, receive, send)


class TokenMiddleware:
    """Refuses requests without a client's bearer token, and notes the client in the scope of the others."""

    def __init__(self, app: ASGIApp, *, clients: Clients) -> None:
        self.app, self.clients = app, clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or answer 401."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        values = Headers(scope=scope).getlist("authorization")
        scheme, _, token = values[0].partition(" ") if len(values) == 1 else ("", "", "")
        client = self.clients.of(token.strip().encode("latin-1")) if scheme.lower() == "bearer" else None
        if client is None:
            response = _refusal(401, "token", "the token is missing or wrong: send Authorization: Bearer TOKEN")
            response.headers["WWW-Authenticate"] = "Bearer"
            await response(scope, receive, send)
        else:
            scope[CLIENT] = client
            await self.app(scope, receive, send)


def _refusal(status: int, code: str, message: str) -> JSONResponse:
    return JSONResponse({"error": {"code": code, "message": message}}, status, HEADERS)
