"""An OpenAI-compatible endpoint on loopback with small deterministic models, planned failures and exact counts."""

from __future__ import annotations

import hashlib
import json
import random
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Speaker = Callable[[dict[str, Any]], dict[str, Any]]  # a request's body -> the message of its choice
Plan = Callable[[int], str]  # number of a request -> its failure, or ""

FAULTS = (
    *("429", "429 seconds", "429 date", "429 milliseconds", "429 nonsense", "500", "503", "error in 200"),
    *("reset", "reset in the body", "drip", "truncated", "half a JSON", "not JSON", "HTML", "a list", "no choices"),
    *("no message", "nameless call"),
)


def bisect(body: dict[str, Any]) -> dict[str, Any]:
    """Play GuessNumber by bisection."""
    low, high, guess = 1, 100, 0
    for message in body["messages"]:
        text = message["content"]
        if message["role"] == "user" and "whole number from 1 to" in text:
            high = int(text.partition("from 1 to ")[2].partition(".")[0])
        elif message["role"] == "assistant":
            guess = int(text)
        elif text == "higher":
            low = guess + 1
        elif text == "lower":
            high = guess - 1
    return {"role": "assistant", "content": str((low + high) // 2)}


def peek(body: dict[str, Any]) -> dict[str, Any]:
    """Play Jars by native calls, jar after jar; in half of the games the second call's arguments are cut off."""
    results = [message["content"] for message in body["messages"] if message["role"] in ("tool", "user")][1:]
    game = int(body["messages"][0]["content"].partition(":")[0].split()[1])
    looked = sum(result in ("coin", "empty") for result in results)
    name, arguments = "peek", json.dumps({"jar": looked + 1})
    if "coin" in results:
        name, arguments = "answer", json.dumps({"jar": looked})
    elif len(results) == 1 and game % 2:
        arguments = '{"jar": '
    call = {"id": "x", "type": "function", "function": {"name": name, "arguments": arguments}}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def reply(message: dict[str, Any], finish: str = "stop", **more: Any) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 2}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    return {"id": "r", "object": "chat.completion", "choices": [choice], "usage": usage, **more}


@dataclass
class Server:
    """The state of a server; `replies` counts complete replies by digest of the request."""

    speaker: Speaker
    plan: Plan = lambda number: ""
    pause: float = 0.0  # seconds before a reply
    together: int = 0  # requests that the first reply waits for
    headers: list[dict[str, str]] = field(default_factory=list)  # of requests
    bodies: list[dict[str, Any]] = field(default_factory=list)
    replies: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    running: int = 0
    most: int = 0  # requests at once
    padding: int = 0  # bytes that followed endless replies
    lock: threading.Lock = field(default_factory=threading.Lock)
    enough: threading.Event = field(default_factory=threading.Event)
    url: str = ""

    @property
    def requests(self) -> int:
        return len(self.bodies)

    @property
    def model(self) -> str:
        return f"{self.url}#fake"


def any_fault(rate: float, *, seed: int = 0, faults: tuple[str, ...] = FAULTS, storm: range = range(0)) -> Plan:
    """Let requests fail at random; all requests in `storm` get HTTP 429."""
    chance = random.Random(seed)

    def plan(number: int) -> str:
        fails, fault = chance.random() < rate, chance.choice(faults)
        return "429 seconds" if number in storm else fault if fails else ""

    return plan


@contextmanager
def serving(speaker: Speaker = bisect, **more: Any) -> Iterator[Server]:
    """Serve until the block ends."""
    state = Server(speaker, **more)

    class Bound(Handler):
        server_state = state

    class Threads(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 1024

        def handle_error(self, request: Any, client_address: Any) -> None:
            """Ignore clients that disconnect."""

    http = Threads(("127.0.0.1", 0), Bound)
    state.url = f"http://127.0.0.1:{http.server_address[1]}/v1"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield state
    finally:
        http.shutdown()
        http.server_close()
        thread.join()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # headers and body in one packet
    server_state: Server

    def log_message(self, *_: Any) -> None:
        pass

    def do_POST(self) -> None:
        state = self.server_state
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with state.lock:
            number = len(state.bodies)
            state.bodies.append(body)
            state.headers.append({name.lower(): value for name, value in self.headers.items()})
            fault = state.plan(number)
            state.faults[fault] += bool(fault)
            state.running += 1
            state.most = max(state.most, state.running)
            if state.most >= state.together:
                state.enough.set()
        try:
            state.enough.wait(60)
            time.sleep(state.pause)
            if fault:
                self.fail(fault, body)
            else:
                answer = state.speaker(body)
                status = answer.pop("status", 200)
                extra = answer.pop("headers", {})
                bare = status != 200 or "choices" in answer
                self.send(status, answer.get("raw") or (answer if bare else reply(answer)), **extra)
                if status == 200:
                    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
                    with state.lock:
                        state.replies[digest] += 1
        finally:
            with state.lock:
                state.running -= 1

    def send(self, status: int, content: Any, **headers: str | None) -> None:
        """Send a reply; a header that is None is left out."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)), **headers}.items():
            if value is not None:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)
        self.wfile.flush()

    def fail(self, fault: str, body: dict[str, Any]) -> None:
        whole = json.dumps(reply(self.server_state.speaker(body))).encode()
        error = {"error": {"message": f"planned: {fault}", "type": "planned"}}
        upstream = {"error": {"code": 502, "message": "upstream"}}
        nameless = reply({"content": None, "tool_calls": [{"function": {"arguments": "{}"}}]})
        replies: dict[str, tuple[int, Any, dict[str, str]]] = {
            "429": (429, error, {}),
            "429 seconds": (429, error, {"Retry-After": "0.05"}),
            "429 date": (429, error, {"Retry-After": formatdate(time.time() + 1, usegmt=True)}),
            "429 nonsense": (429, error, {"Retry-After": "soon"}),
            "429 milliseconds": (429, error, {"retry-after-ms": "30"}),
            "500": (500, error, {}),
            "503": (503, error, {}),
            "error in 200": (200, upstream, {}),
            "half a JSON": (200, whole[: len(whole) // 2], {}),
            "not JSON": (200, b"\xff\xfe upstream connect error", {}),
            "HTML": (200, b"<html>busy</html>", {"Content-Type": "text/html"}),
            "a list": (200, [1, 2], {}),
            "no choices": (200, {**reply({}), "choices": []}, {}),
            "no message": (200, {"choices": [{"finish_reason": "stop"}]}, {}),
            "nameless call": (200, nameless, {}),
        }
        if fault in replies:
            status, content, headers = replies[fault]
            self.send(status, content, **headers)
            return
        self.close_connection = True
        sent = {"reset in the body": 20, "drip": 0, "truncated": -5, "endless": -1}
        if fault in sent:
            length = None if fault == "endless" else str(len(whole))
            self.send(200, whole[: sent[fault]], **{"Content-Length": length})
        if fault.startswith("reset"):
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif fault == "drip":  # a byte a second, until the client gives up
            for place in range(len(whole)):
                self.wfile.write(whole[place : place + 1])
                self.wfile.flush()
                time.sleep(1)
        elif fault == "endless":  # until the client goes away
            while True:
                self.wfile.write(b" " * (1 << 20))
                self.server_state.padding += 1 << 20
        assert fault in (*sent, "reset"), fault
