from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import pytest
from playwright import sync_api as playwright

from lmgym.backends.browser.process import executable
from lmgym.viewer.index import open_runs
from lmgym.viewer.server import Viewer


@contextmanager
def serving(*paths, **more):
    """A viewer of `paths` at work."""
    runs = open_runs(paths)
    viewer = Viewer(runs, [row for run in runs for row in run.rows], **more)
    thread = threading.Thread(target=viewer.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield viewer
    finally:
        viewer.shutdown()
        thread.join()
        viewer.server_close()
        for run in runs:
            run.close()


def send(
    server, path: str, *headers: str, method: str = "GET", content: bytes = b""
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and content of the answer to a request made of bytes, as no client would make it."""
    with socket.create_connection(server.server_address[:2], timeout=10) as wire:
        lines = [f"{method} {path} HTTP/1.0", *headers, "", ""]
        wire.sendall("\r\n".join(lines).encode("latin-1") + content)
        answer = b"".join(iter(lambda: wire.recv(65536), b""))
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *rest = head.decode("latin-1").split("\r\n")
    return int(first.split()[1]), dict(line.split(": ", 1) for line in rest), body


@pytest.fixture
def served():
    return serving


@pytest.fixture(scope="module")
def chromium():
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable(), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


class Witness:
    """Events of a page besides showing text."""

    def __init__(self, page) -> None:
        self.requests, self.messages, self.dialogs = [], [], []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("console", lambda message: self.messages.append(message.text))
        page.on("pageerror", lambda error: self.messages.append(str(error)))
        page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))


@contextmanager
def opened(chromium, url: str, **more):
    """A page that has shown its first episode, and its witness."""
    context = chromium.new_context(viewport={"width": 1200, "height": 800}, **more)
    page = context.new_page()
    witness = Witness(page)
    page.goto(url)
    page.wait_for_selector("html[data-ready]")
    yield page, witness
    context.close()
