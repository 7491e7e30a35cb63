"""A Recipe: the parts of an algorithm, each with a plain default. What a part is, is said here and nowhere else.

Parts are functions wherever a function will do. Rewards and filters see trajectories, credit and losses see tensors;
a loss never calls an environment and a reward never sees an advantage.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

from torch import Tensor, nn

from lmgym.errors import RecipeError
from lmgym.rollout.context import Context
from lmgym.rollout.planner import Planner
from lmgym.train import ranges
from lmgym.train.batch import Batch
from lmgym.train.math import Aggregation
from lmgym.train.parts.kl import RewardKl
from lmgym.train.schedule import Schedule, StageProgress, Until, constant
from lmgym.types import Job, Trajectory

if TYPE_CHECKING:
    from lmgym.policy.local.policy import LocalPolicy
    from lmgym.train.services import Services


@dataclass(frozen=True, kw_only=True)
class FilterResult:
    """What a Filter decides. Dropped episodes leave their group's statistics, masked ones stay in them."""

    drop: frozenset[str] = frozenset()  # ids of trajectories
    mask: frozenset[tuple[str, int]] = frozenset()  # (id, number of the turn): not trained


@dataclass(frozen=True, kw_only=True)
class ScoredBatch:
    """A batch and what the weights, as they are, say of it."""

    batch: Batch
    logprobs: Tensor  # (B, T), with gradient; valid where `batch.mask`
    entropy: Tensor  # (B, T)
    value: Tensor | None = None  # (B, T) of the state before the token, with gradient, where a critic learns along


@dataclass(frozen=True, kw_only=True)
class InstancePool:
    """Where jobs are drawn from: a split of a task, its size and the seed of the run."""

    task: str
    size: int  # instances of the split
    stage: str = ""  # its name begins the ids of its episodes
    split: str = "train"
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


class Tasks(Protocol):
    """Which episodes to play."""

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """The jobs of a step; the same for the same step."""


class NoTasks:
    """For recipes that only imitate."""

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Refuse."""
        raise RecipeError("an RL stage needs Recipe(tasks=...), such as Uniform(16, tries=8)")


Reward = Callable[[Trajectory], Trajectory]  # with other rewards and terms in its turns
Filter = Callable[[Sequence[Trajectory]], FilterResult]
Credit = Callable[[Batch], Tensor]  # advantages (B, T)
Weights = Callable[[Batch, Tensor], Tensor]  # factors of advantages, by log-probs of trainer less sampler; (B, T)
Loss = Callable[[ScoredBatch], tuple[Tensor, Mapping[str, Tensor]]]  # of each token (B, T); figures (B, T) for the log


@dataclass(frozen=True, kw_only=True)
class Term:
    """A part of the loss: token losses, their aggregation over the optimiser step, and a coefficient."""

    loss: Loss
    name: str = "loss"
    coef: Schedule = field(default_factory=lambda: constant(1.0))
    aggregation: Aggregation = "token_mean"
    longest: int = 1  # tokens, by which const_norm divides
    reference: bool = False  # reads `batch.reference`
    together: Callable[[Batch], Tensor] | None = None  # (B,): rows of one number are seen by the loss at once
    counted: Callable[[Batch], Tensor] | None = None  # (B, T) bool: tokens that have this loss; None: all that train

    def tokens(self, batch: Batch) -> Tensor:
        """The tokens that the aggregation and the log count; (B, T) bool."""
        return batch.mask if self.counted is None else self.counted(batch)


@dataclass(frozen=True, kw_only=True)
class Optimiser:
    """How gradients become steps, and how a batch is cut for it."""

    lr: float = 3e-4
    schedule: Schedule = field(default_factory=lambda: constant(1.0))  # factor of `lr`
    warmup: int = 0  # optimiser steps of linear rise
    kind: Literal["adamw", "muon"] = "adamw"  # muon: hidden matrices; AdamW for the rest
    muon_lr: float = 3e-3  # of updates as large as AdamW's, root mean square
    final_norm_lr: float | None = None  # of the last norm's gain, which scales all logits; None: as `lr`
    betas: tuple[float, float] = (0.9, 0.95)
    eps: float = 1e-8  # of AdamW: below it a gradient's size counts, above it its direction alone
    weight_decay: float = 0.0
    clip: float = 1.0  # of the gradient's norm
    epochs: int = 1  # passes over a batch
    minibatches: int = 1  # optimiser steps a pass
    micro_tokens: int | None = None  # padded tokens of a forward pass; None: 4096 on a CPU, else 32768
    autocast: bool | None = False  # bfloat16 in the products; None: where the machine has them in hardware
    checkpointing: bool = False  # recompute activations in the backward pass

    def __post_init__(self) -> None:
        ranges.check(vars(self))

    @property
    def single(self) -> bool:
        """Whether a batch makes one optimiser step: the policy before it is the one that is differentiated."""
        return self.epochs * self.minibatches == 1


def no_credit(batch: Batch) -> Tensor:
    """Zero everywhere; (B, T)."""
    return batch.reward.new_zeros(batch.reward.shape)


class Store(Protocol):
    """Episodes kept beyond their step."""

    def put(self, episodes: Sequence[Trajectory]) -> None:
        """Take in the episodes of a step, as rewards and filters left them."""

    def draw(self, services: Services, *, seed: Sequence[int]) -> list[Trajectory]:
        """What this step learns from."""

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Joint:
    """A critic that learns along with the policy: what it brings to the policy's update."""

    score: Callable[[Batch], tuple[Tensor, Tensor, Tensor]]  # log-probs, entropies and values (B, T) in one pass
    term: Term  # trains `ScoredBatch.value`
    weights: nn.Module  # its own, for the policy's optimiser


class Critic:
    """Knows what states are worth, and has its own weights and optimiser; the base of critics.

    A step asks it in this order: `fit` to learn from the store, `value` to judge the batch, `learn` to learn from
    the batch whose values it has just given.
    """

    def begin(self, stage: Rl | FitCritic) -> Joint | None:
        """A stage begins, or goes on from a checkpoint; None where the critic learns apart from the policy."""
        return None

    def fit(self, store: Store | None, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Learn from what is kept, and return figures for the log."""
        return {}

    def value(self, batch: Batch) -> Batch:
        """The batch with `value`, and with what else the critic knows of it; without gradient."""
        return batch

    def learn(self, batch: Batch, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Learn from a batch that has its values, and return figures for the log."""
        return {}

    def guide(self, policy: LocalPolicy) -> AbstractContextManager[None]:
        """Have the policy answer as the critic would have it, for as long as the block lasts."""
        raise RecipeError(f"{type(self).__name__} judges answers and guides none: use Evaluate(by='policy')")

    def state_dict(self) -> dict[str, Any]:
        """Weights, targets and optimisers, for a checkpoint."""
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Sft:
    """Imitates demonstrated or recorded episodes. It brings the parts that an RL stage takes from the recipe."""

    until: Until
    tasks: Tasks
    loss: Sequence[Term]
    name: str = "sft"
    recorded: Path | None = None  # JSON lines of episodes, or a folder of such; None: the demonstrator plays fresh ones
    select: Filter | None = None  # of all that is recorded, before any of it is drawn
    planner: Planner | None = None
    reward: Sequence[Reward] = ()
    filter: Sequence[Filter] = ()
    credit: Credit = no_credit
    observation_weight: float = 0.0  # of tokens that are no answer
    optimiser: Optimiser = field(default_factory=Optimiser)


@dataclass(frozen=True, kw_only=True)
class Rl:
    """Plays and learns by the recipe's parts."""

    until: Until
    name: str = "rl"
    optimiser: Optimiser = field(default_factory=Optimiser)
    rescore: bool | None = None  # old log-probs by the trainer; None: where its precision is not the sampler's
    kl_probe_tokens: int = 2048  # tokens a step on which the KL to the start policy is measured; 0: never
    updates_per_step: int = (
        1  # times a step draws from the store and learns from it, each by the weights that came before
    )

    def __post_init__(self) -> None:
        ranges.check(vars(self))


@dataclass(frozen=True, kw_only=True)
class Evaluate:
    """Plays a split without learning: the same episodes with the same noise each time, so that reports pair up."""

    name: str
    split: str = "test"
    episodes: int = 100
    temperature: float | None = None  # None: that of the training
    by: Literal["policy", "critic"] = "policy"  # critic: the policy as it guides it
    planner: Planner | None = None  # None: every episode to its end, whatever the training plays

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise RecipeError(f"an evaluation has 1 episode or more; got {self.episodes}")


@dataclass(frozen=True, kw_only=True)
class FitCritic:
    """An RL stage in which the critic learns and the policy does not: a warm-up, or all that value learning is."""

    until: Until
    name: str = "critic"
    recorded: Path | None = None  # episodes, as for Sft; None: the policy plays


@dataclass(frozen=True, kw_only=True)
class Generate:
    """Plays, and writes the episodes for stages that learn from records."""

    until: Until
    into: str  # folder within that of the run, a file a step
    tasks: Tasks
    planner: Planner | None = None
    filter: Sequence[Filter] = ()
    demonstrated: bool = False  # by the task's demonstrator; False: by the policy
    name: str = "generate"


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """The same stages several times; their names get the number of the round."""

    stages: Sequence[Stage]
    times: int


Learning = Sft | Rl | FitCritic | Generate
Stage = Learning | Evaluate | Repeat


def unrolled(stages: Sequence[Stage]) -> list[Learning | Evaluate]:
    """Stages in the order in which they are gone through."""
    found: list[Learning | Evaluate] = []
    for stage in stages:
        if isinstance(stage, Repeat):
            for number in range(1, stage.times + 1):
                found += [replace(each, name=f"{each.name} {number}") for each in unrolled(stage.stages)]
        else:
            found.append(stage)
    return found


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """An algorithm: its stages, and the parts of its RL stages."""

    stages: Sequence[Stage]
    tasks: Tasks = field(default_factory=NoTasks)
    context: Context | None = None  # what the policy sees; None: the full transcript
    planner: Planner | None = None  # what is played; None: every episode to its end
    reward: Sequence[Reward] = ()
    filter: Sequence[Filter] = ()
    reward_kl: Callable[[], RewardKl] | None = None  # makes it: a cost of tokens, in the reward
    credit: Credit = no_credit
    importance: Weights | None = None  # of tokens, where the sampler is not quite the policy
    loss: Sequence[Term] = ()
    critic: Callable[[Services], Critic] | None = None  # makes it, when the first stage that needs one begins
    blind: str | None = None  # that this critic sees no pictures, and what does; None: it sees what the policy sees
    store: Callable[[], Store] | None = None  # makes it; without one a step learns from what it has just played
    temperature: float = 1.0
    stop: tuple[str, ...] = ()  # an answer ends with the first of these; none: where the policy's own sampling says
    replays: bool = False  # plays episodes again from one of their turns on: the task must be deterministic

    def __post_init__(self) -> None:
        if self.reward_kl is not None and any(term.reference for term in self.loss):
            raise RecipeError("a KL both in the reward and in the loss counts it twice: set one of the two to 0")
        if self.store is None and any(
            isinstance(stage, Rl) and stage.updates_per_step > 1 for stage in unrolled(self.stages)
        ):
            raise RecipeError("several updates per step draw from a store, and this recipe has none: add a store")
