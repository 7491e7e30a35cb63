"""Wrappers that Gymnasium does not have; for everything else use its own."""

from __future__ import annotations

from typing import Any, SupportsFloat, cast

import gymnasium
from gymnasium.utils import RecordConstructorArgs

from lmgym.env.env import Observation, TextEnv
from lmgym.env.spaces import clean
from lmgym.errors import InstanceError
from lmgym.types import FIRST_SEAT

TextGym = gymnasium.Env[Observation, str]


class TimeLimit(gymnasium.Wrapper[Observation, str, Observation, str], RecordConstructorArgs):
    """Cuts an episode after `max_turns` actions of the agent and scores it by the task's `score_if_cut`.

    Gymnasium's own `TimeLimit` truncates without a score. Turns of other seats do not count, and those that answer the
    last counted one are still played: whoever plays these seats, the episode is cut at the same place.
    """

    def __init__(self, env: TextGym, *, max_turns: int) -> None:
        if max_turns < 1:
            raise InstanceError(f"max_turns must be at least 1; got {max_turns}")
        RecordConstructorArgs.__init__(self, max_turns=max_turns)
        gymnasium.Wrapper.__init__(self, env)
        self.max_turns = max_turns
        self.turns = 0
        self.seat = FIRST_SEAT  # whose turn it is

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Start counting anew."""
        self.turns = 0
        observation, info = self.env.reset(seed=seed, options=options)
        self.seat = info["seat"]
        return observation, info

    def step(self, action: str) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play one action; truncate when it was the last allowed one and did not end the episode."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.turns += self.seat == FIRST_SEAT
        self.seat = info["seat"]
        if self.turns >= self.max_turns and self.seat == FIRST_SEAT and not (terminated or truncated):
            truncated = True
            info = {**info, **cast(TextEnv, self.unwrapped).cut()}
        return observation, reward, terminated, truncated, info


class ShowAdmissible(gymnasium.Wrapper[Observation, str, Observation, str], RecordConstructorArgs):
    """Appends the admissible actions to the text and puts them into `info["admissible"]`."""

    def __init__(self, env: TextGym, *, heading: str = "\n\nAdmissible actions: ") -> None:
        RecordConstructorArgs.__init__(self, heading=heading)
        gymnasium.Wrapper.__init__(self, env)
        self.heading = heading

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset and show."""
        return self._show(*self.env.reset(seed=seed, options=options))

    def step(self, action: str) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step and show, but for the last observation."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            observation, info = self._show(observation, info)
        return observation, reward, terminated, truncated, info

    def _show(self, observation: Observation, info: dict[str, Any]) -> tuple[Observation, dict[str, Any]]:
        admissible = cast(TextEnv, self.unwrapped).admissible()
        if admissible is None:
            raise InstanceError(f"{self.unwrapped} lists no admissible actions: do without ShowAdmissible")
        text = clean(observation["text"] + self.heading + ", ".join(admissible))
        return {**observation, "text": text}, {**info, "admissible": admissible}
