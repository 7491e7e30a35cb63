"""A site for a folder of pages that runs no scripts but the pages' own."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import replace
from functools import lru_cache, partial
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from lmgym.backends.browser.gate import Request, Response, Site, folder

HOME = "http://miniwob.test"  # origin under which a folder of pages is served
# an event handler in the source of a script: in a tag that it writes, or set as an attribute
HANDLER = re.compile(r"""\bon[a-z]+="([^"\\]+)"|setAttribute\("on[a-z]+","([^"\\]+)"\)""")


def pages(root: Path) -> Site:
    """Return a site of the pages below `root`, each with a Content-Security-Policy of its own."""
    return partial(_serve, root)


def _serve(root: Path, request: Request) -> Response:
    response = folder(root)(request)
    if not response.kind.startswith("text/html"):
        return response
    policy = _policy_of(root, urlsplit(request.path).path)
    return replace(response, headers={**response.headers, "Content-Security-Policy": policy})


@lru_cache(maxsize=256)
def _policy_of(root: Path, path: str) -> str:
    """Return the policy of the page at `path`, from its source and the sources of its scripts."""

    def read(address: str) -> str:
        body = folder(root)(Request("GET", urlsplit(address).path, {})).body
        return body.decode("utf-8", "replace").replace("\r\n", "\n")

    scripts = _Scripts()
    scripts.feed(read(path))
    addresses = [urljoin(HOME + path, address) for address in scripts.addresses]
    written = [code for address in addresses for pair in HANDLER.findall(read(address)) for code in pair if code]
    return _policy(addresses, scripts.inline, [*scripts.handlers, *written], frames=scripts.frames)


def _policy(addresses: list[str], inline: list[str], handlers: list[str], *, frames: bool) -> str:
    """Return a policy that allows a page's own scripts, by address and hash, and its own event handlers, by hash.

    Pages may insert typed text as HTML (the terminal does). Without a policy, an event handler in that text could end
    the episode with any reward.
    """
    sources = [address.partition("?")[0] for address in addresses] + [_sha256(code) for code in inline]
    if handlers:
        sources += ["'unsafe-hashes'", *(_sha256(code) for code in handlers)]
    allowed = " ".join(dict.fromkeys(sources)) or "'none'"
    return f"script-src {allowed}; object-src 'none'; base-uri 'none'; frame-src '{'self' if frames else 'none'}'"


class _Scripts(HTMLParser):
    """The scripts, event handlers and frames of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.inline: list[str] = []
        self.handlers: list[str] = []
        self.frames = False
        self._open = False  # inside of an inline script

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.frames = self.frames or tag == "iframe"
        if tag == "script" and attributes.get("src"):
            self.addresses.append(attributes["src"] or "")
        elif tag == "script":
            self._open = True
            self.inline.append("")
        for name, value in attrs:
            if value and (name.startswith("on") or value.startswith("javascript:")):
                self.handlers.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag != "script"

    def handle_data(self, data: str) -> None:
        if self._open:
            self.inline[-1] += data


def _sha256(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
