"""Servers on loopback: in a thread of the test, with the tasks that it names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import gymnasium
import httpx
import pytest
from websockets.sync.client import ClientConnection, connect

from lmgym.serve.catalogue import Catalogue
from lmgym.serve.clients import Limits
from lmgym.serve.server import Serving

TOKEN, OTHER = "a-token-for-the-tests", "the-token-of-another"
ALL = ("answer", "admissible", "oracle", "demonstrator", "seats", "instances")


class Asking:
    """A server, and a client that may say anything."""

    def __init__(self, serving: Serving) -> None:
        self.serving = serving
        self.url = serving.url
        self.http = httpx.Client(base_url=serving.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30)

    def post(self, content: Any, **headers: str) -> httpx.Response:
        raw = content if isinstance(content, bytes) else json.dumps(content).encode()
        return self.http.post("/v1/call", content=raw, headers=headers)

    def call(self, *calls: dict[str, Any], token: str = TOKEN) -> list[dict[str, Any]]:
        answered = self.post({"calls": calls}, Authorization=f"Bearer {token}").json()
        assert "answers" in answered, answered
        return answered["answers"]

    def open(self, task: str, token: str = TOKEN, **more: Any) -> str:
        (answer,) = self.call({"op": "open", "task": task, **more}, token=token)
        return answer["session"]

    def code(self, *calls: dict[str, Any], token: str = TOKEN) -> str:
        """Why the last of some calls is refused."""
        return self.call(*calls, token=token)[-1]["error"]["code"]

    @contextmanager
    def socket(self, token: str = TOKEN, **headers: str) -> Iterator[ClientConnection]:
        url = self.url.replace("http", "ws") + "/v1/ws"
        more = {"Authorization": f"Bearer {token}", **headers}
        with connect(url, additional_headers=more, compression=None, max_size=None) as socket:
            yield socket

    def remote(self, task: str, **options: Any) -> closing[Any]:
        made = gymnasium.make("lmgym/Remote-v0", url=self.url, task=task, token=TOKEN, **options)
        return closing(made)


def said(socket: ClientConnection, *calls: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return the answer to a message on a connection."""
    socket.send(json.dumps({"calls": calls, **more}))
    return json.loads(socket.recv(timeout=60))["answers"]


@contextmanager
def served(
    *tasks: str, reveals: tuple[str, ...] = (), catalogue: Catalogue | None = None, **limits: Any
) -> Iterator[Asking]:
    """A server of tasks with limits of its own."""
    serving = Serving(
        catalogue or Catalogue.of(tasks, reveals=reveals), [TOKEN, OTHER], limits=Limits(**limits), processes=1
    )
    with serving.running():
        asking = Asking(serving)
        with asking.http:
            yield asking


@pytest.fixture(scope="session")
def games() -> Iterator[Asking]:
    """A server of small games that withholds what servers withhold."""
    with served("wordle", "guess_number", "alfworld") as asking:
        yield asking


@pytest.fixture(scope="session")
def open_games() -> Iterator[Asking]:
    """A server that reveals everything."""
    with served("wordle", "guess_number", "textworld", "webshop", "click_target", reveals=ALL) as asking:
        yield asking
