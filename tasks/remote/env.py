"""A served environment that behaves like a local one: same observations, rewards, scores and spaces."""

from __future__ import annotations

import base64
import math
import operator
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from lmgym.backends import wire
from lmgym.backends.remote import ServerSession, server
from lmgym.env.env import Observation, TextEnv
from lmgym.env.pictures import decode
from lmgym.env.spaces import MAX_TEXT, Images, clean
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.tasks.remote import SPEC
from lmgym.types import FIRST_SEAT

URL = "LMGYM_REMOTE_URL"
MAX_TURNS = 10_000  # highest limit that a server accepts; the actual limit is applied locally
PIXELS = 1 << 26  # of all pictures of an observation together


class RemoteEnv(TextEnv):
    """An environment on a server that runs `lmgym serve`."""

    SPEC = SPEC

    def __init__(
        self,
        *,
        url: str = "",
        task: str = "",
        token: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float = 180.0,
        split: str = "train",
        spec: TaskSpec | None = None,
        **common: Any,
    ) -> None:
        """Connect and open a session.

        Args:
            url: URL of the server, http(s)://HOST:PORT; default: LMGYM_REMOTE_URL.
            task: Id or folder name of the task.
            token: Default: LMGYM_REMOTE_TOKEN, which is sent only to the server at LMGYM_REMOTE_URL, since `url` may
                come from somebody else's recorded episode, and does not appear in recorded episodes.
            options: Options of the task that the server lets clients set.
            timeout: Seconds that a call may take.
            split: Split of the task.
            spec: Spec of this environment.
            common: Options of every task, such as others and render_mode.
        """
        url = url or os.environ.get(URL, "")
        if not (url and task):
            raise InstanceError(f"set url='http://HOST:PORT' (or {URL}) and a task such as task='wordle'")
        if not timeout > 0:
            raise InstanceError(f"timeout must be above 0 seconds; got {timeout!r}")
        self._url, self._token, self._timeout = url, token or _token_for(url), timeout
        self._call = wire.Open(task, split, _plain(options or {}), MAX_TURNS, common.get("others", "scripted"))
        self._session = self._connect()
        opened = self._session.opened
        super().__init__(spec=_described(spec or SPEC, opened), split=split, **common)
        self._tools: list[dict[str, Any]] = []
        self._answer: str | None = None
        self._reseed: int | None = None

    # Gymnasium's interface ------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start an episode. After a lost connection, a reset with a seed opens a new session."""
        self._seed(seed)
        choice = self._checked_options(options)
        if not self._session.alive and seed is not None:
            self._session = self._connect()
        instance, index = choice.get("instance"), choice.get("index")
        if instance is not None or index is not None:
            index = None if instance is not None else self._checked_index(index)
        call = wire.Reset(self._session.name, None if seed is None else operator.index(seed), index, instance)
        played = self._session.ask(call, wire.StepAnswer)
        self._over, self._reseed = False, None
        self._tools = []
        observation, info = self._observed(played)
        self._answer = info.get("answer")
        return observation, info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play an action."""
        if self._over:
            raise self._reset_needed()
        reseed, self._reseed = self._reseed, None
        played = self._session.ask(wire.Step(self._session.name, self._checked_action(action), reseed), wire.StepAnswer)
        observation, info = self._observed(played)
        self._over = played.terminated or played.truncated
        if self._over:
            self._check(played.info)
        return observation, played.reward, played.terminated, played.truncated, info

    def cut(self) -> dict[str, Any]:
        """End the episode in its present state."""
        ending = self._session.ask(wire.Cut(self._session.name), wire.CutAnswer)
        self._check(ending)
        self._over = True
        info: dict[str, Any] = msgspec.to_builtins(ending)
        return info

    def reseed(self, seed: int) -> None:
        """Reseed the rest of the episode; the seed is sent with the next action."""
        super().reseed(seed)
        self._reseed = seed

    def close(self) -> None:
        """End the session."""
        self._session.close()

    # The task's own methods ------------------------------------------------------------------------------------

    def size(self) -> int:
        """Instances of the split."""
        return self._session.opened.size

    def score_if_cut(self) -> float:
        """Raise InstanceError: a server scores an unfinished episode only by ending it."""
        raise InstanceError(
            f"{self._call.task} is played on a server, which scores an unfinished episode through cut() only"
        )

    def oracle(self) -> Iterator[str]:
        """Yield the oracle's actions, if the server reveals them."""
        return self._advice("oracle")

    def demonstrator(self) -> Iterator[str]:
        """Yield the demonstrator's actions, if the server reveals them."""
        return self._advice("demonstrator")

    def admissible(self) -> list[str] | None:
        """Return the admissible actions; None also if the server withholds them."""
        if "admissible" not in self._session.opened.reveals:
            return None
        advice = self._ask("admissible")
        if isinstance(advice, str):
            raise self._session.malformed("a single text as the list of admissible actions")
        return advice

    def scripted(self, seat: str) -> str:
        """Return the action of the task's scripted player for a seat, if the server reveals seats."""
        advice = self._ask("scripted", seat=seat)
        if not isinstance(advice, str):
            raise self._session.malformed("no action for a seat")
        return advice

    def tools(self, seat: str = FIRST_SEAT) -> list[dict[str, Any]]:
        """Return the schemas of the tools of the seat on turn."""
        return self._tools

    def answer(self) -> str | None:
        """Return the hidden answer, if the server reveals it."""
        return self._answer

    # Inside ----------------------------------------------------------------------------------------------------

    def _connect(self) -> ServerSession:
        session = ServerSession(self._url, self._token, self._call, timeout=self._timeout)
        opened = session.opened
        height, width, most = opened.images or (1, 1, 1)
        sound = 0 < opened.text <= MAX_TEXT and 0 < opened.task_turns <= MAX_TURNS and opened.size >= 0
        if not (sound and self._call.split in opened.splits and min(height, width, most) > 0):
            raise session.malformed("an impossible description of the task")
        if height * width * most > PIXELS:
            raise session.malformed(f"{most} pictures of {height} by {width}")
        if opened.images is not None:
            self.PICTURES = Images(height, width, most=most)  # type: ignore[misc]  # of this environment
        return session

    def _observed(self, answer: wire.StepAnswer) -> tuple[Observation, dict[str, Any]]:
        """Return observation and info as the task's own environment would."""
        if clean(answer.text, max_length=self._session.opened.text) != answer.text:
            raise self._session.malformed("an observation that is too long or contains control characters")
        observation: Observation = {"text": answer.text}
        if self.PICTURES is not None:
            observation["images"] = self._pictures(answer.images, self.PICTURES)
        if answer.tools is not UNSET:
            self._tools = answer.tools
        seat_rewards = answer.info.seat_rewards or {}
        if not all(map(math.isfinite, (answer.reward, *answer.info.reward_terms.values(), *seat_rewards.values()))):
            raise self._session.malformed("a reward that is not finite")
        info: dict[str, Any] = msgspec.to_builtins(answer.info)
        more = info.pop("more", {})
        info |= {name: value for name, value in more.items() if name not in wire.BASE | wire.ENGINE}
        self.latest_text, self.instance_name, self._seat = answer.text, answer.info.instance, answer.info.seat
        return observation, info

    def _pictures(self, images: list[str], space: Images) -> NDArray[np.uint8]:
        if len(images) > space.most:
            raise self._session.malformed(f"{len(images)} pictures; at most {space.most} are allowed")
        try:
            pictures = [decode(base64.b64decode(image, validate=True), space.height, space.width) for image in images]
        except ValueError as error:  # base64's errors included
            raise self._session.malformed(str(error)) from error
        return np.stack(pictures) if pictures else np.zeros((0, space.height, space.width, 3), np.uint8)

    def _check(self, ending: wire.Info | wire.CutAnswer) -> None:
        """Raise BackendError if an episode ended without a valid score or with an invalid figure."""
        score, success = ending.score, ending.success
        if isinstance(score, UnsetType) or isinstance(success, UnsetType) or not 0 <= score <= 1:
            raise self._session.malformed(f"an episode that ended with score {score} and success {success}")
        try:
            self._checked_figures(ending.figures or {})
        except ValueError as error:
            raise self._session.malformed(str(error)) from error

    def _advice(self, name: str) -> Iterator[str]:
        if name not in self._session.opened.reveals:
            raise InstanceError(f"the server at {self._url} withholds the {name}: start it with --reveal {name}")

        def actions() -> Iterator[str]:
            afresh = True
            while (advice := self._ask(name, afresh=afresh)) is not None:
                if not isinstance(advice, str):
                    raise self._session.malformed(f"several actions of the {name}")
                yield advice
                afresh = False

        return actions()

    def _ask(self, what: str, *, seat: str = "", afresh: bool = True) -> str | list[str] | None:
        return self._session.ask(wire.Ask(self._session.name, what, seat, afresh), wire.AskAnswer).advice


def _token_for(url: str) -> str:
    """Return LMGYM_REMOTE_TOKEN or "". Raises InstanceError if the token belongs to another server."""
    token, named = os.environ.get(wire.TOKEN, ""), os.environ.get(URL, "")
    if token and not (named and server(url) == server(named)):
        raise InstanceError(f"{wire.TOKEN} is sent only to the server at {URL}: set {URL} to {url!r}, or pass token=")
    return token


def _described(spec: TaskSpec, opened: wire.OpenAnswer) -> TaskSpec:
    """Return the spec of the task on the server; only the size of the open split is known."""
    splits = {name: opened.size if name == opened.split else 0 for name in opened.splits}
    return replace(spec, splits=splits, max_turns=opened.task_turns, deterministic=opened.deterministic)


def _plain(options: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """Return options that can be sent. Raises InstanceError for any other than text, number or switch."""
    if wrong := [name for name, value in options.items() if not isinstance(value, bool | int | float | str)]:
        raise InstanceError(
            f"option {wrong[0]} of a served task must be text, a number or a switch; got {options[wrong[0]]!r}"
        )
    return dict(options)
