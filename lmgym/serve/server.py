"""A server that listens, and its end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Thread

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lmgym import hosts
from lmgym.errors import InstanceError
from lmgym.serve.app import application
from lmgym.serve.catalogue import Catalogue
from lmgym.serve.clients import Clients, Limits
from lmgym.serve.guard import protect
from lmgym.serve.sessions import Sessions

CONNECTIONS = 1024  # that are open at once, whoever has them


class Serving:
    """A socket and what answers on it."""

    def __init__(
        self,
        catalogue: Catalogue,
        tokens: Sequence[str],
        *,
        limits: Limits | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        names: Sequence[str] = (),
        origins: Sequence[str] = (),
        processes: int | None = None,
    ) -> None:
        """Listen on `host`; port 0 takes a free one. Raises InstanceError where the address cannot be had."""
        limits = limits or Limits()
        if hosts.is_wildcard(host) and not names:
            raise InstanceError(f"--host {host} needs --name HOST: a host name or address that clients connect to")
        self.clients = Clients(tokens, limits)
        self.sessions = Sessions(catalogue, limits, processes=processes)
        self.socket = _listening(host, port, limits.slow)
        bound, self.port = self.socket.getsockname()[:2]
        self.url = f"http://{hosts.in_address(host)}:{self.port}"
        app = application(self.sessions)
        protect(app, self.clients, hosts=[*hosts.own_names(host, bound), *names], origins=origins)
        self.server = uvicorn.Server(
            uvicorn.Config(
                app,
                http=_patient(limits.slow),
                ws="websockets-sansio",
                ws_max_size=limits.message,
                ws_per_message_deflate=False,  # a small message may not become a large one
                lifespan="on",
                log_config=None,
                access_log=False,
                proxy_headers=False,
                server_header=False,
                limit_concurrency=CONNECTIONS,
                timeout_graceful_shutdown=5,
            )
        )

    def run(self) -> None:
        """Answer until the end is asked for."""
        self.server.run(sockets=[self.socket])

    @contextmanager
    def running(self) -> Iterator[Serving]:
        """Answer in a thread, for as long as the block lasts."""
        thread = Thread(target=self.run, name="lmgym-serve", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.should_exit = True
            thread.join(30)


def _listening(host: str, port: int, slow: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # the protocol by name: else asyncio leaves Nagle's algorithm on, and a body waits 40 ms for its head's ACK
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if patience := getattr(
            socket, "TCP_USER_TIMEOUT", None
        ):  # a peer that takes nothing is cut off, where Linux is
            listener.setsockopt(socket.IPPROTO_TCP, patience, int(2000 * slow))
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise InstanceError(f"cannot listen on {host}, port {port}: {error.strerror}; try another --port") from error
    return listener


def _patient(seconds: float) -> type[asyncio.Protocol]:
    """HTTP for connections whose requests, each, must come in this time: uvicorn itself would wait for ever.

    A body's time is the application's; here it is that of the head.
    """

    class Patient(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > CONNECTIONS:
                transport.close()
            self.latest: object = None  # scope of the request after which another one is waited for
            self.loop.call_later(seconds, self.give_up, None)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            scope = getattr(self, "scope", None)
            if self.conn.their_state is h11.IDLE and scope is not self.latest:  # a part of the next head
                self.latest = scope
                self.loop.call_later(seconds, self.give_up, scope)

        def give_up(self, scope: object) -> None:
            """Close where nothing that can be answered has come since."""
            if getattr(self, "scope", None) is scope and not self.transport.is_closing():
                self.transport.close()

    return Patient
