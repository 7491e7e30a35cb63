"""A step of a stage: play, reward, filter, store, collate, critic, credit, mask, update.

This is what algorithms plug their parts into; going through stages, logging and saving is the loop's.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.policy.local.lora import adapted, without_adapter
from lmgym.rollout import dataset
from lmgym.rollout import episodes as recording
from lmgym.rollout.picture_folder import folders_beside
from lmgym.train import source, trained
from lmgym.train.batch import Batch, masked, some_rows
from lmgym.train.collate import turns_out
from lmgym.train.figures import of_demonstrations, of_play, over_draws
from lmgym.train.log import Stopwatch, writing
from lmgym.train.parts.importance import figures as of_weights
from lmgym.train.parts.kl import RewardKl, kl_estimate
from lmgym.train.recipe import Critic, Filter, FitCritic, Generate, Joint, Learning, Recipe, Rl, Sft, Store
from lmgym.train.schedule import StageProgress
from lmgym.train.services import Services
from lmgym.train.state import RunCursor
from lmgym.train.update import Score, Updater, logprobs_of
from lmgym.types import Trajectory

Taught = Sft | Rl | FitCritic
Turns = frozenset[tuple[str, int]]  # of episodes, by their ids and numbers
Seed = tuple[int, ...]  # of the run, the step and what of it
OBSERVED = 3  # tokens of observations for which one of them is trained


class Learner:
    """What learns in a run: the policy's updater, critic, store and reference; all of it is in its `state_dict`."""

    def __init__(self, recipe: Recipe, services: Services) -> None:
        self.recipe, self.services = recipe, services
        self.policy = services.policy
        self.critic: Critic | None = None
        self.store: Store | None = recipe.store() if recipe.store else None
        self.reward_kl: RewardKl | None = recipe.reward_kl() if recipe.reward_kl else None
        self.reference: Any = None  # the model that the stage began with, or the base of one with adapters
        self.updater: Updater | None = None
        self._pending: Mapping[str, Any] = {}  # of a checkpoint, for the stage that it stands in

    def begin(self, stage: Learning) -> None:
        """Make what the stage needs; as the checkpoint has it, where the run stands within the stage."""
        joint: Joint | None = None
        if isinstance(stage, Rl | FitCritic) and self.recipe.critic is not None:
            self.critic = self.critic or self.recipe.critic(self.services)
            joint = self.critic.begin(stage)
        if isinstance(stage, Sft | Rl):
            terms = stage.loss if isinstance(stage, Sft) else self.recipe.loss
            if any(term.reference for term in terms) or (
                isinstance(stage, Rl) and (self.reward_kl or stage.kl_probe_tokens)
            ):
                model = self.policy.model  # with adapters, it is its own reference without them
                self.reference = model if adapted(model) else copy.deepcopy(model).requires_grad_(False)
            self.updater = Updater(self.policy.model, self.services.score, stage.optimiser, terms)
            if joint is not None:
                terms = [*terms, joint.term]
                self.updater = Updater(self.policy.model, joint.score, stage.optimiser, terms, [joint.weights])
            self.updater.ranks = self.services.ranks
            self.updater.scores_old = isinstance(stage, Rl) and stage.rescore is None and stage.optimiser.single
        for part, name in ((self.updater, "updater"), (self.reference, "reference")):
            if part is not None and self._pending.get(name):
                part.load_state_dict(self._pending[name])
        self._pending = {}

    def end(self) -> None:
        """Let go of what was the stage's."""
        self.updater, self.reference = None, None

    def answering(self, by: Literal["policy", "critic"]) -> AbstractContextManager[None]:
        """The policy as it is, or as the critic guides it."""
        if by == "policy":
            return nullcontext()
        if self.critic is None:
            raise RecipeError("no critic has learned yet that could guide the policy: FitCritic goes before")
        return self.critic.guide(self.policy)

    def step(self, stage: Learning, cursor: RunCursor, progress: StageProgress, clock: Stopwatch) -> dict[str, float]:
        """Play, learn, and return the figures of it."""
        with clock("play"):
            episodes, abandoned = self._episodes(stage, cursor)
        if cursor.run_step in self.services.config.keep_episodes:
            self._keep(episodes, "episodes", cursor.run_step)
        demonstrated = (
            isinstance(stage, Sft) or getattr(stage, "demonstrated", False) or getattr(stage, "recorded", None)
        )
        figures = {
            **(of_demonstrations if demonstrated else of_play)(episodes),
            "abandoned": float(abandoned),
            **self._selected(stage),
        }
        if isinstance(stage, Generate):
            kept, _ = _filtered(episodes, stage.filter)
            self._keep([dataset.labelled(episode, self.policy) for episode in kept], stage.into, cursor.run_step)
            return {**figures, "kept_episodes": float(len(kept))}
        seed = (self.services.pool.seed, cursor.run_step)
        return {**figures, **self._learn(stage, episodes, progress, seed, clock)}

    def _learn(
        self, stage: Taught, episodes: list[Trajectory], progress: StageProgress, seed: Seed, clock: Stopwatch
    ) -> dict[str, float]:
        """From the episodes of a step to new weights, by way of the store if there is one; the figures of it."""
        parts = stage if isinstance(stage, Sft) else self.recipe
        with clock("collate"):
            for reward in parts.reward:
                episodes = [reward(episode) for episode in episodes]
            kept, out = _filtered(episodes, parts.filter)
            dropped = {"dropped": float(len(episodes) - len(kept))}
            if not isinstance(stage, Sft) and self.critic is not None:
                kept = [self.services.ended(each) for each in kept]
        if not isinstance(stage, Sft) and self.store is not None:
            return dropped | self._replayed(stage, self.store, kept, out, progress, seed, clock)
        return dropped | self._train(stage, kept, out, progress, seed, clock)

    def _replayed(
        self,
        stage: Rl | FitCritic,
        store: Store,
        episodes: list[Trajectory],
        out: Turns,
        progress: StageProgress,
        seed: Seed,
        clock: Stopwatch,
    ) -> dict[str, float]:
        """The store takes the episodes, the critic learns from it, and so does the policy, from one draw or several."""
        store.put(self.services.kept(episodes))
        learned: dict[str, float] = {}
        if self.critic is not None:
            with clock("critic"):
                learned |= self.critic.fit(store, progress, seed=seed)
        drawn: list[dict[str, float]] = []
        for number in range(stage.updates_per_step if isinstance(stage, Rl) else 0):
            own = (*seed, number + 1) if number else seed  # the critic's own draw ends with 1
            with clock("play"):
                episodes = store.draw(self.services, seed=own)
            drawn.append(self._train(stage, episodes, out, progress, own, clock))
        return learned | over_draws(drawn)

    def _train(
        self,
        stage: Taught,
        episodes: list[Trajectory],
        out: Turns,
        progress: StageProgress,
        seed: Seed,
        clock: Stopwatch,
    ) -> dict[str, float]:
        """From what is learned from to new weights, turns that are `out` not trained; the figures of it."""
        parts = stage if isinstance(stage, Sft) else self.recipe
        critic, learned = None if isinstance(stage, Sft) else self.critic, dict[str, float]()
        if not episodes:
            return {"trained_tokens": 0.0}
        with clock("collate"):
            given = isinstance(stage, Sft) or (isinstance(stage, FitCritic) and stage.recorded is not None)
            batch = self.services.batch(episodes, "given" if given else "sampled", ends=critic is not None)
        with clock("score"):
            batch, factor, gap = self._scored(batch, stage, seed)
        if critic is not None:
            with clock("critic"):
                batch = critic.value(batch)
                learned |= critic.learn(batch, progress, seed=seed)
        if isinstance(stage, FitCritic):
            return learned
        with clock("credit"):
            batch = replace(batch, advantage=parts.credit(batch) * factor)
            batch = masked(batch, turns_out(batch, episodes, out))
            if isinstance(stage, Sft) and stage.observation_weight:
                batch = with_observations(batch, stage.observation_weight)
            if self.services.ranks.main and seed[1] in self.services.config.keep_episodes:
                trained.write(self.services.folder, seed[1], batch, episodes, more=len(seed) > 2)
        with clock("update"):
            assert self.updater is not None
            learned |= self.updater.update(batch, progress, seed=seed)
            self.policy.update()
        return {**learned, **gap}

    def _episodes(self, stage: Learning, cursor: RunCursor) -> tuple[list[Trajectory], int]:
        """The episodes of a step, in the order of their jobs, and how many jobs were given up."""
        services, pool = self.services, replace(self.services.pool, stage=stage.name)
        tasks = self.recipe.tasks if isinstance(stage, Rl | FitCritic) else stage.tasks
        jobs = tasks.draw(cursor.step, pool)
        if isinstance(stage, Sft | FitCritic) and stage.recorded is not None:
            return self._recorded(stage, stage.recorded, step=cursor.step, count=len(jobs), seed=pool.seed), 0
        planner = stage.planner if isinstance(stage, Sft | Generate) else self.recipe.planner
        shown = isinstance(stage, Sft) or (isinstance(stage, Generate) and stage.demonstrated)
        mine = services.ranks.share(jobs)
        play = source.demonstrated if shown else source.played
        found = play(services.engine(planner), self.policy, mine) if mine else []
        episodes = source.in_order(services.gathered(found), jobs)
        tries = {(job.group, job.attempt) for job in jobs} - {(each.group, each.attempt) for each in episodes}
        return episodes, len(tries)

    def _recorded(self, stage: Sft | FitCritic, path: Path, **draw: int) -> list[Trajectory]:
        """Episodes of a data set, which may be one that the run made itself."""
        select = stage.select if isinstance(stage, Sft) else None
        found = self._data(path)
        self.services.pictures.sources = folders_beside(found)
        return source.recorded(found, self.policy, select=select, context=self.services.context, **draw)

    def _data(self, path: Path) -> Path:
        own = self.services.folder / path
        return own if own.exists() else path

    def _selected(self, stage: Learning) -> dict[str, float]:
        selection = self.selection(stage)
        return {} if selection is None else {"selected": selection[0] / selection[1]}

    def selection(self, stage: Learning) -> tuple[int, int] | None:
        """How many episodes of its data set the stage takes, and of how many; None where it selects none."""
        if not isinstance(stage, Sft) or stage.recorded is None or stage.select is None:
            return None
        path = self._data(stage.recorded)
        return len(source.selected(path, stage.select)), source.size(path)

    def _keep(self, episodes: Sequence[Trajectory], folder: str, number: int) -> None:
        """Write episodes into a folder of the run."""
        path = self.services.folder / folder
        with writing(path):
            recording.write(path / f"{number:06d}.jsonl", self.services.kept(episodes))

    def _scored(self, batch: Batch, stage: Sft | Rl | FitCritic, seed: Seed) -> tuple[Batch, Tensor, dict[str, float]]:
        """The batch with what credit and losses need, factors (B, T) of its advantages, and figures."""
        factor, figures = torch.ones_like(batch.reward), dict[str, float]()
        if not isinstance(stage, Rl) or self.updater is None:
            return batch, factor, figures
        weigh, exact = self.recipe.importance, self.policy.dtype == torch.float32 and not self.updater.autocast
        # a KL in the reward compares two scores of the trainer's
        single = stage.optimiser.single and self.reward_kl is None
        if stage.rescore or (stage.rescore is None and (weigh or not (exact or single))):
            old = self._logprobs(batch, self.updater.scored)
            gap = (old - batch.logprobs)[batch.mask].abs()
            figures |= {"gap_mean": float(gap.mean()), "gap_max": float(gap.max())}
            if weigh is not None:
                factor = weigh(batch, old - batch.logprobs)
                figures |= of_weights(factor, batch.mask)
            batch = replace(batch, logprobs=old)
        if self.reference is not None:
            batch, seen = self._referred(batch, stage, seed)
            figures |= seen
        return batch, factor, figures

    def _referred(self, batch: Batch, stage: Rl, seed: Seed) -> tuple[Batch, dict[str, float]]:
        """The batch with log-probs of the start policy where they are asked for, and how far away that is.

        The start policy is the one that RL began with; of a model with adapters it is the base, as before imitation.
        """
        assert self.updater is not None
        asked = self.reward_kl is not None or any(term.reference for term in self.recipe.loss)
        rows = torch.arange(len(batch)) if asked else some_rows(batch, stage.kl_probe_tokens, seed=seed)
        part, model = batch.rows(rows), partial(self.services.score, model=self.reference)
        half = torch.autocast(self.policy.device.type, torch.bfloat16, enabled=self.updater.autocast)
        with half, without_adapter(self.policy.model):
            start = self._logprobs(part, model)
        figures = {"kl_start": kl_estimate(part.logprobs[part.mask], start[part.mask])}
        if not asked:
            return batch, figures
        batch = replace(batch, reference=start)
        if self.reward_kl is None:
            return batch, figures
        batch, seen = self.reward_kl.apply(batch)
        return batch, {**figures, **seen}

    def _logprobs(self, batch: Batch, score: Score) -> Tensor:
        """Log-probs (B, T) by `score`, shared out among the processes."""
        assert self.updater is not None
        tokens, ranks = self.updater.micro_tokens, self.services.ranks
        return logprobs_of(batch, score, self.policy.device, tokens=tokens, ranks=ranks)

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint keeps."""
        parts = {"updater": self.updater, "critic": self.critic, "store": self.store, "reference": self.reference}
        parts |= {"reward_kl": self.reward_kl}
        return {name: None if part is None else part.state_dict() for name, part in parts.items()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint; what belongs to the stage waits for its `begin`."""
        if state["critic"] is not None and self.recipe.critic is not None:
            self.critic = self.recipe.critic(self.services)
            self.critic.load_state_dict(state["critic"])
        for part, name in ((self.store, "store"), (self.reward_kl, "reward_kl")):
            if part is not None:
                part.load_state_dict(state[name])
        self._pending = state


def _filtered(episodes: Sequence[Trajectory], filters: Sequence[Filter]) -> tuple[list[Trajectory], Turns]:
    """Return the episodes that no filter drops, and the turns that are not trained."""
    kept, out = [t for t in episodes if any(turn.completion.ids for turn in t.turns)], Turns()
    for judge in filters:
        if kept:
            verdict = judge(kept)
            kept = [episode for episode in kept if episode.id not in verdict.drop]
            out |= verdict.mask
    return kept, out


def with_observations(batch: Batch, weight: float) -> Batch:
    """The batch with the tokens that no answer holds in the loss, at `weight` on average.

    Every third of them stands for its neighbours, another one in every row: logits are what a small model spends most
    of its time on. The first token of a row has nothing before it, and the places of pictures are no words to foresee.
    """
    observed = batch.attention & (batch.turn < 0)
    if batch.media:
        observed &= ~batch.media.placeholders(batch.ids)
    observed[:, 0] = False
    rows, columns = (torch.arange(size) for size in observed.shape)
    stands: Tensor = (rows[:, None] + columns) % OBSERVED == 0
    return replace(batch, weight=batch.weight.masked_fill(observed & stands, OBSERVED * weight))
