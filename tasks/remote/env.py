"""A served environment as if it were here: the same observations, rewards, scores and spaces."""

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
from msgspec import UnsetType
from numpy.typing import NDArray

from lmgym.backends import wire
from lmgym.backends.remote import ServerSession, server
from lmgym.env.env import Observation, TextEnv
from lmgym.env.pictures import decode
from lmgym.env.spaces import MAX_TEXT, Images, clean
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError
from lmgym.tasks.remote import SPEC

URL = "LMGYM_REMOTE_URL"
LONGEST = 10_000  # turns that a server allows; the limit that holds is applied here
PIXELS = 1 << 26  # of all pictures of an observation


class RemoteEnv(TextEnv):
    """Any task of a server that runs `lmgym serve`."""

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
        """Connect, and open a session.

        Args:
            url: of the server, http(s)://HOST:PORT; "" takes it from LMGYM_REMOTE_URL.
            task: id or folder's name of what is played there.
            token: None takes it from LMGYM_REMOTE_TOKEN, so that it stands in no record, and tells it only to the
                server that LMGYM_REMOTE_URL names: an address may come from a record of a stranger's.
            options: of that task, as far as the server lets them be chosen.
            timeout: seconds of one call.
            split: of that task.
            spec: what registered this environment.
            common: what every task takes: others, render_mode.
        """
        url = url or os.environ.get(URL, "")
        if not (url and task):
            raise InstanceError(f"say where it is played and what: url='http://HOST:PORT' (or {URL}), task='wordle'")
        if not timeout > 0:
            raise InstanceError(f"timeout is seconds above 0; got {timeout!r}")
        self._url, self._token, self._timeout = url, token or _token_for(url), timeout
        self._call = wire.Open(task, split, _plain(options or {}), LONGEST, common.get("others", "scripted"))
        self._session = self._connected()
        opened = self._session.opened
        super().__init__(spec=_described(spec or SPEC, opened), split=split, **common)
        self._tools: list[dict[str, Any]] = []
        self._answer: str | None = None
        self._reseed: int | None = None

    # Gymnasium's side ------------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Open an episode there. After a lost connection a seed opens another session; without one, chance is gone."""
        self._seed(seed)
        choice = options or {}
        if strange := [name for name in choice if name not in ("index", "instance")]:
            raise InstanceError(f"reset takes the options 'index' and 'instance'; got {', '.join(map(repr, strange))}")
        if not self._session.alive and seed is not None:
            self._session = self._connected()
        instance, index = choice.get("instance"), choice.get("index")
        if instance is not None or index is not None:
            index = None if instance is not None else self._checked_index(index)
        call = wire.Reset(self._session.name, None if seed is None else operator.index(seed), index, instance)
        played = self._session.ask(call, wire.StepAnswer)
        self._over, self._reseed = False, None
        self._tools = played.tools
        observation, info = self._told(played)
        self._answer = info.get("answer")
        return observation, info

    def step(self, action: str) -> tuple[Observation, float, bool, bool, dict[str, Any]]:
        """Play an action there."""
        if self._over:
            raise self._reset_needed()
        reseed, self._reseed = self._reseed, None
        played = self._session.ask(wire.Step(self._session.name, clean(action), reseed), wire.StepAnswer)
        observation, info = self._told(played)
        self._over = played.terminated or played.truncated
        if self._over:
            self._check(played.info.score, played.info.success)
        return observation, played.reward, played.terminated, played.truncated, info

    def cut(self) -> dict[str, Any]:
        """End the episode there."""
        ending = self._session.ask(wire.Cut(self._session.name), wire.CutAnswer)
        self._check(ending.score, ending.success)
        self._over = True
        told: dict[str, Any] = msgspec.to_builtins(ending)
        return told

    def reseed(self, seed: int) -> None:
        """Give the rest of the episode fresh chance: it goes with the next action."""
        super().reseed(seed)
        self._reseed = seed

    def close(self) -> None:
        """End the session."""
        self._session.close()

    # What the task there says ------------------------------------------------------------------------------------

    def size(self) -> int:
        """Instances of the split."""
        return self._session.opened.size

    def score_if_cut(self) -> float:
        """Refuse: a server tells where an episode stands only by ending it."""
        raise InstanceError(
            f"{self._call.task} is played at a server, which gives the score of a cut episode through cut() only"
        )

    def oracle(self) -> Iterator[str]:
        """Yield what the oracle says, if the operator lets it speak."""
        return self._advised("oracle")

    def demonstrator(self) -> Iterator[str]:
        """Yield what the demonstrator says, if the operator lets it speak."""
        return self._advised("demonstrator")

    def admissible(self) -> list[str] | None:
        """Actions that make sense; None also where they are withheld."""
        if "admissible" not in self._session.opened.reveals:
            return None
        advice = self._asked("admissible")
        if isinstance(advice, str):
            raise self._session.malformed("one text for all admissible actions")
        return advice

    def scripted(self, seat: str) -> str:
        """What the task's own player of a seat does, if the operator lets clients play seats."""
        advice = self._asked("scripted", seat=seat)
        if not isinstance(advice, str):
            raise self._session.malformed("no action of a seat")
        return advice

    def tools(self) -> list[dict[str, Any]]:
        """Schemas of the calls that actions are, as they came with the episode."""
        return self._tools

    def answer(self) -> str | None:
        """The hidden truth, where it is revealed."""
        return self._answer

    # Inside ----------------------------------------------------------------------------------------------------

    def _connected(self) -> ServerSession:
        session = ServerSession(self._url, self._token, self._call, timeout=self._timeout)
        opened = session.opened
        height, width, most = opened.images or (1, 1, 1)
        sound = 0 < opened.text <= MAX_TEXT and 0 < opened.task_turns <= LONGEST and opened.size >= 0
        if not (sound and self._call.split in opened.splits and min(height, width, most) > 0):
            raise session.malformed("a task that cannot be")
        if height * width * most > PIXELS:
            raise session.malformed(f"{most} pictures of {height} by {width}")
        if opened.images is not None:
            self.PICTURES = Images(height, width, most=most)  # type: ignore[misc]  # of this environment
        return session

    def _told(self, played: wire.StepAnswer) -> tuple[Observation, dict[str, Any]]:
        """An observation and its info, as the task's own environment would give them."""
        if clean(played.text, max_length=self._session.opened.text) != played.text:
            raise self._session.malformed("an observation that is too long, or no text")
        observation: Observation = {"text": played.text}
        if self.PICTURES is not None:
            observation["images"] = self._pictures(played.images, self.PICTURES)
        gains = played.info.seat_rewards or {}
        if not all(map(math.isfinite, (played.reward, *played.info.reward_terms.values(), *gains.values()))):
            raise self._session.malformed("a reward that is no number")
        info: dict[str, Any] = msgspec.to_builtins(played.info)
        beside = info.pop("more", {})
        info |= {name: said for name, said in beside.items() if name not in wire.BASE | wire.ENGINE}
        self.latest_text, self.instance_name, self._seat = played.text, played.info.instance, played.info.seat
        return observation, info

    def _pictures(self, images: list[str], space: Images) -> NDArray[np.uint8]:
        if len(images) > space.most:
            raise self._session.malformed(f"{len(images)} pictures where {space.most} are the most")
        try:
            found = [decode(base64.b64decode(image, validate=True), space.height, space.width) for image in images]
        except ValueError as error:  # what base64 raises is one
            raise self._session.malformed(str(error)) from error
        return np.stack(found) if found else np.zeros((0, space.height, space.width, 3), np.uint8)

    def _check(self, score: float | UnsetType, success: bool | UnsetType) -> None:
        """Raise BackendError where an episode does not end as one must."""
        if isinstance(score, UnsetType) or isinstance(success, UnsetType) or not 0 <= score <= 1:
            raise self._session.malformed(f"an episode that ends with score {score} and success {success}")

    def _advised(self, name: str) -> Iterator[str]:
        if name not in self._session.opened.reveals:
            raise InstanceError(f"the server at {self._url} withholds the {name}: its operator says --reveal {name}")
        return self._following(name)

    def _following(self, name: str) -> Iterator[str]:
        afresh = True
        while (advice := self._asked(name, afresh=afresh)) is not None:
            if not isinstance(advice, str):
                raise self._session.malformed(f"several actions of the {name}")
            yield advice
            afresh = False

    def _asked(self, what: str, *, seat: str = "", afresh: bool = True) -> str | list[str] | None:
        return self._session.ask(wire.Ask(self._session.name, what, seat, afresh), wire.AskAnswer).advice


def _token_for(url: str) -> str:
    """The environment's token, "" where it has none. Raises InstanceError where it is another server's."""
    token, named = os.environ.get(wire.TOKEN, ""), os.environ.get(URL, "")
    if token and not (named and server(url) == server(named)):
        raise InstanceError(f"{wire.TOKEN} is told to the server at {URL} only: set that to {url!r}, or give token=")
    return token


def _described(spec: TaskSpec, opened: wire.OpenAnswer) -> TaskSpec:
    """The card of what is played: only its own split's size is known."""
    splits = {name: opened.size if name == opened.split else 0 for name in opened.splits}
    return replace(spec, splits=splits, max_turns=opened.task_turns, deterministic=opened.deterministic)


def _plain(options: Mapping[str, Any]) -> dict[str, bool | int | float | str]:
    """Options as they can travel. Raises InstanceError for what is no word or number."""
    if wrong := [name for name, value in options.items() if not isinstance(value, bool | int | float | str)]:
        raise InstanceError(f"an option of a served task is a word or a number; got {wrong[0]}={options[wrong[0]]!r}")
    return dict(options)
