"""The client of a served environment: one WebSocket with one session.

A request that the server can never accept, such as an unknown task, raises InstanceError. Any failure of the network or
the server, malicious answers included, raises BackendError.
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

MAX_MESSAGE = 1 << 26  # bytes of a response: an observation's text and pictures
PERMANENT = ("task", "option", "instance", "withheld")  # error codes that a retry does not change
REFUSED = (400, 401, 403)  # HTTP status: foreign host name, wrong token, foreign origin
CONNECTION_ERRORS = (OSError, EOFError, WebSocketException)  # a TimeoutError is an OSError

Shape = TypeVar("Shape")


class ServerSession:
    """A session on a server."""

    def __init__(self, url: str, token: str, call: wire.Open, *, timeout: float) -> None:
        """Connect and open a session. `timeout` is in seconds per call."""
        self.timeout = timeout
        self._address = address(url)
        self._exit = ExitStack()  # closes the connection
        self._socket: ClientConnection | None = self._connect(token)
        self._requests = 0
        self.name = ""
        self.opened = self.ask(call, wire.OpenAnswer)
        self.name = self.opened.session

    @property
    def alive(self) -> bool:
        """True until the session is closed or fails."""
        return self._socket is not None

    def ask(self, call: wire.AnyCall, shape: type[Shape]) -> Shape:
        """Make a call and return its answer; wait and retry while the server limits the rate."""
        limit = time.monotonic() + self.timeout
        while True:
            self._requests += 1
            response = self._exchange(wire.RequestMessage([call], self._requests), limit)
            error = response.error or _error_in(response.answers[0])
            if error is None:
                return self._decode(response.answers[0], shape)
            if error.code != "rate" or time.monotonic() + error.retry_after > limit:
                raise self._error_of(error)
            time.sleep(max(error.retry_after, 0.001))

    def malformed(self, reason: str) -> BackendError:
        """End the session after an impossible answer, and return the error to raise."""
        self.close()
        return BackendError(f"the server at {self._address} sent an invalid answer: {reason[:200]}")

    def close(self) -> None:
        """Close the connection, which ends the session on the server."""
        self._socket = None
        with suppress(*CONNECTION_ERRORS):
            self._exit.close()

    def _connect(self, token: str) -> ClientConnection:
        if not (token.isascii() and token.isprintable()) or " " in token:
            raise InstanceError("a token must have ASCII characters only, and no spaces")
        headers = {"Authorization": f"Bearer {token}"}
        local = hosts.is_loopback(urlsplit(self._address).hostname or "")
        try:
            return self._exit.enter_context(
                connect(
                    self._address,
                    additional_headers=headers,
                    compression=None,
                    max_size=MAX_MESSAGE,
                    open_timeout=self.timeout,
                    close_timeout=1,
                    user_agent_header="lmgym",
                    proxy=None if local else True,
                )
            )
        except InvalidStatus as error:
            status = error.response.status_code
            if status in REFUSED:
                reason = {
                    400: "it has another host name",
                    401: f"the token is wrong or missing; set {wire.TOKEN}",
                }.get(status, "it does not accept this client")
                raise InstanceError(f"the server at {self._address} refused (HTTP {status}): {reason}") from error
            raise BackendError(f"the server at {self._address} answered HTTP {status}") from error
        except InvalidURI as error:
            raise InstanceError(f"not the URL of a server: {self._address}") from error
        except (*CONNECTION_ERRORS, ValueError) as error:
            raise BackendError(f"the server at {self._address} is unreachable: {error}") from error

    def _exchange(self, request: wire.RequestMessage, limit: float) -> wire.RawResponse:
        """Send a request of one call and return the response, which has one answer or an error."""
        if self._socket is None:
            raise BackendError(f"the session at {self._address} is closed; open another")
        try:
            content = msgspec.json.encode(request)
        except (OverflowError, RecursionError, TypeError, ValueError) as error:
            raise InstanceError(f"this call cannot be sent as JSON: {error}") from error
        try:
            self._socket.send(content, text=True)
            raw = self._socket.recv(timeout=max(limit - time.monotonic(), 0.0), decode=False)
        except CONNECTION_ERRORS as error:
            self.close()
            reason = f"no answer within {self.timeout:g} seconds" if isinstance(error, TimeoutError) else str(error)
            raise BackendError(f"the connection to {self._address} was lost: {reason}") from error
        response = self._decode(raw, wire.RawResponse)
        if response.id != request.id or (response.error is None) != (len(response.answers) == 1):
            raise self.malformed("a response to another request")
        return response

    def _decode(self, raw: bytes | msgspec.Raw, shape: type[Shape]) -> Shape:
        try:
            return wire.read(raw, shape)
        except wire.MALFORMED as error:
            raise self.malformed(str(error)) from error

    def _error_of(self, error: wire.Error) -> InstanceError | BackendError:
        """Return the exception for an error of the server; close the session unless it can go on."""
        message = f"the server at {self._address} answered: {error.message[:1000]}"
        if error.code not in PERMANENT or not self.name:
            self.close()
        return InstanceError(message) if error.code in PERMANENT else BackendError(message)


def address(url: str) -> str:
    """Return the WebSocket URL of a server. Raises InstanceError for an invalid URL, or one with a password."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  (reading it checks it)
    except ValueError as error:
        raise InstanceError(f"not the URL of a server: {url!r} ({error})") from error
    scheme = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}.get(parts.scheme)
    if scheme is None or not parts.hostname or parts.query or parts.fragment:
        raise InstanceError(f"url must be http(s)://HOST:PORT; got {url!r}")
    if parts.username is not None or parts.password is not None:
        raise InstanceError(f"url must not contain a password; set {wire.TOKEN}")
    return f"{scheme}://{parts.netloc}{parts.path.rstrip('/')}{wire.PATH}/ws"


def server(url: str) -> tuple[str, str, int]:
    """Return the scheme, host and port of a server's URL. Raises InstanceError as `address` does."""
    parts = urlsplit(address(url))
    return parts.scheme, parts.hostname or "", parts.port or {"ws": 80, "wss": 443}[parts.scheme]


def _error_in(answer: msgspec.Raw) -> wire.Error | None:
    """Return the error that stands in place of an answer, None if it is an answer."""
    try:
        return wire.read(answer, wire.ErrorAnswer).error
    except wire.MALFORMED:
        return None
