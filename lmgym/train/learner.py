"""A Learner: the parts of a run that learn and the operations that stages are made of.

The order of a step is the stage's business; going through stages, logging and saving is the loop's.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor, nn

from lmgym.errors import RecipeError
from lmgym.policy.local.lora import adapted, without_adapter
from lmgym.rollout import episodes as recording
from lmgym.rollout.picture_folder import folders_beside
from lmgym.rollout.planner import Planner
from lmgym.train import source, trained
from lmgym.train.batch import Batch, joined, some_rows
from lmgym.train.interfaces import (
    Critic,
    Filter,
    Joint,
    LearnedReward,
    Optimiser,
    Parts,
    Reward,
    Store,
    Tasks,
    Term,
)
from lmgym.train.log import Stopwatch, writing
from lmgym.train.parts.importance import figures as of_weights
from lmgym.train.parts.kl import RewardKl, kl_estimate
from lmgym.train.schedule import StageProgress
from lmgym.train.seats import Seats, is_trained
from lmgym.train.services import Services
from lmgym.train.update import Score, Updater, logprobs_of
from lmgym.types import Job, Trajectory

Turns = frozenset[tuple[str, int]]  # (id of the episode, number of the turn)


@dataclass(frozen=True, kw_only=True)
class StepContext:
    """Context of the current step."""

    number: int  # of the stage
    run_step: int  # of all stages
    progress: StageProgress
    seed: tuple[int, ...]  # of run, step and draw
    clock: Stopwatch
    kept: bool = False  # write its episodes and batch to the run's folder

    def draw(self, number: int) -> StepContext:
        """Return the step with the seed of a draw from the store; draws after the first are numbered from 2."""
        return replace(self, seed=(*self.seed, number + 1)) if number else self  # the critic's own draw ends with 1


class Learner:
    """Updater, critic, store, tasks and reference of a run; `state_dict` covers all of them."""

    def __init__(self, parts: Parts, services: Services) -> None:
        self.parts, self.services, self.policy = parts, services, services.policy
        self.tasks: Tasks = copy.deepcopy(parts.tasks)  # the recipe's own stays as it is
        self.seats = Seats(parts.seats, self.policy, seed=services.pool.seed)
        self.critic: Critic | None = None
        self.reward_model: LearnedReward | None = None
        self.store: Store | None = parts.store() if parts.store else None
        self.reward_kl: RewardKl | None = parts.reward_kl() if parts.reward_kl else None
        self.reference: Any = None  # the model that the stage began with, or the base below adapters
        self.updater: Updater | None = None
        self._pending: Mapping[str, Any] = {}  # state of a checkpoint for the stage that it was made in

    # A stage begins and ends -------------------------------------------------------------------------------------

    def begin_critic(self, *, policy_learns: bool) -> Joint | None:
        """Make the recipe's critic if it has one; return its share in the policy's update, if it takes part."""
        if self.parts.critic is None:
            return None
        self.critic = self.critic or self.parts.critic(self.services)
        return self.critic.begin(policy_learns=policy_learns)

    def begin_reward(self) -> LearnedReward:
        """Return the recipe's reward model, made from the policy as it is when the first stage asks for it."""
        if self.parts.reward_model is None:
            raise RecipeError("the stage trains a reward model, and the recipe has none: set Recipe(reward_model=...)")
        self.reward_model = self.reward_model or self.parts.reward_model(self.services)
        return self.reward_model

    @property
    def rewards(self) -> Sequence[Reward]:
        """The rewards of RL, that of the reward model first."""
        if self.parts.reward_model is None:
            return self.parts.reward
        if self.reward_model is None:
            raise RecipeError("there is no reward model yet: put a FitReward stage before")
        return [self.reward_model, *self.parts.reward]

    def begin_updates(
        self, terms: Sequence[Term], optimiser: Optimiser, *, joint: Joint | None = None, reference: bool = False
    ) -> Updater:
        """Make the policy's updater, and the reference if a term or the stage needs it."""
        model = self.policy.model
        if reference or any(term.reference for term in terms):
            # with adapters, the model without them is its own reference
            self.reference = model if adapted(model) else copy.deepcopy(model).requires_grad_(False)
        score: Score = self.services.score
        beside: list[nn.Module] = []
        if joint is not None:
            score, terms, beside = joint.score, [*terms, joint.term], [joint.weights]
        self.updater = Updater(model, score, optimiser, terms, beside, self.services.ranks)
        return self.updater

    def resume_stage(self) -> None:
        """Restore updater and reference if the run was interrupted within this stage."""
        for part, name in ((self.updater, "updater"), (self.reference, "reference")):
            if part is not None and self._pending.get(name):
                part.load_state_dict(self._pending[name])
        self._pending = {}

    def end(self) -> None:
        """Release what belonged to the stage."""
        self.updater, self.reference = None, None

    def answering(self, by: Literal["policy", "critic"]) -> AbstractContextManager[None]:
        """Return a context in which the policy answers alone, or guided by the critic."""
        if by == "policy":
            return nullcontext()
        if self.critic is None:
            raise RecipeError("there is no critic to guide the policy yet: put a FitCritic stage before")
        return self.critic.guide(self.policy)

    # Episodes ----------------------------------------------------------------------------------------------------

    def jobs(self, tasks: Tasks, stage: str, step: StepContext) -> list[Job]:
        """Return the jobs of a step; their ids begin with the name of the stage."""
        return tasks.draw(step.number, replace(self.services.pool, stage=stage))

    def play(
        self, jobs: list[Job], planner: Planner | None, *, by: Callable[..., list[Trajectory]] = source.played
    ) -> tuple[list[Trajectory], int]:
        """Return the episodes of jobs, in their order, and the number of jobs that were given up."""
        mine = self.services.ranks.share_groups(jobs)
        seats = self.seats.configs() if by is source.played else self.seats.demonstrators
        played = by(self.services.engine(planner, seats), self.policy, mine) if mine else []
        episodes = source.in_order(self.services.gathered(played), jobs)
        return episodes, len({(j.group, j.attempt) for j in jobs} - {(e.group, e.attempt) for e in episodes})

    def read(self, path: Path, step: StepContext, *, count: int, select: Filter | None = None) -> list[Trajectory]:
        """Return the episodes that a step takes from a data set."""
        path, services = self.data(path), self.services
        services.pictures.sources = folders_beside(path)
        return source.recorded(
            path,
            self.policy,
            step=step.number,
            count=count,
            seed=services.pool.seed,
            select=select,
            context=services.context,
        )

    def data(self, path: Path) -> Path:
        """Return the path of a data set, which the run may have made itself."""
        own = self.services.folder / path
        return own if own.exists() else path

    def write(self, episodes: Sequence[Trajectory], folder: str, step: StepContext) -> None:
        """Write episodes into a folder of the run."""
        path = self.services.folder / folder
        with writing(path):
            recording.write(path / f"{step.run_step:06d}.jsonl", self.services.kept(episodes))

    def judged(
        self, episodes: Sequence[Trajectory], reward: Sequence[Reward], filters: Sequence[Filter], step: StepContext
    ) -> tuple[list[Trajectory], Turns, dict[str, float]]:
        """Apply rewards and filters: return the episodes kept, the turns that are not trained, and figures."""
        with step.clock("reward"):
            for change in reward:
                episodes = change(episodes, self.services, step.progress)
        with step.clock("collate"):
            episodes = [episode for episode in episodes if is_trained(episode)]
            kept, out = [t for t in episodes if any(turn.completion.ids for turn in t.turns)], Turns()
            for judge in filters:
                if kept:
                    result = judge(kept)
                    kept = [episode for episode in kept if episode.id not in result.drop]
                    out |= result.mask
            figures = {"dropped": float(len(episodes) - len(kept))}
            if self.reward_model is not None and kept:
                figures["learned_return"] = sum(episode.reward for episode in kept) / len(kept)
            return [self.services.ended(e) for e in kept] if self.critic else kept, out, figures

    def stored(self, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Put episodes into the store, fit the critic to it, and return figures."""
        assert self.store is not None
        self.store.put(self.services.kept(episodes))
        if self.critic is None:
            return {}
        with step.clock("critic"):
            return dict(self.critic.fit(self.store, step.progress, seed=step.seed))

    @property
    def mixes(self) -> bool:
        """True if episodes of the store are trained beside the fresh ones, not in their place."""
        return any(term.source == "store" for term in self.parts.loss)

    # Batches -----------------------------------------------------------------------------------------------------

    def rescored(self, batch: Batch, rescore: bool | None) -> tuple[Batch, Tensor, dict[str, float]]:
        """Return the batch with old log-probs, factors (B, T) of its advantages, and figures."""
        assert self.updater is not None
        weigh, exact = self.parts.importance, self.policy.dtype == torch.float32 and not self.updater.autocast
        single = self.updater.spec.single and self.reward_kl is None  # a KL compares two scores of the trainer's
        if rescore is False or (rescore is None and not weigh and (exact or single)):
            return batch, torch.ones_like(batch.reward), {}
        old = self._logprobs(batch, self.updater.scored)
        difference = old - batch.logprobs
        gap = difference[batch.mask].abs()
        figures = {"gap_mean": float(gap.mean()), "gap_max": float(gap.max())}
        factor = torch.ones_like(batch.reward) if weigh is None else weigh(batch, difference)
        if weigh is not None:
            figures |= of_weights(factor, batch.mask)
        return replace(batch, logprobs=old), factor, figures

    def compared(self, batch: Batch, *, probe_tokens: int, seed: Sequence[int]) -> tuple[Batch, dict[str, float]]:
        """Return the batch with log-probs of the start policy where they are needed, and the KL to it.

        The start policy is the one that RL began with; of a model with adapters it is the base, as before imitation.
        """
        if self.reference is None:
            return batch, {}
        assert self.updater is not None
        whole = self.reward_kl is not None or any(term.reference for term in self.parts.loss)
        rows = torch.arange(len(batch)) if whole else some_rows(batch, probe_tokens, seed=seed)
        part, score = batch.rows(rows), partial(self.services.score, model=self.reference)
        half = torch.autocast(self.policy.device.type, torch.bfloat16, enabled=self.updater.autocast)
        with half, without_adapter(self.policy.model):
            start = self._logprobs(part, score)
        figures = {"kl_start": kl_estimate(part.logprobs[part.mask], start[part.mask])}
        if not whole:
            return batch, figures
        batch = replace(batch, reference=start)
        if self.reward_kl is None:
            return batch, figures
        batch, penalty = self.reward_kl.apply(batch)
        return batch, {**figures, **penalty}

    def valued(self, batch: Batch, step: StepContext) -> tuple[Batch, dict[str, float]]:
        """Return the batch with the critic's values, from which the critic then learns, and figures."""
        if self.critic is None:
            return batch, {}
        with step.clock("critic"):
            batch = self.critic.value(batch)
            return batch, dict(self.critic.learn(batch, step.progress, seed=step.seed))

    def with_stored(self, batch: Batch | None, episodes: Sequence[Trajectory]) -> Batch:
        """Return the batch, None for no fresh episodes, with episodes of the store, which have their own credit.

        The log-probs of stored episodes stay those of the weights that sampled them.
        """
        stored = self.services.batch(episodes, "sampled", ends=False)
        return joined(batch, replace(stored, advantage=self.parts.store_credit(stored)))

    def update(self, batch: Batch, episodes: Sequence[Trajectory], step: StepContext) -> dict[str, float]:
        """Train the policy on a batch and return figures."""
        assert self.updater is not None
        with step.clock("update"):
            if step.kept and self.services.ranks.main:
                trained.write(self.services.folder, step.run_step, batch, episodes, more=len(step.seed) > 2)
            figures = self.updater.update(batch, step.progress, seed=step.seed)
            self.policy.update()
        return figures

    def _logprobs(self, batch: Batch, score: Score) -> Tensor:
        """Return log-probs (B, T) by `score`, computed by all processes together."""
        assert self.updater is not None
        tokens, ranks = self.updater.micro_tokens, self.services.ranks
        return logprobs_of(batch, score, self.policy.device, tokens=tokens, ranks=ranks)

    # Checkpoints -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        names = ("updater", "critic", "reward_model", "store", "reference", "reward_kl", "tasks", "seats")
        parts = {name: getattr(self, name) for name in names}
        return {name: None if part is None else part.state_dict() for name, part in parts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a checkpoint; the state of the stage waits for `resume_stage`."""
        if state["critic"] is not None and self.parts.critic is not None:
            self.critic = self.parts.critic(self.services)
            self.critic.load_state_dict(state["critic"])
        if state["reward_model"] is not None:
            self.begin_reward().load_state_dict(state["reward_model"])
        for name in ("store", "reward_kl", "tasks", "seats"):
            if (part := getattr(self, name)) is not None:
                part.load_state_dict(state[name])
        self._pending = state
