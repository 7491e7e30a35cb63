"""Players of a task's seats in training: the policy itself, frozen copies of it, or any policy by its string.

The seat "agent" is the policy's unless a recipe names another player for it.

Evaluations keep the task's own players unless a stage says otherwise. Turns of a player that is not trained are never
in a batch.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from lmgym.policy.base import Policy
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.scripted import hinted
from lmgym.rollout.episode_state import SeatConfig
from lmgym.train.ranges import PositiveInt, check_ranges
from lmgym.types import Trajectory

SELF, START, SCRIPTED = "self", "start", "scripted"


@dataclass(frozen=True, kw_only=True)
class Snapshots:
    """A player that is one of the policy's own past weights, drawn anew for each step."""

    every: PositiveInt = 5  # steps between snapshots; the first is taken at once
    size: PositiveInt = 4  # snapshots kept; the oldest is dropped

    def __post_init__(self) -> None:
        check_ranges(self)


@dataclass(frozen=True, kw_only=True)
class Seat:
    """The player of a seat: self, start (the weights at its first step), scripted, snapshots or a policy string."""

    player: str | Snapshots = SELF
    prompt: str | None = None  # system prompt; None: the task's own
    trained: bool = True  # of `self` only; all other players are frozen
    imitated: bool = False  # imitation includes the seat's turns, played by the task's demonstrator

    @property
    def learns(self) -> bool:
        """True if the policy learns from the seat's turns."""
        return self.trained and self.player == SELF


def is_trained(trajectory: Trajectory) -> bool:
    """Return True unless the trajectory is that of a seat whose player is not trained."""
    return bool(trajectory.tags.get("trained", True))


class Seats:
    """The players of a run; `state_dict` has the weights of those that cannot be made again."""

    def __init__(self, seats: Mapping[str, Seat], policy: LocalPolicy, *, seed: int) -> None:
        self._seats = {name: seat for name, seat in seats.items() if seat.player != SCRIPTED}
        self._policy, self._seed = policy, seed
        self._configs: dict[str, SeatConfig] = {}
        self.demonstrators = {
            name: SeatConfig(policy=hinted("demonstrator"), prompt=seat.prompt)
            for name, seat in seats.items()
            if seat.imitated
        }
        self._frozen: dict[str, LocalPolicy] = {}  # by seat: at the start, or of the snapshot in play
        self._snapshots: dict[str, list[dict[str, Tensor]]] = {}  # by seat, oldest first
        self._steps = 0  # played so far

    def configs(self) -> dict[str, SeatConfig]:
        """Return the players as an engine takes them; always the same object."""
        for name, seat in self._seats.items() if not self._configs else ():
            self._configs[name] = SeatConfig(policy=self._player(name, seat), prompt=seat.prompt, trained=seat.learns)
        for frozen in self._frozen.values():
            frozen.sampling = self._policy.sampling
        return self._configs

    def begin_step(self) -> dict[str, SeatConfig]:
        """Take snapshots that are due, draw those that play this step, and return the players."""
        configs = self.configs()
        for number, (name, seat) in enumerate(self._seats.items()):
            if isinstance(seat.player, Snapshots):
                kept = self._snapshots.setdefault(name, [])
                if self._steps % seat.player.every == 0:
                    kept.append({key: weight.clone() for key, weight in self._policy.model.state_dict().items()})
                    del kept[: -seat.player.size]
                chosen = np.random.default_rng([self._seed, self._steps, number]).integers(len(kept))
                self._frozen[name].model.load_state_dict(kept[int(chosen)])
                self._frozen[name].update()
        self._steps += 1
        return configs

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps, the start's weights and the snapshots."""
        started = {
            name: frozen.model.state_dict() for name, frozen in self._frozen.items() if name not in self._snapshots
        }
        return {"steps": self._steps, "start": started, "snapshots": self._snapshots}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        self._steps, self._snapshots = state["steps"], state["snapshots"]
        if self._steps or state["start"]:  # an evaluation may have made the players before the first step
            self.configs()
        for name, weights in state["start"].items():
            self._frozen[name].model.load_state_dict(weights)
            self._frozen[name].update()

    def _player(self, name: str, seat: Seat) -> Policy | None:
        """Return the policy of a seat; None is the policy in training."""
        if seat.player == SELF:
            return None
        if seat.player == START or isinstance(seat.player, Snapshots):
            frozen = copy.copy(self._policy)
            frozen.model = copy.deepcopy(self._policy.model).requires_grad_(False)
            frozen.update()
            self._frozen[name] = frozen
            return frozen
        from lmgym.train.load import load_policy  # imports recipes

        sampling = self._policy.sampling
        return load_policy(seat.player, sampling.temperature, self._seed, max_tokens=sampling.max_tokens)
