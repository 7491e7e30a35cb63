"""Runs in OpenEnv's venv: its server with Wordle on a port of loopback, and its clients, all in one process."""

import json
import socket
import sys
import threading
import time
import urllib.request

import uvicorn
from openenv.core import GenericEnvClient
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from lmgym.interop import openenv as interop


class Server:
    """The application behind a port that was free."""

    def __enter__(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        config = uvicorn.Config(interop.app("wordle", sessions=4), host="127.0.0.1", port=port, log_level="warning")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.05)
        return f"http://127.0.0.1:{port}"

    def __exit__(self, *error):
        self.server.should_exit = True
        self.thread.join()


def episode(client, index, words):
    """All that a client is told of an episode."""
    told = [client.reset(index=index)]
    for word in words:
        told.append(client.step(interop.TextAction(text=word)))
        if told[-1].done:
            break
    return [{**result.observation.model_dump(), "of_result": [result.reward, result.done]} for result in told]


def refused(call):
    """The error that a call ends in."""
    try:
        call()
    except RuntimeError as error:
        return str(error)
    return None


def knocked(url, *, name=None, origin=None):
    """The status that a WebSocket's opening is answered with, where it asks for another name or comes from a page."""
    at = url.removeprefix("http://")
    host, _, port = at.partition(":")
    asked = f"ws://{name}:{port}/ws" if name else f"ws://{at}/ws"
    try:
        connect(asked, sock=socket.create_connection((host, int(port))), origin=origin, proxy=None).close()
    except InvalidStatus as error:
        return error.response.status_code
    return 101


def main():
    """Read a job, print what clients were told."""
    job = json.load(sys.stdin)
    found = {}
    with Server() as url:
        client = interop.TextClient(base_url=url).sync()
        other = interop.TextClient(base_url=url).sync()
        plain = GenericEnvClient(base_url=url).sync()
        with client, other, plain:
            found["episodes"] = [episode(client, index, job["words"]) for index in job["indices"]]
            found["over"] = refused(lambda: client.step(interop.TextAction(text="crane")))
            found["index"] = refused(lambda: client.reset(index=93))
            client.reset(index=0)
            found["split"] = refused(lambda: client.reset(index=0, split="nope"))
            other.reset(index=1)
            found["crossed"] = [
                (one.observation.instance, one.observation.text)
                for one in (client.step(interop.TextAction(text="crane")), other.step(interop.TextAction(text="crane")))
            ]
            found["state"] = client.state().model_dump()
            found["train"] = client.reset(index=371, split="train").observation.instance
            found["drawn"] = [client.reset(seed=5).observation.instance for _ in range(2)]
            found["random"] = [client.reset().observation.instance for _ in range(8)]
            plain.reset(index=0)
            found["plain"] = plain.step({"text": "crane"}).observation
        found["knocks"] = {
            "own": knocked(url),
            "localhost": knocked(url, name="localhost"),
            "page": knocked(url, origin="https://evil.example"),
            "rebound": knocked(url, name="rebound.evil.example"),
        }
        for path in ("wordle/splits", "metadata"):
            with urllib.request.urlopen(f"{url}/{path}") as answer:
                found[path] = json.load(answer)
    sys.stdout.write("\n" + json.dumps(found) + "\n")


main()
