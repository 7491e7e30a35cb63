"""An episode for libraries with loops of their own: text in, text out."""

from __future__ import annotations

from typing import Any

from lmgym.env.registry import find
from lmgym.errors import BackendError, InstanceError
from lmgym.evaluation.runner import Outcome, try_seed
from lmgym.interop.process_env import opened


class TextEpisode:
    """An environment and the record of its current episode.

    `end` returns the outcome and cuts an unfinished episode first. After a BackendError it raises that error again, so
    that a library that goes on after errors cannot score the episode.
    """

    def __init__(self, task: str, *, split: str = "test", max_turns: int | None = None, **options: Any) -> None:
        spec = find(task)
        self.task, self.split = spec.id, split
        self.env = opened(spec, split=split, max_turns=max_turns, **options)
        self.broken: BackendError | None = None
        self.index: int | None = None
        self.info: dict[str, Any] = {}
        self._clear()

    def begin(self, *, index: int | None = None, attempt: int = 0, seed: int | None = None) -> str:
        """Start an instance and return its first observation. Default seed: the leaderboard's for this try."""
        if index is None and seed is None:
            raise InstanceError(f"{self.task}: choose an instance by index, or draw one by seed")
        if seed is None:
            seed = try_seed(self.task, self.split, index or 0, attempt)
        self._clear()
        try:
            observation, self.info = self.env.reset(seed=seed, options={} if index is None else {"index": index})
        except BackendError as error:
            self.broken = error
            raise
        self.index, self.attempt = int(self.info["instance"].rpartition("/")[2]), attempt
        self.over = False
        text: str = observation["text"]
        return text

    def act(self, action: str) -> str:
        """Play an action and return the next observation."""
        if not self.info:
            raise InstanceError(f"{self.task}: no episode is open; call begin() first")
        try:
            observation, reward, terminated, truncated, info = self.env.step(action)
        except BackendError as error:
            self.broken, self.over = error, True
            raise
        self.info = info
        self.turns += 1
        self.invalid += not info["valid"]
        self.reward += float(reward)
        self.over, self.truncated = terminated or truncated, truncated
        if self.over:
            self.stop = "max_turns" if truncated else "done"
        text: str = observation["text"]
        return text

    def end(self, stop: str = "left") -> Outcome:
        """Return the outcome; an unfinished episode is cut and has `stop` as its reason to end."""
        if self.broken is not None:
            raise self.broken
        if not self.over:
            self.info = {**self.info, **self.env.cut()}
            self.over = self.truncated = True
            self.stop = stop
        if "score" not in self.info:
            raise InstanceError(f"{self.task}: no episode is open; call begin() first")
        success = bool(self.info["success"])
        return Outcome(
            index=self.index,
            attempt=self.attempt,
            score=float(self.info["score"]),
            success=success,
            reward=self.reward,
            turns=self.turns,
            invalid=self.invalid,
            truncated=self.truncated,
            stop=self.stop,
            solved_at=self.turns if success else None,
        )

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _clear(self) -> None:
        """Clear the record, so that a failed reset leaves no episode open."""
        self.over = True
        self.index = None
        self.attempt = self.turns = self.invalid = 0
        self.reward = 0.0
        self.truncated = False
        self.stop = ""
        self.info = {}
        self.broken = None
