"""An environment in a process of its own, for tasks whose spec wants one (`player="process"`).

Several of TextWorld's games in the threads of one process would share their interpreter's state; libraries whose
episodes run side by side play such tasks here, one process an episode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmgym.env.registry import build, find
from lmgym.env.spec import TaskSpec
from lmgym.errors import InstanceError, LmgymError
from lmgym.rollout.workers import Lost, ProcessHost

SLOT = 0  # of the process, which has no other environment
PATIENCE = 600.0  # seconds of a call

Answer = tuple[Mapping[str, Any], float, bool, bool, dict[str, Any]]  # of an environment's step


def opened(spec: TaskSpec, *, split: str, max_turns: int | None, **options: Any) -> LocalEnv | ProcessEnv:
    """The environment of a task, where its spec wants it. One that shows pictures is refused."""
    config = EnvConfig(spec.id, split, max_turns, options)
    return ProcessEnv(config) if spec.player == "process" else config.opened()


@dataclass(frozen=True)
class EnvConfig:
    """Which environment."""

    task: str
    split: str
    max_turns: int | None
    options: Mapping[str, Any]

    def opened(self) -> LocalEnv:
        """Return it, made here."""
        return LocalEnv(self)


class LocalEnv:
    """An environment in this process."""

    def __init__(self, config: EnvConfig) -> None:
        self.env = build(find(config.task), split=config.split, max_turns=config.max_turns, **config.options)
        if self.env.unwrapped.PICTURES is not None:
            self.env.close()
            raise InstanceError(f"{config.task} shows pictures, which do not pass here: use lmgym's own engine")

    def reset(self, seed: int, options: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Open an episode."""
        observation, info = self.env.reset(seed=seed, options=dict(options))
        return observation, info

    def step(self, action: str) -> Answer:
        """Play an action."""
        answer: Answer = self.env.step(action)
        return answer

    def cut(self) -> dict[str, Any]:
        """What is to be told of an episode that ends where it stands."""
        told: dict[str, Any] = self.env.unwrapped.cut()
        return told

    def close(self) -> None:
        """Close the environment."""
        self.env.close()


class ProcessEnv:
    """The same in a process, which is started again for the episode after its death."""

    def __init__(self, config: EnvConfig) -> None:
        self._config = config
        self._process = ProcessHost(PATIENCE)
        self._open()

    def reset(self, seed: int, options: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
        """Open an episode."""
        if self._process.pid is None:
            self._open()
        told: tuple[Mapping[str, Any], dict[str, Any]] = self._call("reset", seed, dict(options))
        return told

    def step(self, action: str) -> Answer:
        """Play an action."""
        answer: Answer = self._call("step", action)
        return answer

    def cut(self) -> dict[str, Any]:
        """What is to be told of an episode that ends where it stands."""
        told: dict[str, Any] = self._call("cut")
        return told

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
