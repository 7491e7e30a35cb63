"""The critic of PPO: the value of the state before each token, trained towards the returns that GAE implies.

Four places for it: a small head on the policy's states as they are, a small network that begins anew, one that begins
as a copy of the policy, or a head on the policy's trunk whose loss joins the policy's.
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
from lmgym.train.parts.credit import Level, gae, judged
from lmgym.train.parts.losses import value_loss
from lmgym.train.schedule import StageProgress, constant
from lmgym.train.services import Services
from lmgym.train.update import Updater

Placement = Literal["head", "small", "network", "joint"]
NOT_OF_UPDATERS = ("entropy", "trained_tokens", "optimiser_steps", "lr")


@dataclass(frozen=True, kw_only=True)
class ValueSpec:
    """How values are learned."""

    place: Placement = "head"
    gamma: float = 1.0
    lam: float = 0.95  # of the returns; the policy's advantages may have another
    level: Level = "token"
    turn_gamma: float = 1.0  # where the level is both
    clip: float | None = None  # of what a value may gain by moving; None: no clip
    bias: float = 0.0  # what values begin as: about the mean return
    coef: float = 0.5  # of the value loss in the policy's, where the critic is joint
    optimiser: Optimiser = field(default_factory=lambda: Optimiser(lr=1e-3, epochs=4, minibatches=4))


class ValueCritic(Critic):
    """Values of the states before tokens."""

    def __init__(self, services: Services, spec: ValueSpec) -> None:
        self.spec, self.services, self.policy = spec, services, services.policy
        base: Base = "small" if spec.place == "small" else "own" if spec.place == "network" else "policy"
        self.apart = spec.place in ("small", "network")  # its trunk is its own, and learns
        checkpointing, optimiser = spec.optimiser.checkpointing, replace(spec.optimiser, checkpointing=False)
        self.trunk = Trunk(self.policy, base, seed=services.pool.seed, checkpointing=checkpointing)
        width = self.trunk.width
        self.head = mlp([width, width, 1], seed=(services.pool.seed, 1), bias=spec.bias).to(self.policy.device)
        self.weights = nn.ModuleDict({"trunk": self.trunk, "value_head": self.head})
        self.loss = partial(value_loss, clip=spec.clip, level=spec.level)
        term = Term(loss=self.loss, name="value_loss")
        self.updater = Updater(self.weights, self._with_values, optimiser, [term], ranks=services.ranks)
        self.joint = False  # within an RL stage, where that is its place
        self._states: Tensor | None = None  # (N, H) before the judged tokens of the batch last valued

    # What a step asks ------------------------------------------------------------------------------------------

    def begin(self, *, policy_learns: bool) -> Joint | None:
        """Join the policy's update in an RL stage, where that is the critic's place."""
        self.joint = self.spec.place == "joint" and policy_learns
        if not self.joint:
            return None
        counted = partial(judged, level=self.spec.level)  # the policy's other terms have all tokens
        term = Term(loss=self.loss, name="value_loss", coef=constant(self.spec.coef), counted=counted)
        return Joint(score=self._along, term=term, weights=nn.ModuleDict({"value_head": self.head}))

    @torch.no_grad()
    def value(self, batch: Batch) -> Batch:
        """The batch with `value`, `boot` and `target`."""
        value, boot = torch.zeros_like(batch.value), torch.zeros_like(batch.boot)
        asked, ranks = judged(batch, self.spec.level), self.services.ranks
        number = (asked.flatten().cumsum(0) - 1).view(asked.shape)  # of a judged token among them
        states = torch.zeros(0 if self.apart else int(asked.sum()), self.trunk.width, device=self.policy.device)
        for rows in ranks.share(micro_batches(batch.lengths, self.updater.micro_tokens // ranks.size)):
            part = batch.rows(rows)
            hidden = self._hidden(part)
            after = self.head(hidden)[..., 0].to(value)
            value[rows, : part.ids.shape[1]] = _before(after) * part.mask
            boot[rows] = self._boots(part, after.to(value.device))
            if not self.apart:
                row, column = asked[rows].nonzero(as_tuple=True)
                states[number[rows[row], column]] = hidden[row, column - 1]
        value, boot = ranks.summed(value), ranks.summed(boot)
        self._states = None if self.apart else ranks.summed(states)
        spec, valued = self.spec, replace(batch, value=value, boot=boot)
        advantage = gae(valued, gamma=spec.gamma, lam=spec.lam, level=spec.level, turn_gamma=spec.turn_gamma)
        return replace(valued, target=(advantage + value) * asked)

    def learn(self, batch: Batch, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Train on the batch whose values were just given, unless that is done along with the policy."""
        asked = judged(batch, self.spec.level)
        figures = of_values(batch.value[asked], batch.target[asked])
        if self.joint:
            return figures
        if self.apart:
            trained = replace(batch, mask=asked, weight=asked.float(), logprobs=torch.zeros_like(batch.logprobs))
        else:
            trained = self._of_states(batch, asked)
        seen = self.updater.update(trained, progress, seed=(*seed, 1))
        self._states = None
        own = {name: value for name, value in seen.items() if name not in NOT_OF_UPDATERS}
        return {**figures, **{name if "value" in name else f"critic_{name}": value for name, value in own.items()}}

    def state_dict(self) -> dict[str, Any]:
        """Weights and optimiser."""
        return {"weights": self.weights.state_dict(), "updater": self.updater.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.weights.load_state_dict(state["weights"])
        self.updater.load_state_dict(state["updater"])

    # Inside ----------------------------------------------------------------------------------------------------

    def _hidden(self, batch: Batch) -> Tensor:
        """States (B, T, H) after each token, in fp32 and without autocast, so that they are what they were."""
        device = self.policy.device
        found: Tensor = self.trunk(batch.ids.to(device), batch.attention.to(device), batch.media)
        return found

    def _boots(self, batch: Batch, after: Tensor) -> Tensor:
        """Values (B,) of the states in which episodes were cut, from those after each token (B, T); 0 for other rows.

        Where the row does not show what the episode was cut at, that is the state of the last token.
        """
        rows = torch.arange(len(batch), device=after.device)
        last = batch.lengths - 1
        shown = batch.turn[rows, last] < 0
        return torch.where(batch.cut, after[rows, last - (~shown).long()], 0.0)

    def _with_values(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Values (B, T) with gradient, for an updater; in place of log-probs and entropies are zeros."""
        if self.apart:
            value = _before(self.head(self._hidden(batch))[..., 0])
        else:
            assert self._states is not None, "learn before value"
            value = self.head(self._states[batch.ids])[..., 0]
        return torch.zeros_like(value), torch.zeros_like(value), value

    def _along(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Log-probs, entropies and values (B, T) of the policy in one pass."""
        heat, asked = self.services.temperature, batch.weight != 0
        model = self.policy.model
        logprobs, entropy, after = score_states(
            model, batch.ids, batch.attention, temperature=heat, mask=asked, media=batch.media
        )
        with torch.autocast(after.device.type, enabled=False):
            return logprobs, entropy, _before(self.head(after.float())[..., 0])

    def _of_states(self, batch: Batch, asked: Tensor) -> Batch:
        """The judged tokens as rows of two: what learns from them reads a state by its number, which is the second id.

        So a small head passes over states many times that the large trunk made once.
        """
        row, column = asked.nonzero(as_tuple=True)
        parts = batch.tensors().items()
        two = {n: x[row] if x.ndim == 1 else torch.stack((x[row, 0], x[row, column]), 1) for n, x in parts}
        numbers = torch.arange(len(row))
        own = {"ids": torch.stack((numbers, numbers), 1), "logprobs": torch.zeros(len(row), 2)}
        return Batch(**{**two, **own}, media=None)


def _before(after: Tensor) -> Tensor:
    """What stands after each token (B, T) as what stands before the next; 0 before the first."""
    return nn.functional.pad(after[:, :-1], (1, 0))


def of_values(value: Tensor, target: Tensor) -> dict[str, float]:
    """How good values (N,) were, before they learned from their targets (N,)."""
    if len(value) < 2:
        return {}
    spread = float(target.double().var())
    left = float((target - value).double().var())
    return {
        "explained_variance": 1.0 - left / spread if spread > 0 else 0.0,
        "value_mean": float(value.mean()),
        "target_mean": float(target.mean()),
    }
