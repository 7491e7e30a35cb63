"""A served environment, where its worker runs it: hidden information is removed here and never leaves the worker."""

from __future__ import annotations

import base64
import json
import logging
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from lmgym.backends import wire
from lmgym.env import registry
from lmgym.env.pictures import encode
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, LmgymError
from lmgym.types import FIRST_SEAT

LOG = logging.getLogger("lmgym.serve")


class EnvCrash(LmgymError):
    """An error that the environment should not have raised, as a traceback."""


@dataclass(frozen=True, kw_only=True)
class SessionConfig:
    """The environment of a session, and what its clients may learn."""

    spec: TaskSpec
    split: str
    options: Mapping[str, Any]
    reveals: frozenset[str]  # of wire.SECRETS

    def key(self) -> str:
        """Return a name for equal environments."""
        return json.dumps([self.spec.id, self.split, self.options], sort_keys=True, default=repr)

    def opened(self) -> EnvSession:
        """Open the environment."""
        return EnvSession(self)


class EnvSession:
    """An environment that answers the calls of the wire protocol."""

    def __init__(self, config: SessionConfig) -> None:
        self.config = config
        self.advice: dict[str, Iterator[str]] = {}
        self.begun = False  # True after the first reset
        self.tools: list[dict[str, Any]] = []  # as last sent
        self.env: Any = None
        self.error: LmgymError | None = None  # why the environment did not open
        try:
            self.env = registry.build(config.spec, split=config.split, **config.options)
            self.task = self.env.unwrapped
        except BaseException as error:  # noqa: BLE001  (the answer to `open` reports it)
            self.error = reported(error)

    def answer(self, call: wire.EnvCall) -> wire.Answer | LmgymError:
        """Make a call. Errors are returned, since the pool gives up an environment that raises one."""
        try:
            match call:
                case wire.Open():
                    return self.error or self.describe()
                case wire.Reset():
                    return self.reset(call)
                case wire.Step():
                    return self.step(call)
                case wire.Cut():
                    return self.cut()
                case wire.Ask():
                    return self.ask(call)
        except BaseException as error:  # noqa: BLE001  (returned to the client's session)
            return reported(error)

    def describe(self) -> wire.OpenAnswer:
        """Describe the environment; the server adds the session's name."""
        spec, pictures = self.task.task, self.task.PICTURES
        return wire.OpenAnswer(
            session="",
            task=spec.id,
            split=self.task.split,
            splits=list(spec.splits),
            size=self.task.size(),
            max_turns=self.env.max_turns,
            task_turns=spec.max_turns,
            text=self.task.observation_space["text"].max_length,
            images=None if pictures is None else (pictures.height, pictures.width, pictures.most),
            deterministic=spec.deterministic,
            reveals=sorted(self.config.reveals),
        )

    def reset(self, call: wire.Reset) -> wire.StepAnswer:
        """Start an episode."""
        self.advice.clear()
        options: dict[str, Any] = {} if call.index is None else {"index": call.index}
        if call.instance is not None:
            options["instance"] = call.instance
        observation, info = self.env.reset(seed=call.seed, options=options)
        self.begun = True
        self.tools = []
        return self._step_answer(observation, info)

    def step(self, call: wire.Step) -> wire.StepAnswer:
        """Play an action."""
        if call.reseed is not None:
            self._check_begun()
            self.task.reseed(call.reseed)
        observation, reward, terminated, truncated, info = self.env.step(call.action)
        answer = self._step_answer(observation, info)
        answer.reward, answer.terminated, answer.truncated = float(reward), terminated, truncated
        return answer

    def cut(self) -> wire.CutAnswer:
        """End the episode in its present state."""
        self._check_begun()
        info = self.task.cut()
        return wire.CutAnswer(
            info["score"], info["success"], info.get("seat_scores", UNSET), info.get("figures", UNSET)
        )

    def ask(self, call: wire.Ask) -> wire.AskAnswer:
        """Return the action of an oracle, a demonstrator or a scripted seat, or all admissible actions."""
        self._check_begun()
        if call.what == "scripted":
            return wire.AskAnswer(self.task.scripted(call.seat))
        if call.what == "admissible":
            return wire.AskAnswer(self.task.admissible())
        if call.afresh or call.what not in self.advice:
            self.advice[call.what] = self.task.oracle() if call.what == "oracle" else self.task.demonstrator()
        return wire.AskAnswer(next(self.advice[call.what], None))

    def close(self) -> None:
        """Close the environment, which may be broken."""
        try:
            if self.env is not None:
                self.env.close()
        except Exception as error:  # noqa: BLE001  (the worker goes on with other environments)
            LOG.warning("%s could not be closed: %r", self.config.spec.id, error)

    def _check_begun(self) -> None:
        if not self.begun:
            raise InstanceError(f"{self.config.spec.id}: no episode is open; call reset first")

    def _step_answer(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> wire.StepAnswer:
        public = {name: value for name, value in info.items() if name in wire.BASE}
        if "answer" not in self.config.reveals:
            public.pop("answer", None)
        if "prompts" in public and "seats" not in self.config.reveals:  # another seat's prompt may tell the answer
            public["prompts"] = {seat: text for seat, text in public["prompts"].items() if seat == FIRST_SEAT}
        public["more"] = {name: info[name] for name in self.config.spec.public_info if name in info}
        pictures = [base64.b64encode(encode(picture)[1]).decode() for picture in observation.get("images", ())]
        answer = wire.StepAnswer(observation["text"], wire.Info(**public), pictures)
        tools = [] if "score" in info else self.task.tools(info["seat"])
        if tools != self.tools:
            answer.tools = self.tools = tools
        return answer


def reported(error: BaseException) -> LmgymError:
    """Return an error that passes between processes."""
    if isinstance(error, LmgymError):
        return error
    return EnvCrash("".join(traceback.format_exception(error)))
