"""The viewer's server: this machine only, for who has the token, and everything it shows is hostile data.

Nothing is written and nothing but the runs' own files is read. The page may load what the server itself sends and
build elements from text alone: its policy leaves markup, inline scripts and foreign addresses without effect.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import socket
from collections.abc import Sequence
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lmgym import hosts
from lmgym.errors import InstanceError
from lmgym.viewer.episode import Decode, shown
from lmgym.viewer.index import Row, Run, listing
from lmgym.viewer.search import search

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
PAGE = {
    "": ("index.html", "text/html; charset=utf-8"),
    "app.js": ("app.js", "text/javascript; charset=utf-8"),
    "icon.svg": ("icon.svg", "image/svg+xml"),
    "style.css": ("style.css", "text/css; charset=utf-8"),
}
JSON = "application/json; charset=utf-8"
PICTURE = re.compile(r"picture/(\d{1,4})/([0-9a-f]{32})\.png")
EPISODE = re.compile(r"episode/(\d{1,9})")

Answer = tuple[bytes, str]  # content and its type


class Viewer(ThreadingHTTPServer):
    """Shows episodes at `url` until it is shut down."""

    daemon_threads = True

    def __init__(
        self,
        runs: Sequence[Run],
        rows: Sequence[Row],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        decode: Decode | None = None,
    ) -> None:
        """Listen on `host`; port 0 takes a free one. Raises OSError where the port is taken."""
        self.runs, self.rows, self.decode = runs, rows, decode
        self.token = secrets.token_urlsafe(24)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), Handler)
        self.host = host
        self.url = f"http://{hosts.in_address(host)}:{self.server_port}/{self.token}/"

    def knows(self, host: str) -> bool:
        """Whether a request's Host is this server."""
        return hosts.knows(host, host=self.host, bound=str(self.server_address[0]), port=self.server_port)

    def answer(self, path: str, query: dict[str, list[str]]) -> Answer | None:
        """Content and type of what lies at `path`, None where nothing does."""
        if path in PAGE:
            name, kind = PAGE[path]
            return page_file(name).encode(), kind
        if path == "listing.json":
            return as_json(listing(self.runs, self.rows)), JSON
        if path == "search.json":
            return self._search(query)
        if (asked := EPISODE.fullmatch(path)) and int(asked[1]) < len(self.rows):
            row = self.rows[int(asked[1])]
            return as_json(shown(self.runs[row.run].trajectory(row), decode=self.decode)), JSON
        if (asked := PICTURE.fullmatch(path)) and int(asked[1]) < len(self.runs):
            picture = self.runs[int(asked[1])].picture(asked[2])
            return None if picture is None else (picture, "image/png")
        return None

    def _search(self, query: dict[str, list[str]]) -> Answer | None:
        words, start = query.get("words", [""])[0], query.get("start", ["0"])[0]
        if not words or not re.fullmatch(r"\d{1,9}", start):
            return None
        found = search(self.runs, self.rows, words, start=int(start))
        return as_json({"hits": found.hits, "next": found.next}), JSON


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: Viewer
    server_version, sys_version = "lmgym", ""
    timeout = 30  # seconds for a request to come

    def do_GET(self) -> None:
        """Answer what has the right host and token; to anything else nothing is there."""
        asked = self.headers.get_all("Host", [])
        if len(asked) != 1 or not self.server.knows(asked[0]):
            self._send(HTTPStatus.MISDIRECTED_REQUEST, b"wrong host\n", "text/plain")
            return
        address = urlsplit(self.path)
        _, token, path = [*address.path.split("/", 2), "", ""][:3]
        if not hmac.compare_digest(token.encode(errors="replace"), self.server.token.encode()):
            self._send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")
            return
        try:
            answer = self.server.answer(path, parse_qs(address.query, max_num_fields=8))
        except (InstanceError, ValueError) as error:
            self._send(HTTPStatus.UNPROCESSABLE_ENTITY, as_json({"error": str(error)}), JSON)
            return
        if answer is None:
            self._send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")
        else:
            self._send(HTTPStatus.OK, *answer)

    def _send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: an address holds the token, and what was asked may hold anything."""


def page_file(name: str) -> str:
    """A file of the page."""
    return (files("lmgym.viewer") / "page" / name).read_text(encoding="utf-8")


def as_json(value: Any) -> bytes:
    """ASCII JSON in which no markup can begin."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c").encode()
