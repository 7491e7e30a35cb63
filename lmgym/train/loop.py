"""The one loop: play, reward, filter, collate, credit, mask, update, evaluate, checkpoint.

Everything random follows from the seed, the stage and the number of the step, so a run that goes on from a checkpoint
makes the same bits as one that was never interrupted (inline players or lockstep, same number of threads).
"""

from __future__ import annotations

import copy
import json
import shutil
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmgym.evaluation import runner
from lmgym.evaluation.runner import Report
from lmgym.policy.local import LocalPolicy
from lmgym.policy.score import score
from lmgym.rollout import episodes as recording
from lmgym.rollout.context import Full
from lmgym.rollout.engine import Engine
from lmgym.rollout.planner import Planner
from lmgym.train import checkpoint, curve, source
from lmgym.train.batch import Batch, masked
from lmgym.train.collate import collate, turns_out
from lmgym.train.figures import of_demonstrations, of_evaluation, of_play
from lmgym.train.folder import CHECKPOINTS, claim
from lmgym.train.log import Log, Stopwatch, replace_file, writing
from lmgym.train.recipe import Evaluate, Filter, Pool, Progress, Recipe, Rl, Sft, Stage
from lmgym.train.state import Manner, Place, RunResult
from lmgym.train.update import Updater, logprobs_of
from lmgym.types import Trajectory

OBSERVED = 3  # tokens of observations for which one of them is trained


def run(
    recipe: Recipe,
    policy: LocalPolicy,
    *,
    task: str,
    options: Mapping[str, Any] | None = None,
    folder: Path,
    seed: int = 0,
    resume: bool = False,
    arguments: Mapping[str, Any] | None = None,
    save_seconds: float = 30.0,
    keep_episodes: Collection[int] = (),
    concurrency: int = 64,
    lockstep: bool = False,
    quiet: bool = False,
) -> RunResult:
    """Train `policy` by `recipe` in `folder`; a resumed run must have the same `arguments`. For the rest see Manner."""
    chosen = dict(options or {})
    size = runner.size_of(task, "train", chosen)
    pool = Pool(task=runner.id_of(task), size=size, options=chosen, seed=seed)
    known = {"task": task, "options": chosen, "policy": policy.name, "seed": seed, **(arguments or {})}
    saved = claim(folder, known, resume=resume)
    manner = Manner(
        save_seconds=save_seconds,
        keep_episodes=keep_episodes,
        concurrency=concurrency,
        lockstep=lockstep,
        quiet=quiet,
    )
    with ExitStack() as opened:
        training = Training(recipe, policy, pool, folder, manner, opened, saved)
        while training.place.stage < len(recipe.stages):
            training.stage(recipe.stages[training.place.stage])
        return training.result()


class Training:
    """A run under way; what it opens is closed by `opened`."""

    def __init__(
        self,
        recipe: Recipe,
        policy: LocalPolicy,
        pool: Pool,
        folder: Path,
        manner: Manner,
        opened: ExitStack,
        saved: dict[str, Any] | None,
    ) -> None:
        self.recipe, self.policy, self.pool, self.folder, self.manner = recipe, policy, pool, folder, manner
        policy.sampling = replace(policy.sampling, temperature=recipe.temperature, seed=pool.seed)
        self.place = Place()
        self.reports: dict[str, Report] = {}
        self.seconds: dict[str, dict[str, float]] = {}
        self.reference: Any = None  # the model that RL began with, where a loss wants it
        self.updater: Updater | None = None
        self.pending: dict[str, Any] = {}  # of a checkpoint, for the stage that it stands in
        if saved is not None:
            self._restore(saved)
        offset = 0 if saved is None else saved["metrics"]
        self.log = opened.enter_context(
            closing(Log(folder, offset=offset, step=self.place.run_step, quiet=manner.quiet))
        )
        self.engines: dict[int, Engine] = {}  # by planner
        self.opened = opened
        self.saved_at = time.perf_counter()

    # Stages ----------------------------------------------------------------------------------------------------

    def stage(self, stage: Stage) -> None:
        """Go through a stage, from where the run stands in it, and save."""
        begun = time.perf_counter() - self.place.seconds
        if isinstance(stage, Evaluate):
            self.log.show(stage.name, 0.0, "")
            self.reports[stage.name] = report = self._evaluate(stage)
            self.log.show(stage.name, 1.0, f"success {report.success}")
        else:
            self._train(stage, begun)
        self.seconds.setdefault(stage.name, {})["total"] = time.perf_counter() - begun
        self.place = replace(self.place, stage=self.place.stage + 1, step=0, seconds=0.0)
        self.updater, self.pending = None, {}
        self.save()

    def _train(self, stage: Sft | Rl, begun: float) -> None:
        self.updater = self._updater(stage)
        while not stage.until.reached(self.place.step, time.perf_counter() - begun):
            progress = stage.until.progress(self.place.step, time.perf_counter() - begun)
            watch = Stopwatch()
            figures = self.step(stage, progress, watch)
            parts = self.seconds.setdefault(stage.name, {})
            for part, seconds in watch.parts.items():
                parts[part] = parts.get(part, 0.0) + seconds
            self.place = replace(
                self.place,
                step=self.place.step + 1,
                run_step=self.place.run_step + 1,
                seconds=time.perf_counter() - begun,
            )
            self._write(stage.name, figures, watch)
            share = stage.until.progress(self.place.step, self.place.seconds).share
            self.log.show(stage.name, share, _words(figures))
            if stage.evaluate and stage.evaluate_every and self.place.step % stage.evaluate_every == 0:
                self._evaluate(stage.evaluate)
            if time.perf_counter() - self.saved_at >= self.manner.save_seconds:
                self.place = replace(self.place, seconds=time.perf_counter() - begun)
                self.save()

    def _evaluate(self, stage: Evaluate) -> Report:
        watch = Stopwatch()
        temperature = self.recipe.temperature if stage.temperature is None else stage.temperature
        training = self.policy.sampling
        self.policy.sampling = replace(training, temperature=temperature)
        pool = self.pool
        size = runner.size_of(pool.task, stage.split, pool.options)
        jobs = runner.episodes(
            pool.task, split=stage.split, size=size, count=stage.episodes, seed=pool.seed, options=pool.options
        )
        with watch("evaluate"):
            report = runner.evaluate(self.policy, jobs, engine=self._engine(self.recipe.planner), seed=pool.seed)
        self.policy.sampling = training
        self._write(stage.name, of_evaluation(report), watch)
        return report

    # A step ----------------------------------------------------------------------------------------------------

    def step(self, stage: Sft | Rl, progress: Progress, watch: Stopwatch) -> dict[str, float]:
        """Play, learn, and return the figures of it."""
        parts = stage if isinstance(stage, Sft) else self.recipe
        with watch("play"):
            episodes = self._episodes(stage)
        if self.place.run_step in self.manner.keep_episodes:
            with writing(self.folder / "episodes"):
                recording.write(self.folder / "episodes" / f"{self.place.run_step:06d}.jsonl", episodes)
        figures = of_demonstrations(episodes) if isinstance(stage, Sft) else of_play(episodes)
        with watch("collate"):
            for reward in parts.reward:
                episodes = [reward(episode) for episode in episodes]
            episodes, out = _filtered(episodes, parts.filter)
            if not episodes:
                return {**figures, "trained_tokens": 0.0}
            batch = collate(episodes, trained="given" if isinstance(stage, Sft) else "sampled")
        assert self.updater is not None
        with watch("score"):
            batch, gap = self._scored(batch, stage)
        with watch("credit"):
            batch = replace(batch, advantage=parts.credit(batch))
            batch = masked(batch, turns_out(batch, episodes, out))
            if isinstance(stage, Sft) and stage.observation_weight:
                batch = _with_observations(batch, stage.observation_weight)
        with watch("update"):
            learned = self.updater.update(batch, progress, seed=(self.pool.seed, self.place.run_step))
            self.policy.update()
        return {**figures, **learned, **gap}

    def _episodes(self, stage: Sft | Rl) -> list[Trajectory]:
        """The episodes of a step, in the order of their jobs."""
        pool = replace(self.pool, stage=stage.name)
        if isinstance(stage, Rl):
            jobs = self.recipe.tasks.draw(self.place.step, pool)
            return source.played(self._engine(self.recipe.planner), self.policy, jobs)
        jobs = stage.tasks.draw(self.place.step, pool)
        if stage.recorded is None:
            return source.demonstrated(self._engine(stage.planner), self.policy, jobs)
        return source.recorded(stage.recorded, self.policy, step=self.place.step, count=len(jobs), seed=self.pool.seed)

    def _scored(self, batch: Batch, stage: Sft | Rl) -> tuple[Batch, dict[str, float]]:
        """The batch with what the losses need: old log-probs by the trainer, log-probs of the start policy."""
        if isinstance(stage, Sft) or self.updater is None:
            return batch, {}
        tokens, gap = self.updater.micro_tokens, {}
        if self.reference is not None:
            model = partial(self._score, self.reference)
            batch = replace(batch, reference=logprobs_of(batch, model, self.policy.device, tokens=tokens))
        exact = self.policy.dtype == torch.float32 and not self.updater.autocast
        if stage.rescore or (stage.rescore is None and not exact and not stage.optimiser.single):
            old = logprobs_of(batch, self.updater.scored, self.policy.device, tokens=tokens)
            difference = (old - batch.logprobs)[batch.mask].abs()
            gap = {"gap_mean": float(difference.mean()), "gap_max": float(difference.max())}
            batch = replace(batch, logprobs=old)
        return batch, gap

    # Inside ----------------------------------------------------------------------------------------------------

    def _score(self, model: Any, batch: Batch) -> tuple[Tensor, Tensor]:
        """Log-probs and entropies (B, T) of the tokens that have a weight."""
        return score(model, batch.ids, batch.attention, temperature=self.recipe.temperature, mask=batch.weight != 0)

    def _updater(self, stage: Sft | Rl) -> Updater:
        """The learner of a stage; as the checkpoint has it, where the run stands within the stage."""
        terms = stage.loss if isinstance(stage, Sft) else self.recipe.loss
        self.reference = None
        if any(term.reference for term in terms):
            self.reference = copy.deepcopy(self.policy.model).requires_grad_(False)
        made = Updater(self.policy.model, partial(self._score, self.policy.model), stage.optimiser, terms)
        made.scores_old = isinstance(stage, Rl) and stage.rescore is None and stage.optimiser.single
        if self.pending:
            made.load_state_dict(self.pending["updater"])
            if self.reference is not None:
                self.reference.load_state_dict(self.pending["reference"])
            self.pending = {}
        return made

    def _engine(self, planner: Planner | None) -> Engine:
        """The engine of a planner, whose environments are kept until the run ends."""
        if id(planner) not in self.engines:
            made = Engine(
                context=self.recipe.context or Full(),
                planner=planner or Planner(),
                concurrency=self.manner.concurrency,
                lockstep=self.manner.lockstep,
            )
            self.engines[id(planner)] = self.opened.enter_context(made)
        return self.engines[id(planner)]

    def _write(self, stage: str, figures: Mapping[str, float], watch: Stopwatch) -> None:
        seconds = {f"seconds_{part}": value for part, value in watch.parts.items()}
        place: dict[str, float | int | str] = {"stage": stage, "step": self.place.step, "run_step": self.place.run_step}
        self.log.write({**place, **figures, "seconds": self.place.seconds, **seconds}, step=self.place.run_step)

    def save(self) -> None:
        """Write a checkpoint."""
        self.place = replace(self.place, saves=self.place.saves + 1)
        state = {
            "place": asdict(self.place),
            "model": self.policy.model.state_dict(),
            "version": self.policy.version,
            "updater": self.updater.state_dict() if self.updater else None,
            "reference": self.reference.state_dict() if self.updater and self.reference is not None else None,
            "random": torch.get_rng_state(),
            "metrics": self.log.offset,
            "seconds": self.seconds,
            "reports": {name: report.state_dict() for name, report in self.reports.items()},
        }
        checkpoint.save(self.folder / CHECKPOINTS, state, number=self.place.saves)
        self.saved_at = time.perf_counter()

    def _restore(self, saved: dict[str, Any]) -> None:
        self.place = Place(**saved["place"])
        self.policy.model.load_state_dict(saved["model"])
        self.policy.update()
        self.policy.version = saved["version"]
        self.pending = saved if saved["updater"] else {}
        self.seconds = saved["seconds"]
        self.reports = {name: Report.from_state(state) for name, state in saved["reports"].items()}
        torch.set_rng_state(saved["random"])

    def result(self) -> RunResult:
        """Write the policy, the curve and the reports."""
        target = self.folder / "policy"
        partial_ = self.folder / "policy.partial"
        with writing(target):
            shutil.rmtree(partial_, ignore_errors=True)
            self.policy.save(partial_)
            shutil.rmtree(target, ignore_errors=True)
            partial_.rename(target)
        curve.draw(self.folder)
        states = {name: report.state_dict() for name, report in self.reports.items()}
        replace_file(self.folder / "reports.json", json.dumps(states))
        return RunResult(folder=self.folder, policy=target, reports=self.reports, seconds=self.seconds)


def _filtered(
    episodes: Sequence[Trajectory], filters: Sequence[Filter]
) -> tuple[list[Trajectory], frozenset[tuple[str, int]]]:
    """The episodes that no filter drops, and the turns that are not trained."""
    kept, out = [t for t in episodes if any(turn.completion.ids for turn in t.turns)], frozenset[tuple[str, int]]()
    for judge in filters:
        if kept:
            verdict = judge(kept)
            kept = [episode for episode in kept if episode.id not in verdict.drop]
            out |= verdict.mask
    return kept, out


def _with_observations(batch: Batch, weight: float) -> Batch:
    """The batch with the tokens that no answer holds in the loss, at `weight` on average.

    Every third of them stands for its neighbours, another one in every row: logits are what a small model spends most
    of its time on. The first token of a row has nothing before it.
    """
    observed = batch.attention & (batch.turn < 0)
    observed[:, 0] = False
    rows, columns = (torch.arange(size) for size in observed.shape)
    stands = (rows[:, None] + columns) % OBSERVED == 0
    return replace(batch, weight=batch.weight.masked_fill(observed & stands, OBSERVED * weight))


def _words(figures: Mapping[str, float]) -> str:
    shown = ("success", "return", "loss", "entropy", "gradient_norm")
    return "  ".join(f"{name} {figures[name]:.3g}" for name in shown if name in figures)
