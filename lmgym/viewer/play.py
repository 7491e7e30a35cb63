"""A person at a task, on a page of this machine: the picture can be clicked, words are typed.

The environment lives in one thread whoever asks, and what it says is data: the page shows it as text.
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
from lmgym.viewer.local_server import JSON, Answer, LocalServer, RequestHandler, as_json, page_file

PAGE = {"": ("play.html", "text/html; charset=utf-8"), "play.js": ("play.js", "text/javascript; charset=utf-8")}
PICTURE = re.compile(r"picture/([0-9a-f]{32})\.png")
LARGEST = 4 << 20  # bytes of a question; an action has 2^20 characters at most
Result = TypeVar("Result")


class PlaySession:
    """Episodes of one environment, one after the other."""

    def __init__(self, env: Any, *, seed: int = 0, index: int | None = None, adviser: str | None = None) -> None:
        """Open the first episode; `adviser`, "oracle" or "demonstrator", can be asked for the next action."""
        self._env, self._seed, self._index, self._adviser = env, seed, index, adviser
        self._thread = ThreadPoolExecutor(1)
        self.pictures: dict[str, bytes] = {}  # PNGs by digest, of the present observation
        self._episode = -1
        self._within(self._open)

    def state(self) -> dict[str, Any]:
        """What the page shows."""
        return self._within(lambda: dict(self._shown))

    def act(self, turn: int, action: str) -> dict[str, Any]:
        """Play an action. Raises InstanceError where it answers another turn than the present one."""
        return self._within(lambda: self._act(turn, action))

    def advised(self, turn: int) -> dict[str, Any]:
        """Play what the adviser says."""
        return self._within(lambda: self._act(turn, None))

    def pointing(self, x: float, y: float) -> str | None:
        """The action that clicks a pixel of the last picture; None where the task has none."""
        found: str | None = self._within(lambda: self._env.unwrapped.pointing(x, y))
        return found

    def again(self) -> dict[str, Any]:
        """Open the next episode: the same instance where one was asked for, else that of the next seed."""
        return self._within(self._open)

    def close(self) -> None:
        """Close the environment."""
        self._within(self._env.close)
        self._thread.shutdown()

    def _within(self, work: Callable[[], Result]) -> Result:
        """Do something in the environment's own thread."""
        return self._thread.submit(work).result()

    def _open(self) -> dict[str, Any]:
        self._episode += 1
        options = {} if self._index is None else {"index": self._index}
        observation, info = self._env.reset(seed=self._seed + self._episode, options=options)
        self._advice: Iterator[str] | None = None
        if self._adviser is not None:
            self._advice = getattr(self._env.unwrapped, self._adviser)()
        self._shown: dict[str, Any] = {
            "task": self._env.unwrapped.task.id,
            "instance": info["instance"],
            "episode": self._episode,
            "adviser": self._adviser,
            "turn": 0,
            "total": 0.0,
            "ended": "",  # how: "done", "cut" or "void"
            "score": None,
            "success": None,
            **self._seen(observation),
        }
        return dict(self._shown)

    def _act(self, turn: int, action: str | None) -> dict[str, Any]:
        shown = self._shown
        if turn != shown["turn"] or shown["ended"]:
            raise InstanceError("this page is of an earlier turn: load it anew")
        said = action if action is not None else next(self._advice or iter(()), None)
        if said is None:
            raise InstanceError("there is nobody who says what to do next")
        try:
            observation, reward, terminated, truncated, info = self._env.step(said)
        except BackendError as error:
            self._shown = {**shown, "ended": "void", "text": f"The episode is void: {error}"}
            return {**self._shown, "action": said}
        self._shown = {
            **shown,
            **self._seen(observation),
            "turn": turn + 1,
            "total": shown["total"] + float(reward),
            "ended": "done" if terminated else "cut" if truncated else "",
            "score": info.get("score"),
            "success": info.get("success"),
        }
        return {**self._shown, "action": said, "reward": float(reward), "valid": bool(info["valid"])}

    def _seen(self, observation: dict[str, Any]) -> dict[str, Any]:
        self.pictures = dict(encode(picture) for picture in observation.get("images", ()))
        return {"text": observation["text"], "pictures": list(self.pictures)}


class PlayHandler(RequestHandler):
    """One request; JSON is taken, which no form of a stranger's page can send."""

    server: PlayServer

    def do_POST(self) -> None:
        """Take what was sent, from who has the right host and token."""
        if (path := self.asked()) is None:
            return
        length = self.headers.get("Content-Length", "")
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        known = length.isascii() and length.isdecimal() and len(length) < 10
        if kind != "application/json" or not known or int(length) > LARGEST:
            self.close_connection = True
            self.send(HTTPStatus.BAD_REQUEST, b"JSON of known length is taken\n", "text/plain")
            return
        content = self.rfile.read(int(length))
        self.answer(lambda: self.server.take(path, json.loads(content)))


class PlayServer(LocalServer):
    """Lets a person play at `url` until it is shut down."""

    def __init__(self, game: PlaySession, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """Listen on `host`; port 0 takes a free one. Raises OSError where the port is taken."""
        super().__init__(PlayHandler, host=host, port=port)
        self.game = game

    def answer(self, path: str, query: dict[str, list[str]]) -> Answer | None:
        """Content and type of what lies at `path`, None where nothing does."""
        if path in PAGE:
            name, kind = PAGE[path]
            return page_file(name).encode(), kind
        if path == "state.json":
            return as_json(plain(self.game.state())), JSON
        if asked := PICTURE.fullmatch(path):
            picture = self.game.pictures.get(asked[1])
            return None if picture is None else (picture, "image/png")
        return super().answer(path, query)

    def take(self, path: str, sent: Any) -> Answer | None:
        """Answer what was sent to `path`; None where nothing is taken. Raises ValueError for what makes no sense."""
        values = sent if isinstance(sent, dict) else {}
        if path == "act":
            answer: Any = self.game.act(_whole(values.get("turn")), _text(values.get("action")))
        elif path == "next":
            answer = self.game.advised(_whole(values.get("turn")))
        elif path == "again":
            answer = self.game.again()
        elif path == "point":
            answer = {"action": self.game.pointing(_number(values.get("x")), _number(values.get("y")))}
        else:
            return None
        return as_json(plain(answer)), JSON


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("an action is a text")
    return value


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise ValueError("a turn is a whole number")
    return value


def _number(value: Any) -> float:
    if not isinstance(value, int | float) or isinstance(value, bool) or not abs(value) < math.inf:
        raise ValueError("a place is two numbers")
    try:
        return float(value)
    except OverflowError as error:
        raise ValueError("a place is two numbers that a picture could have") from error
