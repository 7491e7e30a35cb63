"""An episode for libraries with loops of their own: text in, text out."""

from __future__ import annotations

from typing import Any

from lmgym.env.registry import find
from lmgym.errors import BackendError, InstanceError, LmgymError
from lmgym.evaluation.runner import Outcome, pictured, try_seed
from lmgym.rollout.env_handle import EnvHost, Setting, StepResult
from lmgym.rollout.workers import Lost, ProcessHost

SLOT = 0  # the only slot of an episode's host
TIMEOUT = 600.0  # seconds per call to a process


class TextEpisode:
    """An environment and the record of its current episode.

    `end` returns the outcome and cuts an unfinished episode first. After a BackendError `act` and `end` raise that
    error again, so that a library that goes on after errors cannot score the episode. Environments whose spec asks for
    a process (TextWorld's games share interpreter state) run in one, which `begin` starts again after its death.
    """

    def __init__(self, task: str, *, split: str = "test", max_turns: int | None = None, **options: Any) -> None:
        spec = find(task)
        if pictured(spec.id, options):
            raise InstanceError(f"{spec.id} shows pictures, which adapters do not support; use lmgym's own engine")
        self.task, self.split = spec.id, split
        options = options if max_turns is None else {**options, "max_turns": max_turns}
        self._setting = Setting(task=spec.id, split=split, options=options)
        self.host: EnvHost | ProcessHost = ProcessHost(TIMEOUT) if spec.player == "process" else EnvHost()
        self.broken: BackendError | None = None
        self.index: int | None = None
        self.info: dict[str, Any] = {}
        self._open()
        self._clear()

    def begin(self, *, index: int | None = None, attempt: int = 0, seed: int | None = None) -> str:
        """Start an instance and return its first observation. Default seed: the leaderboard's for this try."""
        if index is None and seed is None:
            raise InstanceError(f"{self.task}: choose an instance by index, or draw one by seed")
        if seed is None:
            seed = try_seed(self.task, self.split, index or 0, attempt)
        if isinstance(self.broken, Lost):
            self._open()
        self._clear()
        result = self._call("reset", seed, {} if index is None else {"index": index}, {})
        self.info = dict(result.info)
        self.index, self.attempt = int(self.info["instance"].rpartition("/")[2]), attempt
        self.over = False
        return result.observation.text

    def act(self, action: str) -> str:
        """Play an action and return the next observation."""
        if not self.info:
            raise InstanceError(f"{self.task}: no episode is open; call begin() first")
        if self.broken is not None:
            raise self.broken
        result = self._call("step", action)
        self.info = dict(result.info)
        self.turns += 1
        self.invalid += not result.info["valid"]
        self.reward += result.reward
        self.over, self.truncated = result.terminated or result.truncated, result.truncated
        if self.over:
            self.stop = "max_turns" if result.truncated else "done"
        return result.observation.text

    def end(self, stop: str = "left") -> Outcome:
        """Return the outcome; an unfinished episode is cut and has `stop` as its reason to end."""
        if self.broken is not None:
            raise self.broken
        if not self.over:
            self.info |= self._call("cut").info
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
        self.host.close()

    def _open(self) -> None:
        try:
            self.host.call(SLOT, "open", (self._setting,))
        except LmgymError:
            self.close()
            raise

    def _call(self, method: str, *arguments: Any) -> StepResult:
        try:
            result: StepResult | None = self.host.call(SLOT, method, arguments)
        except BackendError as error:
            self.broken, self.over = error, True
            raise
        if result is None:
            raise InstanceError(f"{self.task}: this episode is closed; make another TextEpisode")
        return result

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
