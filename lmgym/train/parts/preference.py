"""A reward model: learns from pairs of answers which one the task pays more, and rewards answers in RL by its score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from lmgym.rollout.planner import Planner
from lmgym.train.batch import Batch, micro_batches
from lmgym.train.critics import Trunk, mlp
from lmgym.train.interfaces import Optimiser, Parts, ScoredBatch, Tasks, Term
from lmgym.train.learner import Learner, StepContext
from lmgym.train.math import less_the_other
from lmgym.train.parts.rewards import with_rewards
from lmgym.train.schedule import StageProgress
from lmgym.train.seats import is_trained
from lmgym.train.services import Services
from lmgym.train.stage import LearningStage, Played
from lmgym.train.update import Updater
from lmgym.types import Trajectory

FIGURES = ("reward_loss", "pairs_right", "score_gap", "gradient_norm")  # of the updater's, those that the log shows


class RewardModel:
    """Scores answers after their last token by a linear head on a copy of the policy's network as training begins it.

    As a reward it replaces those of the task: every answer earns its score (Ouyang et al. 2022).
    """

    def __init__(self, services: Services, optimiser: Optimiser) -> None:
        self.services = services
        seed, checkpointing = services.pool.seed, optimiser.checkpointing
        self.trunk = Trunk(services.policy, "own", seed=seed, autocast=optimiser.autocast, checkpointing=checkpointing)
        optimiser = replace(optimiser, checkpointing=False)  # the trunk has it
        self.head = mlp([self.trunk.width, 1], seed=(seed, 2), bias=0.0).to(services.policy.device)
        self.weights = nn.ModuleDict({"trunk": self.trunk, "value_head": self.head})
        term = Term(loss=bradley_terry, name="reward_loss", together=pair, counted=won)
        self.updater = Updater(self.weights, self._scored, optimiser, [term], ranks=services.ranks)

    def learn(self, pairs: Sequence[Trajectory], progress: StageProgress, *, seed: Sequence[int]) -> dict[str, float]:
        """Train on the pairs that `ranked` made; return figures, of each pair before its own optimiser step."""
        batch = self.services.batch(pairs, "sampled", ends=False)
        batch = replace(batch, logprobs=torch.zeros_like(batch.logprobs))  # nothing is compared with the sampler
        figures = self.updater.update(batch, progress, seed=seed)
        return {name: figures[name] for name in FIGURES}

    @torch.no_grad()
    def scores(self, batch: Batch) -> Tensor:
        """Return the score of the conversation up to each token; (B, T)."""
        score, ranks = torch.zeros(batch.ids.shape), self.services.ranks
        for rows in ranks.share(micro_batches(batch.lengths, self.updater.micro_tokens // ranks.size)):
            part = batch.rows(rows)
            score[rows, : part.ids.shape[1]] = self._scored(part)[2].to(score)
        return ranks.summed(score)

    def __call__(
        self, trajectories: Sequence[Trajectory], services: Services, progress: StageProgress
    ) -> list[Trajectory]:
        """Return the episodes with the score of each answer as its reward, and 0 for turns without an answer."""
        spoken = [each for each in trajectories if is_trained(each) and any(turn.completion.ids for turn in each.turns)]
        if not spoken:
            return list(trajectories)
        batch = services.batch(spoken, "sampled", ends=False)
        row, column = last_tokens(batch).nonzero(as_tuple=True)
        names = [spoken[number].id for number in batch.episode[row].tolist()]
        turns, values = batch.turn[row, column].tolist(), self.scores(batch)[row, column].tolist()
        score = dict(zip(zip(names, turns, strict=True), values, strict=True))
        return [
            with_rewards(each, [score.get((each.id, n), 0.0) for n in range(len(each.turns))], name="preference")
            for each in trajectories
        ]

    def state_dict(self) -> dict[str, Any]:
        """Return weights and optimiser."""
        return {"weights": self.weights.state_dict(), "updater": self.updater.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a checkpoint."""
        self.weights.load_state_dict(state["weights"])
        self.updater.load_state_dict(state["updater"])

    def _scored(self, batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        """Return scores (B, T) after each token, for an updater; log-probs and entropies are zeros."""
        score = self.head(self.trunk(batch.ids, batch.attention, batch.media))[..., 0]
        return torch.zeros_like(score), torch.zeros_like(score), score


@dataclass(frozen=True, kw_only=True)
class FitReward(LearningStage):
    """Plays pairs of answers to the same history, and trains the recipe's reward model on them; the policy stays."""

    tasks: Tasks
    planner: Planner  # forks each episode once
    name: str = "reward model"

    def planned(self, parts: Parts) -> Planner | None:
        """Return the stage's own planner."""
        return self.planner

    def begin(self, learner: Learner) -> None:
        """Make the reward model from the policy as it is."""
        learner.begin_reward()

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return episodes of the policy and their forks."""
        return learner.play(learner.jobs(self.tasks, self.name, step), self.planner)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Train the reward model on the pairs that the task ranks."""
        pairs = ranked(episodes)
        with step.clock("update"):
            figures = learner.begin_reward().learn(pairs, step.progress, seed=step.seed) if pairs else {}
        return {"pairs": len(pairs) / 2, **figures}


def ranked(episodes: Sequence[Trajectory]) -> list[Trajectory]:
    """Return pairs of episodes cut after the answer in which a fork and its parent differ, with its reward alone.

    The members of a pair have a group of their own. Pairs of equal rewards have no rank and are left out.
    """
    parents = {episode.id: episode for episode in episodes if episode.parent is None}
    pairs: list[Trajectory] = []
    for second in episodes:
        first, number = parents.get(second.parent or ""), second.forked_at
        if first is None or len(second.turns) <= number or not second.turns[number].completion.ids:
            continue
        if first.turns[number].reward != second.turns[number].reward:
            cut = [replace(each, turns=each.turns[: number + 1], forked_at=number) for each in (first, second)]
            pairs += [replace(each, group=second.id) for each in cut]
    return pairs


def bradley_terry(scored: ScoredBatch) -> tuple[Tensor, Mapping[str, Tensor]]:
    """Return -log sigmoid(s_w - s_l) on the last token of each answer that won its pair, else 0; (B, T).

    s is the score of the winner and of the loser (Bradley and Terry 1952; Ouyang et al. 2022, equation 1).
    """
    batch, value = scored.batch, scored.value
    assert value is not None, "a loss of scores without scores"
    gap = less_the_other((value * last_tokens(batch)).sum(1), pair(batch))[:, None].expand_as(value)
    return -F.logsigmoid(gap) * won(batch), {"pairs_right": (gap > 0).float().detach(), "score_gap": gap.detach()}


def pair(batch: Batch) -> Tensor:
    """Return the number of the pair of each row; (B,)."""
    return batch.group


def won(batch: Batch) -> Tensor:
    """Mark the last token of each answer with a higher reward than the other of its pair; (B, T) bool."""
    better = less_the_other(batch.reward.double().sum(1), pair(batch)) > 0
    return last_tokens(batch) & better[:, None]


def last_tokens(batch: Batch) -> Tensor:
    """Mark the last trained token of each turn; (B, T) bool."""
    following = F.pad(batch.turn[:, 1:], (0, 1), value=-1)
    return batch.mask & (batch.turn != following)
