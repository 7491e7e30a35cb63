"""Environments for libraries with loops of their own, in a separate process if the spec asks for it.

TextWorld's games share interpreter state, so concurrent episodes of such tasks (`player="process"`) need processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmgym.env.registry import build, find
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, LmgymError
from lmgym.rollout.workers import Lost, ProcessHost

SLOT = 0  # the only slot of the process
TIMEOUT = 600.0  # seconds per call

Answer = tuple[Mapping[str, Any], float, bool, bool, dict[str, Any]]  # of an environment's step


def opened(spec: TaskSpec, *, split: str, max_turns: int | None, **options: Any) -> LocalEnv | ProcessEnv:
    """Open an environment of a task, which must not show pictures, in this process or its own."""
    config = EnvConfig(spec.id, split, max_turns, options)
    return ProcessEnv(config) if spec.player == "process" else config.opened()


@dataclass(frozen=True)
class EnvConfig:
    """The task, split and options of an environment."""

    task: str
    split: str
    max_turns: int | None
    options: Mapping[str, Any]

    def opened(self) -> LocalEnv:
        """Open the environment in this process."""
        return LocalEnv(self)


class LocalEnv:
    """An environment in this process."""

    def __init__(self, config: EnvConfig) -> None:
        self.env = build(find(config.task), split=config.split, max_turns=config.max_turns, **config.options)
        if self.env.unwrapped.PICTURES is not None:
            self.env.close()
            raise InstanceError(
                f"{config.task} shows pictures, which this adapter does not support; use lmgym's own engine"
            )

    def reset(self, seed: int, options: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Open an episode."""
        observation, info = self.env.reset(seed=seed, options=dict(options))
        return observation, info

    def step(self, action: str) -> Answer:
        """Play an action."""
        answer: Answer = self.env.step(action)
        return answer

    def cut(self) -> dict[str, Any]:
        """End the episode in its present state and return its scores."""
        info: dict[str, Any] = self.env.unwrapped.cut()
        return info

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


class ProcessEnv:
    """An environment in its own process; a reset starts the process again after it died."""

    def __init__(self, config: EnvConfig) -> None:
        self._config = config
        self._process = ProcessHost(TIMEOUT)
        self._open()

    def reset(self, seed: int, options: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Open an episode."""
        if self._process.pid is None:
            self._open()
        result: tuple[Mapping[str, Any], dict[str, Any]] = self._call("reset", seed, dict(options))
        return result

    def step(self, action: str) -> Answer:
        """Play an action."""
        answer: Answer = self._call("step", action)
        return answer

    def cut(self) -> dict[str, Any]:
        """End the episode in its present state and return its scores."""
        info: dict[str, Any] = self._call("cut")
        return info

    def close(self) -> None:
        """End the process."""
        self._process.close()

    def _open(self) -> None:
        try:
            self._process.call(SLOT, "open", (self._config,))
        except LmgymError:
            self._process.close()
            raise

    def _call(self, method: str, *arguments: Any) -> Any:
        answer: Any = self._process.call(SLOT, method, arguments)
        if answer is None:
            raise Lost(f"{self._config.task}: the process of this episode is gone; reset() starts another")
        return answer
