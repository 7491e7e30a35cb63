"""Pages in a real Chromium: one of an allowed origin plays, another's does nothing, whatever it knows and tries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from playwright import sync_api as playwright

from lmgym.backends.browser.process import executable
from lmgym.env.registry import build
from lmgym.serve.catalogue import Catalogue
from lmgym.serve.server import Serving

from .conftest import TOKEN

RESOLVES = "MAP *.example 127.0.0.1"  # a name of a stranger's that leads to this machine
OPEN = [{"op": "open", "task": "wordle", "split": "test"}]
ASK = """async ([url, token, calls, more]) => {
    const asked = {method: "POST", body: JSON.stringify({calls}),
        headers: {"Content-Type": "application/json", Authorization: `Bearer ${token}`}, ...more};
    try {
        const answer = await fetch(`${url}/v1/call`, asked);
        return [answer.status, await answer.json()];
    } catch (error) {
        return error.name;
    }
}"""
TALK = """url => new Promise(resolve => {
    const socket = new WebSocket(url);
    socket.onopen = () => resolve("open");
    socket.onerror = () => resolve("error");
})"""
SUBMIT = """url => {
    const form = document.createElement("form");
    Object.assign(form, {method: "post", action: `${url}/v1/call`, enctype: "text/plain"});
    const field = document.createElement("input");
    [field.name, field.value] = ['{"calls": [{"op": "open", "task": "wordle', '"}]}'];
    form.append(field);
    document.body.append(form);
    form.submit();
}"""


class Blank(BaseHTTPRequestHandler):
    """An empty page."""

    def do_GET(self) -> None:
        content = b"<!doctype html><title>A page</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    """The origin of the test pages; the same site under another name is another origin."""
    site = ThreadingHTTPServer(("127.0.0.1", 0), Blank)
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://lab.example:{site.server_port}"
    site.shutdown()
    thread.join()
    site.server_close()


@pytest.fixture(scope="module")
def chromium() -> Iterator[playwright.Browser]:
    arguments = ["--no-sandbox", "--disable-gpu", f"--host-resolver-rules={RESOLVES}"]
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable(), args=arguments)
        yield browser
        browser.close()


@pytest.fixture
def serving(origin: str) -> Iterator[Serving]:
    """A server that lets the pages of one origin ask."""
    with Serving(Catalogue.of(["wordle"]), [TOKEN], origins=[origin], processes=1).running() as running:
        yield running


@contextmanager
def page_of(chromium: playwright.Browser, url: str) -> Iterator[playwright.Page]:
    context = chromium.new_context()
    page = context.new_page()
    page.goto(url)
    yield page
    context.close()


def ask(page: playwright.Page, serving: Serving, calls: list[dict[str, Any]], **more: Any) -> Any:
    return page.evaluate(ASK, [serving.url, TOKEN, calls, more])


def test_page_of_an_allowed_origin_plays_an_episode_with_the_token_alone(chromium, origin, serving):
    with page_of(chromium, origin) as page:
        status, said = page.evaluate(ASK, [serving.url, "no token of this server", OPEN, {}])
    assert (status, said["error"]["code"]) == (401, "token")
    assert serving.sessions.by_name == {}
    env = build("wordle", split="test")
    first, info = env.reset(options={"index": 3})
    words = ["crane", info["answer"]]
    with page_of(chromium, origin) as page:
        status, said = ask(page, serving, OPEN)
        session = said["answers"][0]["session"]
        calls = [{"op": "reset", "session": session, "index": 3}]
        calls += [{"op": "step", "session": session, "action": word} for word in words]
        status, said = ask(page, serving, calls)
    shown = [first["text"], *(env.step(word)[0]["text"] for word in words)]
    assert status == 200
    assert [answer["text"] for answer in said["answers"]] == shown
    assert said["answers"][-1]["info"]["score"] == 1.0


@pytest.mark.parametrize(
    ("more", "end"),
    [
        ({}, "net::ERR_FAILED"),  # its question beforehand is refused, and nothing is asked
        ({"mode": "no-cors"}, "net::ERR_BLOCKED_BY_RESPONSE"),  # asked without the token, and nothing is read
        ({"mode": "no-cors", "headers": {}, "credentials": "include"}, "net::ERR_BLOCKED_BY_RESPONSE"),
    ],
)
def test_page_of_another_origin_that_knows_the_token_opens_and_reads_nothing(chromium, origin, serving, more, end):
    ends: list[str] = []
    with page_of(chromium, origin.replace("lab", "evil")) as page:
        page.on("requestfailed", lambda request: ends.append(request.failure or ""))
        assert ask(page, serving, OPEN, **more) == "TypeError"
    assert [each.partition(".")[0] for each in ends] == [end]
    assert serving.sessions.by_name == {}
    with page_of(chromium, origin) as page:
        assert ask(page, serving, OPEN)[0] == 200
    assert len(serving.sessions.by_name) == 1


def test_form_of_another_origin_opens_nothing(chromium, origin, serving):
    with page_of(chromium, origin.replace("lab", "evil")) as page:
        with page.expect_response(f"{serving.url}/v1/call") as response:
            page.evaluate(SUBMIT, serving.url)
        assert response.value.status == 403
    assert serving.sessions.by_name == {}


@pytest.mark.parametrize("name", ["lab", "evil"])
def test_no_page_talks_on_a_websocket(chromium, origin, serving, name):
    with page_of(chromium, origin.replace("lab", name)) as page:
        assert page.evaluate(TALK, serving.url.replace("http", "ws") + "/v1/ws") == "error"
    assert serving.sessions.by_name == {}


def test_name_of_a_strangers_that_leads_here_is_not_answered(chromium, serving):
    rebound = f"http://rebound.example:{serving.port}"
    with page_of(chromium, f"{rebound}/v1/tasks") as page:
        with page.expect_response(f"{rebound}/v1/call") as response:
            page.evaluate(ASK, [rebound, TOKEN, OPEN, {}])  # to a browser, of its own origin
        assert response.value.status == 400
    assert serving.sessions.by_name == {}
