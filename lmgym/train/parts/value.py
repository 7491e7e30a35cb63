"""The critic of PPO: the value of the state before each token, trained towards the returns that GAE implies.

It has four placements: a small head on the detached states of the policy (`head`), a small new network (`small`), a
copy of the policy's network (`network`), or a head on the policy's trunk whose loss is added to the policy's (`joint`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lmgym.policy.local.score import score_states
from lmgym.train.batch import Batch, micro_batches
from lmgym.train.critics import Base, Trunk, mlp
from lmgym.train.interfaces import Critic, Joint, Optimiser, Term
from lmgym.train.parts.credit import Level, gae, valued_tokens
from lmgym.train.parts.losses import value_loss
from lmgym.train.schedule import StageProgress, constant
from lmgym.train.services import Services
from lmgym.train.update import Updater, fitting_tokens

Placement = Literal["head", "small", "network", "joint"]
NOT_OF_UPDATERS = ("entropy", "trained_tokens", "optimiser_steps", "lr")


@dataclass(frozen=True, kw_only=True)
class ValueSpec:
    """Settings of the value function."""

    place: Placement = "head"
    gamma: float = 1.0
    lam: float = 0.95  # of the value targets; the policy's advantages may use another
    level: Level = "token"
    turn_gamma: float = 1.0  # discount of a turn, for level both
    clip: float | None = None  # of the value loss; None: no clip
    bias: float = 0.0  # initial value, about the mean return
    coef: float = 0.5  # of the value loss, for place joint
    # of place joint where the critic trains alone; in RL the policy's optimiser trains it
    optimiser: Optimiser = field(default_factory=lambda: Optimiser(lr=1e-3, epochs=4, minibatches=4))


class ValueCritic(Critic):
    """Values of the states before tokens."""

    def __init__(self, services: Services, spec: ValueSpec) -> None:
        self.spec, self.services, self.policy = spec, services, services.policy
        base: Base = "small" if spec.place == "small" else "own" if spec.place == "network" else "policy"
        self.apart = spec.place in ("small", "network")  # the trunk is its own and is trained
        self.trunk = Trunk(self.policy, base, seed=services.pool.seed, checkpointing=spec.optimiser.checkpointing)
        micro_tokens = spec.optimiser.micro_tokens or fitting_tokens(self.policy.model, self.policy.device)
        optimiser = replace(spec.optimiser, checkpointing=False, micro_tokens=micro_tokens)
        width = self.trunk.width
        self.head = mlp([width, width, 1], seed=(services.pool.seed, 1), bias=spec.bias).to(self.policy.device)
        self.weights = nn.ModuleDict({"trunk": self.trunk, "value_head": self.head})
        self.loss = partial(value_loss, clip=spec.clip, level=spec.level)
        term = Term(loss=self.loss, name="value_loss")
        self.updater = Updater(self.weights, self._with_values, optimiser, [term], ranks=services.ranks)
        self.joint = False  # True within an RL stage, for place joint
        self._states: Tensor | None = None  # (N, H) before the valued tokens of the last batch

    # The steps of training -------------------------------------------------------------------------------------

    def begin(self, *, policy_learns: bool) -> Joint | None:
        """Return the share in the policy's update for place joint in an RL stage; None otherwise."""
        self.joint = self.spec.place == "joint" and policy_learns
        if not self.joint:
            return None
        counted = partial(valued_tokens, level=self.spec.level)  # the other terms count all tokens
        term = Term(loss=self.loss, name="value_loss", coef=constant(self.spec.coef), counted=counted)
        return Joint(score=self._along, term=term, weights=nn.ModuleDict({"value_head": self.head}))

    @torch.no_grad()
    def value(self, batch: Batch) -> Batch:
        """Return the batch with `value`, `boot` and `target`."""
        value, boot = torch.zeros_like(batch.value), torch.zeros_like(batch.boot)
        valued_mask, ranks = valued_tokens(batch, self.spec.level), self.services.ranks
        number = (valued_mask.flatten().cumsum(0) - 1).view_as(valued_mask)  # index among the valued tokens
        states = torch.zeros(0 if self.apart else int(valued_mask.sum()), self.trunk.width, device=self.policy.device)
        for rows in ranks.share(micro_batches(batch.lengths, self.updater.micro_tokens // ranks.size)):
            part = batch.rows(rows)
            hidden = self._hidden(part)
            values = self.head(hidden)[..., 0].to(value)
            value[rows, : part.ids.shape[1]] = _before(values) * part.mask
            boot[rows] = self._boots(part, values.to(value.device))
            if not self.apart:
                row, column = valued_mask[rows].nonzero(as_tuple=True)
                states[number[rows[row], column]] = hidden[row, column - 1]
        value, boot = ranks.summed(value), ranks.summed(boot)
        self._states = None if self.apart else ranks.summed(states)
        spec, valued = self.spec, replace(batch, value=value, boot=boot)
        advantage = gae(valued, gamma=spec.gamma, lam=spec.lam, level=spec.level, turn_gamma=spec.turn_gamma)
        return replace(valued, target=(advantage + value) * valued_mask)

    def learn(self, batch: Batch, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Train on the batch that `value` returned, unless the policy's update does it (place joint)."""
        valued_mask = valued_tokens(batch, self.spec.level)
        figures = value_figures(batch.value[valued_mask], batch.target[valued_mask])
        if self.joint:
            return figures
        if self.apart:
            trained = replace(
                batch, mask=valued_mask, weight=valued_mask.float(), logprobs=torch.zeros_like(batch.logprobs)
            )
        else:
            trained = self._of_states(batch, valued_mask)
        updater_figures = self.updater.update(trained, progress, seed=(*seed, 1))
        self._states = None
        own = {name: value for name, value in updater_figures.items() if name not in NOT_OF_UPDATERS}
        return {**figures, **{name if "value" in name else f"critic_{name}": value for name, value in own.items()}}

    def state_dict(self) -> dict[str, Any]:
        """Return weights and optimiser."""
        return {"weights": self.weights.state_dict(), "updater": self.updater.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.weights.load_state_dict(state["weights"])
        self.updater.load_state_dict(state["updater"])

    # Inside ----------------------------------------------------------------------------------------------------

    def _hidden(self, batch: Batch) -> Tensor:
        """Return the states (B, T, H) after each token, in fp32 without autocast, so that repeated passes agree."""
        device = self.policy.device
        states: Tensor = self.trunk(batch.ids.to(device), batch.attention.to(device), batch.media)
        return states

    def _boots(self, batch: Batch, values: Tensor) -> Tensor:
        """Return the value (B,) of the state at truncation, from the values after each token (B, T); 0 for other rows.

        If the row does not contain the final observation, it is that of the last state that has a value.
        """
        rows = torch.arange(len(batch), device=values.device)
        last = batch.lengths - 1
        has_final = batch.turn[rows, last] < 0
        columns = torch.arange(batch.mask.shape[1], device=values.device)
        valued = torch.where(valued_tokens(batch, self.spec.level), columns, 1).amax(1)  # the last of a row
        return torch.where(batch.cut, values[rows, torch.where(has_final, last, valued - 1)], 0.0)

    def _with_values(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return values (B, T) with gradient, for an updater; log-probs and entropies are zeros."""
        with torch.autocast(self.policy.device.type, enabled=False):  # as `value` computes them
            if self.apart:
                value = _before(self.head(self._hidden(batch))[..., 0])
            else:
                assert self._states is not None, "learn before value"
                value = self.head(self._states[batch.ids])[..., 0]
        return torch.zeros_like(value), torch.zeros_like(value), value

    def _along(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return log-probs, entropies and values (B, T) of the policy in one pass."""
        temperature, mask = self.services.temperature, batch.weight != 0
        model = self.policy.model
        logprobs, entropy, states = score_states(
            model, batch.ids, batch.attention, temperature=temperature, mask=mask, media=batch.media
        )
        with torch.autocast(states.device.type, enabled=False):
            return logprobs, entropy, _before(self.head(states.float())[..., 0])

    def _of_states(self, batch: Batch, valued_mask: Tensor) -> Batch:
        """Return the valued tokens as rows of two, with the index of the cached state as the second id.

        The small head can then train for many epochs on states that the large trunk computes once.
        """
        row, column = valued_mask.nonzero(as_tuple=True)
        tensors = batch.tensors().items()
        pairs = {n: x[row] if x.ndim == 1 else torch.stack((x[row, 0], x[row, column]), 1) for n, x in tensors}
        numbers = torch.arange(len(row))
        own = {"ids": torch.stack((numbers, numbers), 1), "logprobs": torch.zeros(len(row), 2)}
        return Batch(**{**pairs, **own}, media=None)


def _before(values: Tensor) -> Tensor:
    """Shift values after each token (B, T) to before the next token; 0 before the first."""
    return nn.functional.pad(values[:, :-1], (1, 0))


def value_figures(value: Tensor, target: Tensor) -> dict[str, float]:
    """Return explained variance and means of values (N,) against their targets (N,), for the log."""
    if len(value) < 2:
        return {}
    spread = float(target.double().var())
    left = float((target - value).double().var())
    return {
        "explained_variance": 1.0 - left / spread if spread > 0 else 0.0,
        "value_mean": float(value.mean()),
        "target_mean": float(target.mean()),
    }
