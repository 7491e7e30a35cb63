"""One served environment, in the thread or process that it lives in: what it withholds never leaves from here."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from msgspec import UNSET

from lmgym.backends import wire
from lmgym.env import registry
from lmgym.env.pictures import encode
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError


@dataclass(frozen=True, kw_only=True)
class SessionConfig:
    """Which environment, and what of it may be told."""

    spec: TaskSpec
    split: str
    options: Mapping[str, Any]
    reveals: frozenset[str]  # of wire.SECRETS

    def opened(self) -> EnvSession:
        """Return the environment, made here."""
        return EnvSession(self)


class EnvSession:
    """An environment that says what the wire has words for."""

    def __init__(self, config: SessionConfig) -> None:
        self.config = config
        self.env = registry.build(config.spec, split=config.split, **config.options)
        self.task = self.env.unwrapped
        self.advice: dict[str, Iterator[str]] = {}
        self.open = False  # whether an episode was begun

    def describe(self) -> wire.OpenAnswer:
        """Say what is played here; the session has no name yet."""
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
        """Begin an episode."""
        self.advice.clear()
        options: dict[str, Any] = {} if call.index is None else {"index": call.index}
        if call.instance is not None:
            options["instance"] = call.instance
        observation, info = self.env.reset(seed=call.seed, options=options)
        self.open = True
        played = self._played(observation, info)
        played.tools = self.task.tools()
        return played

    def step(self, call: wire.Step) -> wire.StepAnswer:
        """Play an action."""
        if call.reseed is not None:
            self._begun()
            self.task.reseed(call.reseed)
        observation, reward, terminated, truncated, info = self.env.step(call.action)
        played = self._played(observation, info)
        played.reward, played.terminated, played.truncated = float(reward), terminated, truncated
        return played

    def cut(self, call: wire.Cut) -> wire.CutAnswer:
        """End the episode."""
        self._begun()
        ending = self.task.cut()
        return wire.CutAnswer(ending["score"], ending["success"], ending.get("seat_scores", UNSET))

    def ask(self, call: wire.Ask) -> wire.AskAnswer:
        """Say what an adviser, whom the operator lets speak, or the player of a seat would do."""
        self._begun()
        if call.what == "scripted":
            return wire.AskAnswer(self.task.scripted(call.seat))
        if call.what == "admissible":
            return wire.AskAnswer(self.task.admissible())
        if call.afresh or call.what not in self.advice:
            self.advice[call.what] = self.task.oracle() if call.what == "oracle" else self.task.demonstrator()
        return wire.AskAnswer(next(self.advice[call.what], None))

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _begun(self) -> None:
        if not self.open:
            raise InstanceError(f"{self.config.spec.id}: no episode is open; call reset first")

    def _played(self, observation: Mapping[str, Any], info: Mapping[str, Any]) -> wire.StepAnswer:
        told = {name: value for name, value in info.items() if name in wire.BASE}
        if "answer" not in self.config.reveals:
            told.pop("answer", None)
        told["more"] = {name: info[name] for name in self.config.spec.told if name in info}
        pictures = [base64.b64encode(encode(picture)[1]).decode() for picture in observation.get("images", ())]
        return wire.StepAnswer(observation["text"], wire.Info(**told), pictures)
