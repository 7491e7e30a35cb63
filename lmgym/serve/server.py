"""The server: a listening socket, and uvicorn with limits on connections and request times."""

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

CONNECTIONS = 1024  # open at once, of all clients


class Serving:
    """A listening socket with the application behind it."""

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
        """Listen on `host`; port 0 picks a free port. Raises InstanceError if that is not possible."""
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
                http=_with_head_timeout(limits.slow),
                ws="websockets-sansio",
                ws_max_size=limits.message,
                ws_per_message_deflate=False,  # a small compressed message could expand to a large one
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
        """Serve until the process is asked to stop."""
        self.server.run(sockets=[self.socket])

    @contextmanager
    def running(self) -> Iterator[Serving]:
        """Serve in a thread while the block runs."""
        thread = Thread(target=self.run, name="lmgym-serve", daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self.server.should_exit = True
            thread.join(30)


def _listening(host: str, port: int, slow: float) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # the explicit protocol makes asyncio disable Nagle's algorithm, which would delay each body by 40 ms
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux only: disconnect a peer that reads nothing
            listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(2000 * slow))
        listener.bind((host, port))
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise InstanceError(f"cannot listen on {host}, port {port}: {error.strerror}; try another --port") from error
    return listener


def _with_head_timeout(seconds: float) -> type[asyncio.Protocol]:
    """Return uvicorn's HTTP protocol with a limit on the time that the head of each request may take.

    The application limits the time of a body.
    """

    class HeadTimeoutProtocol(H11Protocol):
        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            if len(self.connections) > CONNECTIONS:
                transport.close()
            self.latest: object = None  # scope of the last complete request
            self.loop.call_later(seconds, self.give_up, None)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            scope = getattr(self, "scope", None)
            if self.conn.their_state is h11.IDLE and scope is not self.latest:  # the next head has begun
                self.latest = scope
                self.loop.call_later(seconds, self.give_up, scope)

        def give_up(self, scope: object) -> None:
            """Close the connection if no further request has arrived."""
            if getattr(self, "scope", None) is scope and not self.transport.is_closing():
                self.transport.close()

    return HeadTimeoutProtocol
