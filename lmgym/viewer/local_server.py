"""A local HTTP server for pages that show untrusted data; its URL contains an access token.

The content security policy allows files of this server only: no markup from data, inline scripts or other addresses.
"""

from __future__ import annotations

import hmac
import json
import re
import secrets
import socket
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import PurePath
from typing import Any
from urllib.parse import parse_qs, urlsplit

from lmgym import hosts
from lmgym.errors import LmgymError

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
STATIC = ("common.js", "icon.svg", "style.css")
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
HOST = re.compile(r"(?P<name>\[[\da-f:.]+\]|[\w.-]+)(:(?P<port>\d{1,5}))?")
JSON = "application/json; charset=utf-8"

Answer = tuple[bytes, str]  # content and MIME type


class LocalServer(ThreadingHTTPServer):
    """A server at `url`, which contains the token."""

    daemon_threads = True
    page: str  # HTML file of the page
    script: str  # its own script

    def __init__(self, handler: type[RequestHandler], *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen on `host`; port 0 picks a free port. Raises OSError if the port is in use."""
        self.token = secrets.token_urlsafe(24)
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        super().__init__((host, port), handler)
        self.host = host
        self.url = f"http://{hosts.in_address(host)}:{self.server_port}/{self.token}/"

    def knows(self, header: str) -> bool:
        """Return True if a request's Host header names this server: one of its names or addresses, and its port."""
        match = HOST.fullmatch(header)
        if match is None or int(match["port"] or 80) != self.server_port:
            return False
        if hosts.is_wildcard(bound := str(self.server_address[0])):
            return hosts.is_address(match["name"].strip("[]"))
        return match["name"] in hosts.own_names(self.host, bound)

    def answer(self, path: str, query: dict[str, list[str]]) -> Answer | None:
        """Return the content and MIME type at `path`, None if there is none."""
        if path and path not in (self.script, *STATIC):
            return None
        name = path or self.page
        return page_file(name).encode(), TYPES[PurePath(name).suffix]


class RequestHandler(BaseHTTPRequestHandler):
    """A request, checked for its host name and token."""

    server: LocalServer
    server_version, sys_version = "lmgym", ""
    timeout = 30  # seconds to receive a request

    def do_GET(self) -> None:
        """Answer a GET request."""
        if (path := self.checked_path()) is not None:
            query = urlsplit(self.path).query
            self.answer(lambda: self.server.answer(path, parse_qs(query, max_num_fields=8)))

    def checked_path(self) -> str | None:
        """Return the path after the token; answer with an error and return None if host or token is wrong."""
        names = self.headers.get_all("Host", [])
        if len(names) != 1 or not self.server.knows(names[0]):
            self.send(HTTPStatus.MISDIRECTED_REQUEST, b"wrong host\n", "text/plain")
            return None
        _, token, path = [*urlsplit(self.path).path.split("/", 2), "", ""][:3]
        if not hmac.compare_digest(token.encode(errors="replace"), self.server.token.encode()):
            self.send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")
            return None
        return path

    def answer(self, make: Callable[[], Answer | None]) -> None:
        """Send the answer that `make` returns, or the error that it raises."""
        try:
            answer = make()
        except (LmgymError, ValueError, RecursionError) as error:
            self.send(HTTPStatus.UNPROCESSABLE_ENTITY, as_json({"error": str(error)}), JSON)
            return
        if answer is None:
            self.send(HTTPStatus.NOT_FOUND, b"not found\n", "text/plain")
        else:
            self.send(HTTPStatus.OK, *answer)

    def send(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        """Send content with the security headers."""
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: paths contain the token."""


def page_file(name: str) -> str:
    """Return a file of the page."""
    return (files("lmgym.viewer") / "page" / name).read_text(encoding="utf-8")


def as_json(value: Any) -> bytes:
    """Return ASCII JSON without `<`, so that it cannot contain markup."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False).replace("<", "\\u003c").encode()
