"""A local web page on which a person plays a task by typing actions or clicking a picture.

All calls to the environment are made in one thread.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import Any, TypeVar

from lmgym.env.pictures import encode
from lmgym.errors import BackendError, InstanceError
from lmgym.viewer.episode import plain
from lmgym.viewer.local_server import JSON, Answer, LocalServer, RequestHandler, as_json

PICTURE = re.compile(r"picture/([0-9a-f]{32})\.png")
MAX_BODY = 4 << 20  # bytes of a request; an action has at most 2^20 characters
Result = TypeVar("Result")


class PlaySession:
    """Successive episodes of one environment."""

    def __init__(self, env: Any, *, seed: int = 0, index: int | None = None, adviser: str | None = None) -> None:
        """Start the first episode; `adviser` ("oracle" or "demonstrator") can play the next action."""
        self._env, self._seed, self._index, self._adviser = env, seed, index, adviser
        self._thread = ThreadPoolExecutor(1)
        self.pictures: dict[str, bytes] = {}  # PNGs of the current observation by digest
        self._episode = -1
        self._within(self._open)

    def state(self) -> dict[str, Any]:
        """Return the values that the page shows."""
        return self._within(lambda: dict(self._state))

    def act(self, turn: int, action: str | None) -> dict[str, Any]:
        """Play an action; None: the adviser's next one. Raises InstanceError unless `turn` is the current turn."""
        return self._within(lambda: self._act(turn, action))

    def pointing(self, x: float, y: float) -> str | None:
        """Return the action that clicks a pixel of the last picture, None if the task has none."""
        action: str | None = self._within(lambda: self._env.unwrapped.pointing(x, y))
        return action

    def pressing(self, keys: list[str]) -> str | None:
        """Return the action that types characters or presses one combination, None if the task has none."""
        action: str | None = self._within(lambda: self._env.unwrapped.pressing(keys))
        return action

    def again(self) -> dict[str, Any]:
        """Start the next episode: of the chosen instance, else of the next seed."""
        return self._within(self._open)

    def close(self) -> None:
        """Close the environment."""
        self._within(self._env.close)
        self._thread.shutdown()

    def _within(self, work: Callable[[], Result]) -> Result:
        """Run work in the environment's thread."""
        return self._thread.submit(work).result()

    def _open(self) -> dict[str, Any]:
        self._episode += 1
        options = {} if self._index is None else {"index": self._index}
        observation, info = self._env.reset(seed=self._seed + self._episode, options=options)
        self._advice: Iterator[str] | None = None
        if self._adviser is not None:
            self._advice = getattr(self._env.unwrapped, self._adviser)()
        self._state: dict[str, Any] = {
            "task": self._env.unwrapped.task.id,
            "instance": info["instance"],
            "episode": self._episode,
            "adviser": self._adviser,
            "keys": self._env.unwrapped.pressing(["a"]) is not None,
            "turn": 0,
            "total": 0.0,
            "ended": "",  # "done", "cut" or "void"; "" while it runs
            "score": None,
            "success": None,
            **self._seen(observation),
        }
        return dict(self._state)

    def _act(self, turn: int, action: str | None) -> dict[str, Any]:
        state = self._state
        if turn != state["turn"] or state["ended"]:
            raise InstanceError("this page shows an earlier turn; reload it")
        action = action if action is not None else next(self._advice or iter(()), None)
        if action is None:
            raise InstanceError("the adviser has no next action")
        try:
            observation, reward, terminated, truncated, info = self._env.step(action)
        except BackendError as error:
            self._state = {**state, "ended": "void", "text": f"The episode is void: {error}"}
            return {**self._state, "action": action}
        self._state = {
            **state,
            **self._seen(observation),
            "turn": turn + 1,
            "total": state["total"] + float(reward),
            "ended": "done" if terminated else "cut" if truncated else "",
            "score": info.get("score"),
            "success": info.get("success"),
        }
        return {**self._state, "action": action, "reward": float(reward), "valid": bool(info["valid"])}

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        self.pictures = dict(encode(picture) for picture in observation.get("images", ()))
        return {"text": observation["text"], "pictures": list(self.pictures)}


class PlayHandler(RequestHandler):
    """A request of the page. Only JSON is accepted: forms of other pages cannot send it."""

    server: PlayServer

    def do_POST(self) -> None:
        """Answer a POST request."""
        if (path := self.checked_path()) is None:
            return
        length = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        bounded = length.isascii() and length.isdecimal() and len(length) < 10
        if kind != "application/json" or not bounded or int(length) > MAX_BODY:
            self.close_connection = True
            self.send(HTTPStatus.BAD_REQUEST, b"send JSON with a Content-Length of at most 4 MiB\n", "text/plain")
            return
        content = self.rfile.read(int(length))
        self.answer(lambda: self.server.take(path, json.loads(content)))


class PlayServer(LocalServer):
    """A server of the page for one play session."""

    page, script = "play.html", "play.js"

    def __init__(self, game: PlaySession, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen on `host`; port 0 picks a free port. Raises OSError if the port is in use."""
        super().__init__(PlayHandler, host=host, port=port)
        self.game = game

    def answer(self, path: str, query: dict[str, list[str]]) -> Answer | None:
        """Return the content and MIME type at `path`, None if there is none."""
        if path == "state.json":
            return as_json(plain(self.game.state())), JSON
        if match := PICTURE.fullmatch(path):
            picture = self.game.pictures.get(match[1])
            return None if picture is None else (picture, "image/png")
        return super().answer(path, query)

    def take(self, path: str, sent: Any) -> Answer | None:
        """Answer a POST to `path`, None if there is no such path. Raises ValueError for invalid values."""
        values = sent if isinstance(sent, dict) else {}
        if path == "act":
            if not isinstance(action := values.get("action"), str):
                raise ValueError("an action must be a string")
            answer: Any = self.game.act(_whole(values.get("turn")), action)
        elif path == "next":
            answer = self.game.act(_whole(values.get("turn")), None)
        elif path == "again":
            answer = self.game.again()
        elif path == "point":
            answer = {"action": self.game.pointing(_number(values.get("x")), _number(values.get("y")))}
        elif path == "press":
            answer = {"action": self.game.pressing(_keys(values.get("keys")))}
        else:
            return None
        return as_json(plain(answer)), JSON


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("a turn must be an integer")
    return value


def _keys(value: Any) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(key, str) and key for key in value):
        raise ValueError("keys must be a list of names")
    if len(value) > 1 and any(len(key) > 1 for key in value):
        raise ValueError("keys must be characters, or one combination")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < math.inf:
        raise ValueError("x and y must be numbers")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError("x and y are out of range") from error
