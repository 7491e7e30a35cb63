"""A connection to a D-Bus daemon that sends many calls before it reads the first answer."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmgym.errors import BackendError

if TYPE_CHECKING:
    from jeepney.io.blocking import DBusConnection

PIPELINE = 200  # calls sent before their answers are read; more would fill the sockets' buffers
PATIENCE = 3.0  # seconds without an answer


class BusCall(NamedTuple):
    """A method call."""

    service: str
    path: str
    interface: str
    method: str
    signature: str | None = None
    body: tuple[Any, ...] = ()


class Bus:
    """A client of one daemon."""

    def __init__(self, path: Path) -> None:
        """Connect to the daemon's socket; raise BackendError if it does not accept."""
        from jeepney.io.blocking import DBusConnection

        try:
            self._connection: DBusConnection = DBusConnection(_authenticated(path))
            self.call(BusCall("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello"))
        except (OSError, EOFError) as error:
            raise BackendError(f"the desktop's message bus does not answer: {error}") from error

    def call(self, call: BusCall) -> tuple[Any, ...] | None:
        """Return the answer to one call; None if it failed."""
        return self.calls([call])[0]

    def calls(self, calls: Sequence[BusCall]) -> list[tuple[Any, ...] | None]:
        """Return the answers in order: the body, or None for an error or for no answer within PATIENCE.

        Raises BackendError if the connection is broken.
        """
        answers: list[tuple[Any, ...] | None] = []
        try:
            for start in range(0, len(calls), PIPELINE):
                answers += self._batch(calls[start : start + PIPELINE])
        except (OSError, EOFError) as error:
            raise BackendError(f"the desktop's message bus broke off: {error}") from error
        return answers

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _batch(self, calls: Sequence[BusCall]) -> list[tuple[Any, ...] | None]:
        from jeepney import DBusAddress, HeaderFields, MessageType, new_method_call

        places: dict[int, int] = {}
        outgoing = bytearray()
        for place, call in enumerate(calls):
            serial = next(self._connection.outgoing_serial)
            places[serial] = place
            message = new_method_call(
                DBusAddress(call.path, call.service, call.interface), call.method, call.signature, call.body
            )
            outgoing += message.serialise(serial=serial)
        self._connection.sock.sendall(outgoing)
        answers: list[tuple[Any, ...] | None] = [None] * len(calls)
        while places:
            try:
                message = self._connection.receive(timeout=PATIENCE)
            except TimeoutError:
                return answers  # an application that hangs is no broken bus
            place = places.pop(message.header.fields.get(HeaderFields.reply_serial, -1), -1)
            if place >= 0 and message.header.message_type is MessageType.method_return:
                answers[place] = message.body
        return answers


def _authenticated(path: Path) -> socket.socket:
    """Return a connected socket; the daemon takes the identity from the socket, as user namespaces rename users."""
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(PATIENCE)
    connection.connect(str(path))
    for line, answer in ((b"\0AUTH EXTERNAL\r\n", b"DATA"), (b"DATA\r\n", b"OK ")):
        connection.sendall(line)
        if not connection.recv(512).startswith(answer):
            raise ConnectionRefusedError("authentication failed")
    connection.sendall(b"BEGIN\r\n")
    return connection
