"""The parts of an algorithm, and what each must offer; every part has a plain default.

Parts are functions wherever a function will do. Rewards and filters see trajectories, credit and losses see tensors;
a loss never calls an environment and a reward never sees an advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from lmgym.errors import RecipeError
from lmgym.policy.local.policy import LocalPolicy
from lmgym.rollout.context import Context
from lmgym.rollout.planner import Planner
from lmgym.train.batch import Batch
from lmgym.train.math import Aggregation
from lmgym.train.parts.kl import RewardKl
from lmgym.train.ranges import Count, NonNegative, Positive, PositiveInt, Rate, check_ranges
from lmgym.train.schedule import Schedule, StageProgress, constant
from lmgym.train.seats import Seat
from lmgym.train.services import Services
from lmgym.train.state import Checkpointed, InstancePool
from lmgym.types import Job, Trajectory


@dataclass(frozen=True, kw_only=True)
class FilterResult:
    """The decision of a Filter. Dropped episodes leave their group's statistics, masked turns stay in them."""

    drop: frozenset[str] = frozenset()  # ids of trajectories
    mask: frozenset[tuple[str, int]] = frozenset()  # (id, number of the turn): not trained


@dataclass(frozen=True, kw_only=True)
class ScoredBatch:
    """A batch with its log-probs, entropies and values under the current weights."""

    batch: Batch
    logprobs: Tensor  # (B, T), with gradient; valid where `batch.mask`
    entropy: Tensor  # (B, T)
    value: Tensor | None = None  # (B, T) of the state before the token, with gradient, where a critic is joint


class Tasks(Checkpointed):
    """Chooses the episodes to play; the base of those that do.

    A run plays a copy, so a recipe can be used again. RL stages show it what they played.
    """

    options: Mapping[str, Any] = {}  # of the task in these episodes, beside the run's

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Return the jobs of a step; the same for the same step and state."""
        raise NotImplementedError

    def observe(self, trajectories: Sequence[Trajectory], services: Services) -> None:
        """Learn from the episodes of a step as they were played, before the recipe's rewards and filters."""

    @property
    def prompt(self) -> str | None:
        """System prompt of evaluations; None for the task's own."""
        return None


class NoTasks(Tasks):
    """No episodes: for recipes that only imitate."""

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Raise RecipeError."""
        raise RecipeError("an RL stage needs Recipe(tasks=...), such as Uniform(16, tries=8)")


Reward = Callable[[Sequence[Trajectory], Services, StageProgress], Sequence[Trajectory]]
# returns the episodes of a step, in their order, with other rewards and terms in their turns
Filter = Callable[[Sequence[Trajectory]], FilterResult]
Credit = Callable[[Batch], Tensor]  # advantages (B, T)
Weights = Callable[[Batch, Tensor], Tensor]  # factors of advantages from log-probs of trainer less sampler; (B, T)
Loss = Callable[[ScoredBatch], tuple[Tensor, Mapping[str, Tensor]]]  # token losses (B, T); figures (B, T) for the log
Source = Literal["fresh", "store"]  # the episodes of the step, or those drawn from the store
Requirement = Literal["replay", "answer", "text", "pictures", "expert"]
# of a task: deterministic; tells its answers; shows no pictures; shows pictures; has a demonstrator or an oracle


@runtime_checkable
class StatefulLoss(Protocol):
    """A loss that remembers batches, such as a moving average; it begins anew with each stage."""

    def __call__(self, scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return token losses and figures, as any Loss; called once for each micro-batch."""

    def update(self, batch: Batch) -> None:
        """Learn from a batch after the policy was trained on it."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Term:
    """A part of the loss: token losses, their aggregation over the optimiser step, and a coefficient.

    `counted` restricts no loss: one that applies to some tokens alone returns 0 on the others.
    """

    loss: Loss
    name: str = "loss"
    coef: Schedule = field(default_factory=lambda: constant(1.0))
    aggregation: Aggregation = "token_mean"
    longest: int = 1  # tokens, by which const_norm divides
    reference: bool = False  # reads `batch.reference`
    together: Callable[[Batch], Tensor] | None = None  # (B,): rows with the same number go into one micro-batch
    counted: Callable[[Batch], Tensor] | None = None  # (B, T) bool: tokens of divisor and log; None: all trained
    source: Source = "fresh"  # store: the loss of episodes drawn from the store, which then join the fresh ones

    def tokens(self, batch: Batch) -> Tensor:
        """Return the tokens that the aggregation and the log count; (B, T) bool."""
        return (batch.mask if self.counted is None else self.counted(batch)) & self.rows(batch)[:, None]

    def rows(self, batch: Batch) -> Tensor:
        """Return the rows that the loss applies to; (B,) bool."""
        return batch.stored == (self.source == "store")


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """The optimiser of a stage, its schedule, and how a batch is cut into its steps."""

    lr: Rate = 3e-4
    schedule: Schedule = field(default_factory=lambda: constant(1.0))  # factor of `lr`
    warmup: Count = 0  # optimiser steps of linear rise
    kind: Literal["adamw", "muon"] = "adamw"  # muon: hidden matrices; AdamW for the rest
    muon_lr: Rate = 3e-3  # scaled to the root mean square of AdamW's updates
    final_norm_lr: Rate | None = None  # for the gain of the final norm, which scales all logits; None: `lr`
    betas: tuple[float, float] = (0.9, 0.95)
    eps: Positive = 1e-8  # of AdamW: gradients well below it take smaller steps
    weight_decay: Rate = 0.0
    clip: NonNegative = 1.0  # of the gradient's norm
    epochs: PositiveInt = 1  # passes over a batch
    minibatches: PositiveInt = 1  # optimiser steps per pass
    micro_tokens: PositiveInt | None = None  # padded tokens of a forward pass; None: `fitting_tokens`
    autocast: bool | None = False  # bfloat16 matrix products; None: where the hardware has them
    checkpointing: bool = False  # recompute activations in the backward pass

    def __post_init__(self) -> None:
        check_ranges(self)

    @property
    def single(self) -> bool:
        """True if a batch makes one optimiser step, so that the old policy is the one that is differentiated."""
        return self.epochs * self.minibatches == 1


def no_credit(batch: Batch) -> Tensor:
    """Return zeros; (B, T)."""
    return batch.reward.new_zeros(batch.reward.shape)


class Store(Protocol):
    """Keeps episodes beyond their step."""

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Add the episodes of a step, as rewards and filters left them."""

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """Return the episodes to learn from in this step."""

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Joint:
    """The share of a critic in the policy's update, for a critic that is trained together with the policy."""

    score: Callable[[Batch], tuple[Tensor, Tensor, Tensor]]  # log-probs, entropies and values (B, T) in one pass
    term: Term  # trains `ScoredBatch.value`
    weights: nn.Module  # the critic's own, for the policy's optimiser


class Critic:
    """Estimates values of states with its own weights and optimiser; the base of critics.

    In a step the calls are: `fit` to learn from the store, `value` to estimate values of the batch, `learn` to
    learn from that batch.
    """

    def begin(self, *, policy_learns: bool) -> Joint | None:
        """Prepare for a stage, also after a resume; return None if the critic is trained apart from the policy."""
        return None

    def fit(self, store: Store | None, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Learn from the store and return figures for the log."""
        return {}

    def value(self, batch: Batch) -> Batch:
        """Return the batch with `value` and other estimates; without gradient."""
        return batch

    def learn(self, batch: Batch, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Learn from a batch with values, and return figures for the log."""
        return {}

    def guide(self, policy: LocalPolicy) -> AbstractContextManager[None]:
        """Let the critic change the policy's answers within the block."""
        raise RecipeError(f"{type(self).__name__} judges answers and cannot guide them: use Evaluate(by='policy')")

    def state_dict(self) -> dict[str, Any]:
        """Return weights, targets and optimisers for a checkpoint."""
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        raise NotImplementedError


class LearnedReward(Protocol):
    """A reward with weights of its own, which a stage trains before RL; it takes the place of the task's rewards."""

    def __call__(
        self, trajectories: Sequence[Trajectory], services: Services, progress: StageProgress
    ) -> Sequence[Trajectory]:
        """Return the episodes with other rewards in their turns, as any Reward."""

    def learn(self, pairs: Sequence[Trajectory], progress: StageProgress, *, seed: Sequence[int]) -> dict[str, float]:
        """Train on pairs of ranked answers and return figures."""

    def state_dict(self) -> dict[str, Any]:
        """Return weights and optimiser for a checkpoint."""

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Parts:
    """The parts of an algorithm that its RL stages use."""

    tasks: Tasks = field(default_factory=NoTasks)
    context: Context | None = None  # what the policy sees; None: the full transcript
    planner: Planner | None = None  # forks, cuts or changes episodes; None: every episode is played to its end
    reward_model: Callable[[Services], LearnedReward] | None = None  # makes the reward that comes before `reward`
    reward: Sequence[Reward] = ()
    filter: Sequence[Filter] = ()
    reward_kl: Callable[[], RewardKl] | None = None  # makes a KL penalty in the rewards of tokens
    credit: Credit = no_credit
    importance: Weights | None = None  # weights of tokens where the sampler differs from the trained policy
    loss: Sequence[Term] = ()
    critic: Callable[[Services], Critic] | None = None  # makes the critic when the first stage that uses it begins
    blind: str | None = None  # why the critic sees no pictures and what to use instead; None: it sees them
    store: Callable[[], Store] | None = None  # makes the store; None: a step learns from the episodes it played
    store_credit: Credit = no_credit  # of the store's episodes, where a term of the loss has the source "store"
    seats: Mapping[str, Seat] = field(default_factory=dict)  # players of other seats; the task's own take the rest
    judges: tuple[str, ...] = ()  # models that rewards or tasks ask, so that a wrong name is refused before any work
    temperature: float = 1.0
    max_tokens: int | None = None  # of an answer; None: as the task's spec says
    stop: tuple[str, ...] = ()  # strings that end an answer; empty: those of the policy's own sampling
    requires: frozenset[Requirement] = frozenset()  # checked of the task before any work is done
    reward_terms: frozenset[str] = frozenset()  # names of reward terms that the task must give


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The requirements of a stage, which are checked before any work is done."""

    split: str = "train"
    data: Path | None = None  # data set to read
    select: Filter | None = None  # of the data set
    makes: str | None = None  # data set that the stage writes, in the folder of the run
    demonstrator: bool = False
    critic: bool = False
    store: bool = False
    guidance: bool = False  # of the policy by the critic
    sampler_logprobs: bool = False  # compares with the log-probs of the sampler, not with scores of the trainer
