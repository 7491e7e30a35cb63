"""Wrappers that Gymnasium does not have."""

from __future__ import annotations

import pickle
from typing import Any, SupportsFloat, cast

import gymnasium
from gymnasium.envs.registration import EnvSpec
from gymnasium.utils import RecordConstructorArgs

from lmgym.env.env import Observation, TextEnv
from lmgym.env.spaces import clean
from lmgym.errors import InstanceError
from lmgym.types import FIRST_SEAT

TextGym = gymnasium.Env[Observation, str]


class TimeLimit(gymnasium.Wrapper[Observation, str, Observation, str], RecordConstructorArgs):
    """Truncates an episode after `max_turns` actions of the agent and scores every truncated episode.

    Turns of other seats do not count, and those that answer the agent's last turn are still played: the episode is cut
    at the same place whoever plays these seats. In `gym.make`, `max_episode_steps` sets the limit as `max_turns` does;
    of both the smaller counts. Gymnasium's own `TimeLimit` truncates without a score; around it, this wrapper adds
    `score` and `success`.
    """

    def __init__(self, env: TextGym, *, max_turns: int | None = None) -> None:
        RecordConstructorArgs.__init__(self, max_turns=max_turns)
        task = cast(TextEnv, env.unwrapped)
        limit = task.max_turns if max_turns is None else max_turns
        if isinstance(env, gymnasium.wrappers.TimeLimit) and env.spec is not None:
            steps, env = env.spec.max_episode_steps, env.env  # this wrapper replaces Gymnasium's
            if steps is not None and steps != task.task.max_turns:
                limit = task.max_turns = steps if limit is None else min(steps, limit)
        limit = task.task.max_turns if limit is None else limit
        if limit < 1:
            raise InstanceError(f"max_turns must be at least 1; got {limit}")
        gymnasium.Wrapper.__init__(self, env)
        self.max_turns = limit
        self.turns = 0
        self.seat = FIRST_SEAT  # on turn

    @property
    def spec(self) -> EnvSpec | None:  # type: ignore[override]  # read-only, as in Gymnasium's own TimeLimit
        """Gymnasium's spec with the turn limit as `max_episode_steps`; unset if other seats' turns are steps too."""
        spec = super().spec
        if spec is not None and cast(TextEnv, self.unwrapped).others != "caller":
            spec.max_episode_steps = min(self.max_turns, spec.max_episode_steps or self.max_turns)
        return spec

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Open an episode and count its turns from 0."""
        self.turns = 0
        observation, info = self.env.reset(seed=seed, options=options)
        self.seat = info["seat"]
        return observation, info

    def step(self, action: str) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Play one action; truncate and score the episode if the limit is reached before it terminates."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.turns += self.seat == FIRST_SEAT
        self.seat = info["seat"]
        truncated = truncated or (self.turns >= self.max_turns and self.seat == FIRST_SEAT)
        if truncated and "score" not in info:
            info = {**info, **cast(TextEnv, self.unwrapped).cut()}
        return observation, reward, terminated, truncated and not terminated, info

    def save_episode(self) -> bytes | None:
        """Return the open episode, its count of turns included; None if the task cannot save it."""
        saved = cast(TextEnv, self.unwrapped).save_episode()
        return None if saved is None else pickle.dumps((self.turns, self.seat, saved))

    def restore_episode(self, saved: bytes) -> None:
        """Continue an episode that `save_episode` returned here or in an environment of the same options."""
        self.turns, self.seat, episode = pickle.loads(saved)
        cast(TextEnv, self.unwrapped).restore_episode(episode)


class ShowAdmissible(gymnasium.Wrapper[Observation, str, Observation, str], RecordConstructorArgs):
    """Appends the admissible actions to the observation's text and sets `info["admissible"]`."""

    def __init__(self, env: TextGym, *, heading: str = "\n\nAdmissible actions: ") -> None:
        RecordConstructorArgs.__init__(self, heading=heading)
        gymnasium.Wrapper.__init__(self, env)
        self.heading = heading

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Observation, dict[str, Any]]:
        """Reset and append the admissible actions. Raises InstanceError if the task lists none."""
        observation, info = self._show(*self.env.reset(seed=seed, options=options))
        if "admissible" not in info:
            raise InstanceError(f"{self.unwrapped} lists no admissible actions; remove the ShowAdmissible wrapper")
        return observation, info

    def step(self, action: str) -> tuple[Observation, SupportsFloat, bool, bool, dict[str, Any]]:
        """Step and append the admissible actions, unless the episode is over or the seat on turn has no list."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        if not (terminated or truncated):
            observation, info = self._show(observation, info)
        return observation, reward, terminated, truncated, info

    def _show(self, observation: Observation, info: dict[str, Any]) -> tuple[Observation, dict[str, Any]]:
        admissible = cast(TextEnv, self.unwrapped).admissible()
        if admissible is None:
            return observation, info
        text = clean(observation["text"] + self.heading + ", ".join(admissible))
        return {**observation, "text": text}, {**info, "admissible": admissible}
