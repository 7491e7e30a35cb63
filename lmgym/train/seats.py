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

from lmgym.evaluation.policies import default_max_tokens
from lmgym.policy.base import Policy
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.scripted import hinted
from lmgym.rollout.episode_state import SeatConfig
from lmgym.types import Trajectory

OWN_PLAYERS = SELF, START, SCRIPTED = "self", "start", "scripted"  # all others are policy strings


@dataclass(frozen=True, kw_only=True)
class Seat:
    """The player of a seat: self, start (the weights at its first step), scripted or a policy string."""

    player: str = SELF
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
        self._frozen: dict[str, LocalPolicy] = {}  # by seat, with the weights of the start
        self._started = False  # False: frozen copies follow the policy

    def configs(self, *, interim: bool = False) -> dict[str, SeatConfig]:
        """Return the players as an engine takes them; always the same object.

        The first call that is not for an `interim` evaluation, which can be in the middle of imitation, is the start.
        """
        for name, seat in self._seats.items() if not self._configs else ():
            self._configs[name] = SeatConfig(policy=self._player(name, seat), prompt=seat.prompt, trained=seat.learns)
        for frozen in self._frozen.values():
            frozen.sampling = self._policy.sampling
            if not self._started:
                frozen.model.load_state_dict(self._policy.model.state_dict())
                frozen.update()
        self._started = self._started or not interim
        return self._configs

    def state_dict(self) -> dict[str, Any]:
        """Return the weights of players that stay as they were at the start."""
        frozen = self._frozen if self._started else {}
        return {"start": {name: policy.model.state_dict() for name, policy in frozen.items()}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        if state["start"]:
            self.configs()
        for name, weights in state["start"].items():
            self._frozen[name].model.load_state_dict(weights)
            self._frozen[name].update()

    def _player(self, name: str, seat: Seat) -> Policy | None:
        """Return the policy of a seat; None is the policy in training."""
        if seat.player == SELF:
            return None
        if seat.player == START:
            frozen = copy.copy(self._policy)
            frozen.model = copy.deepcopy(self._policy.model).requires_grad_(False)
            frozen.update()
            self._frozen[name] = frozen
            return frozen
        from lmgym.train.load import load_policy  # imports recipes

        sampling = self._policy.sampling
        limit = default_max_tokens(seat.player, least=sampling.max_tokens)  # an endpoint may think before it answers
        return load_policy(seat.player, sampling.temperature, self._seed, max_tokens=limit)
