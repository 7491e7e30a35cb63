"""The client's end of a served environment: one connection, one session, and nothing raised that is not expected.

What cannot be otherwise, such as a task that is not served, is an InstanceError; everything that a network, a server or
a stranger in its place may do is a BackendError.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, suppress
from typing import TypeVar
from urllib.parse import urlsplit

import msgspec
from websockets.exceptions import InvalidStatus, InvalidURI, WebSocketException
from websockets.sync.client import ClientConnection, connect

from lmgym import hosts
from lmgym.backends import wire
from lmgym.errors import BackendError, InstanceError

LARGEST = 1 << 26  # bytes of a message from the server: an observation's text and pictures
ASKED_FOR = ("task", "option", "instance", "withheld")  # errors that asking again does not change
REFUSED = (400, 401, 403)  # HTTP
BROKEN = (OSError, EOFError, WebSocketException)  # what a connection may raise; a TimeoutError is an OSError

Shape = TypeVar("Shape")


class ServerSession:
    """A session with a server."""

    def __init__(self, url: str, token: str, call: wire.Open, *, timeout: float) -> None:
        """Open it. `timeout` is the seconds of one call."""
        self.timeout = timeout
        self._address = address(url)
        self._held = ExitStack()  # of the connection
        self._socket: ClientConnection | None = self._connected(token)
        self._number = 0
        self.name = ""
        self.opened = self.ask(call, wire.OpenAnswer)
        self.name = self.opened.session

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._socket is not None

    def ask(self, call: wire.AnyCall, shape: type[Shape]) -> Shape:
        """Make a call and return its answer; one that comes too fast is made again when the server says so."""
        limit = time.monotonic() + self.timeout
        while True:
            answered = self._exchanged(wire.RequestMessage([call], self._next()), limit)
            answer = answered.answers[0] if len(answered.answers) == 1 else None
            error = answered.error or (None if answer is None else _refused(answer))
            if error is None:
                return self._read(answer, shape)
            if error.code != "rate" or time.monotonic() + error.retry_after > limit:
                raise self._raised(error)
            time.sleep(max(error.retry_after, 0.001))

    def malformed(self, why: str) -> BackendError:
        """End a session whose server says what cannot be, and return the error of it."""
        self.close()
        return BackendError(f"the server at {self._address} does not speak as lmgym does: {why[:200]}")

    def close(self) -> None:
        """End it; the server notices by itself."""
        self._socket = None
        with suppress(*BROKEN):
            self._held.close()

    def _connected(self, token: str) -> ClientConnection:
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise InstanceError("a token has ASCII characters and no spaces")
        headers = {"Authorization": f"Bearer {token}"}
        local = hosts.is_loopback(urlsplit(self._address).hostname or "")
        try:
            return self._held.enter_context(
                connect(
                    self._address,
                    additional_headers=headers,
                    compression=None,
                    max_size=LARGEST,
                    open_timeout=self.timeout,
                    close_timeout=1,
                    user_agent_header="lmgym",
                    proxy=None if local else True,
                )
            )
        except InvalidStatus as error:
            status = error.response.status_code
            if status in REFUSED:
                why = {401: f"the token is wrong or missing: set {wire.TOKEN}"}.get(status, "it does not know us")
                raise InstanceError(f"the server at {self._address} refuses (HTTP {status}): {why}") from error
            raise BackendError(f"the server at {self._address} answers HTTP {status}") from error
        except InvalidURI as error:
            raise InstanceError(f"no address of a server: {self._address}") from error
        except (*BROKEN, ValueError) as error:
            raise BackendError(f"the server at {self._address} cannot be reached: {error}") from error

    def _exchanged(self, asked: wire.RequestMessage, limit: float) -> wire.RawResponse:
        """Send a message and take what is said to it."""
        if self._socket is None:
            raise BackendError(f"the session at {self._address} is over; open another")
        try:
            said = msgspec.json.encode(asked)
        except (OverflowError, RecursionError, TypeError, ValueError) as error:
            raise InstanceError(f"a server cannot be told this: {error}") from error
        try:
            self._socket.send(said, text=True)
            raw = self._socket.recv(timeout=max(limit - time.monotonic(), 0.0), decode=False)
        except BROKEN as error:
            self.close()
            why = f"nothing came within {self.timeout:g} seconds" if isinstance(error, TimeoutError) else str(error)
            raise BackendError(f"the connection to {self._address} is lost: {why}") from error
        answered = self._read(raw, wire.RawResponse)
        if answered.id != asked.id or (answered.error is None) != (len(answered.answers) == 1):
            raise self.malformed("an answer to something else")
        return answered

    def _read(self, raw: bytes | msgspec.Raw | None, shape: type[Shape]) -> Shape:
        try:
            return wire.read(b"" if raw is None else raw, shape)
        except wire.MALFORMED as error:
            raise self.malformed(str(error)) from error

    def _raised(self, error: wire.Error) -> InstanceError | BackendError:
        """What an error of the server is here."""
        words = f"the server at {self._address} says: {error.message[:1000]}"
        if error.code in ASKED_FOR:
            if not self.name:  # nothing was opened
                self.close()
            return InstanceError(words)
        self.close()
        return BackendError(words)

    def _next(self) -> int:
        self._number += 1
        return self._number


def address(url: str) -> str:
    """The WebSocket of a server's URL. Raises InstanceError where it is none, or holds a password."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError as error:
        raise InstanceError(f"no address of a server: {url!r} ({error})") from error
    scheme = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}.get(parts.scheme)
    if scheme is None or not parts.hostname or parts.query or parts.fragment:
        raise InstanceError(f"a server's url is http(s)://HOST:PORT; got {url!r}")
    if parts.username is not None or parts.password is not None:
        raise InstanceError(f"no password may stand in a url: set {wire.TOKEN}")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{wire.PATH}/ws"


def server(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of a server's URL: who hears what is sent there. Raises InstanceError as `address` does."""
    parts = urlsplit(address(url))
    return parts.scheme, parts.hostname or "", parts.port or {"ws": 80, "wss": 443}[parts.scheme]


def _refused(answer: msgspec.Raw) -> wire.Error | None:
    """Why there is no answer, if there is none."""
    try:
        return wire.read(answer, wire.ErrorAnswer).error
    except wire.MALFORMED:
        return None
