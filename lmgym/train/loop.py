"""The training loop: run stages step by step, evaluate, log and checkpoint.

All randomness derives from the seed, the stage and the step number, so a resumed run is bit-identical to one that was
never interrupted (inline environments or lockstep, same number of threads).
"""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Collection, Mapping
from contextlib import ExitStack, closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from lmgym.errors import RecipeError
from lmgym.evaluation import runner
from lmgym.evaluation.runner import Report
from lmgym.policy.local.policy import LocalPolicy
from lmgym.train import checkpoint, curve
from lmgym.train.figures import of_evaluation
from lmgym.train.folder import CHECKPOINTS, claim
from lmgym.train.learner import Learner, StepContext
from lmgym.train.log import Log, Stopwatch, replace_file, writing
from lmgym.train.preflight import check
from lmgym.train.ranks import ranks
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import MEASURED
from lmgym.train.services import Services
from lmgym.train.stage import Evaluate, LearningStage, Stage
from lmgym.train.state import GREEDY, InstancePool, RunConfig, RunCursor, RunResult

ACTIONS = ("sampled_tokens", "demonstrated_tokens")  # figures of a step: tokens of played answers


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
    concurrency: int | None = None,
    lockstep: bool = False,
    quiet: bool = False,
    evaluate_every: int = 0,
    tokens: int | None = None,
    train_instances: int | None = None,
) -> RunResult:
    """Train `policy` by `recipe` in `folder`; a resumed run must have the same `arguments`.

    `train_instances` limits the training split to its first instances. RunConfig describes the other options.
    """
    task_options = dict(options or {})
    if policy.sampling.top_p < 1 or policy.sampling.top_k > 0:
        raise RecipeError(
            f"training scores tokens by the whole distribution, and this policy samples with "
            f"top_p={policy.sampling.top_p:g} and top_k={policy.sampling.top_k}: set top_p to 1 and top_k to 0"
        )
    sees, read = policy.gallery is not None, policy.context
    check(recipe, task, task_options, folder, sees=sees, context=read, train_instances=train_instances)
    policy.hold_in_fp32()
    instances = runner.size_of(task, "train", task_options)
    size = instances if train_instances is None else min(instances, train_instances)
    pool = InstancePool(task=runner.id_of(task), size=size, options=task_options, seed=seed)
    run_arguments = {"task": task, "options": task_options, "policy": policy.name, "seed": seed, **(arguments or {})}
    processes = ranks()
    saved = processes.agreed(claim(folder, run_arguments, resume=resume) if processes.main else None)
    if not processes.main:  # others have the same state and write to a folder of their own
        folder, quiet = folder / "processes" / str(processes.rank), True
        folder.mkdir(parents=True, exist_ok=True)
    config = RunConfig(
        save_seconds=save_seconds,
        keep_episodes=keep_episodes,
        concurrency=concurrency,
        lockstep=lockstep,
        quiet=quiet,
        evaluate_every=evaluate_every,
        tokens=tokens,
    )
    with ExitStack() as opened:
        training = Training(recipe, policy, pool, folder, config, opened, saved)
        stages = recipe.unrolled()
        while training.cursor.stage < len(stages):
            training.stage(stages[training.cursor.stage])
        return training.result()


class Training:
    """A run in progress; `opened` closes its resources."""

    def __init__(
        self,
        recipe: Recipe,
        policy: LocalPolicy,
        pool: InstancePool,
        folder: Path,
        config: RunConfig,
        opened: ExitStack,
        saved: dict[str, Any] | None,
    ) -> None:
        self.recipe, self.policy, self.pool, self.folder, self.config = recipe, policy, pool, folder, config
        stop = recipe.stop or policy.sampling.stop
        limit = recipe.max_tokens or policy.sampling.max_tokens
        policy.sampling = replace(
            policy.sampling, temperature=recipe.temperature, seed=pool.seed, stop=stop, max_tokens=limit
        )
        self.services = Services(
            policy,
            pool,
            folder=folder,
            config=config,
            context=recipe.context,
            temperature=recipe.temperature,
            opened=opened,
        )
        self.learner = self.recipe_learner = Learner(recipe, self.services)
        self.pending: dict[str, Any] | None = None  # state of the learner of a stage with its own parts
        self.cursor = RunCursor()
        self.begun = 0.0  # when the stage began, put off by interruptions and evaluations
        self.reports: dict[str, Report] = {}
        self.seconds: dict[str, dict[str, float]] = {}
        if saved is not None:
            self._restore(saved)
        offset = 0 if saved is None or not self.services.ranks.main else saved["metrics"]
        self.log = opened.enter_context(
            closing(Log(folder, offset=offset, step=self.cursor.run_step, quiet=config.quiet))
        )
        self.saved_at = time.perf_counter()

    # Stages ----------------------------------------------------------------------------------------------------

    def stage(self, stage: Stage) -> None:
        """Run a stage from the current step and save."""
        self.begun = time.perf_counter() - self.cursor.seconds
        stage.run(self)
        parts = self.seconds.setdefault(stage.name, {})
        parts["total"] = time.perf_counter() - self.begun + parts.get("evaluate", 0.0)
        self.cursor = replace(self.cursor, stage=self.cursor.stage + 1, step=0, seconds=0.0)
        self.learner.end()
        self.learner = self.recipe_learner
        self.save()

    def evaluate(self, stage: Evaluate) -> None:
        """Evaluate and keep the reports."""
        stages = [stage]
        if stage.greedy:
            stages.append(replace(stage, name=stage.name + GREEDY, temperature=0.0))
        for each in stages:
            self.log.show(each.name, 0.0, "")
            prefix = "evaluated" if each is stage else "greedy"
            self.reports[each.name] = report = self._evaluate(each, prefix)
            self.log.show(each.name, 1.0, f"success {report.success}")

    def learn(self, stage: LearningStage) -> None:
        """Run the steps of a stage until it ends."""
        self.log.show(stage.name, self._share(stage), "")
        if (own := stage.parts_of(self.recipe)) is not self.recipe:
            self.learner = Learner(own, self.services)
            if self.pending is not None:
                self.learner.load_state_dict(self.pending)
                self.pending = None  # the next stage with its own parts begins anew
        stage.begin(self.learner)
        self.learner.resume_stage()
        if not stage.skipped:
            self._announce(stage)
        agreed, config = self.services.ranks.agreed, self.config
        long_answers = False
        while not stage.until.reached(self.cursor.step, elapsed := agreed(time.perf_counter() - self.begun)):
            if stage.plays and config.tokens is not None and self.cursor.tokens >= config.tokens:
                break
            clock, run_step = Stopwatch(), self.cursor.run_step
            step = StepContext(
                number=self.cursor.step,
                run_step=run_step,
                progress=stage.until.progress(self.cursor.step, elapsed),
                seed=(self.pool.seed, run_step),
                clock=clock,
                kept=run_step in config.keep_episodes,
            )
            self.services.pictures.forget()  # of the step before
            figures = stage.step(self.learner, step)
            parts = self.seconds.setdefault(stage.name, {})
            for part, seconds in clock.parts.items():
                parts[part] = parts.get(part, 0.0) + seconds
            before = self.cursor.learned
            self._count(figures, stage.plays, seconds=time.perf_counter() - self.begun)
            self._write(stage.name, figures, clock)
            names = ("success", "return", "loss", "entropy", "gradient_norm")
            words = "  ".join(f"{name} {figures[name]:.3g}" for name in names if name in figures)
            self.log.show(stage.name, self._share(stage), words)
            self._fit(stage, since=elapsed)
            if not long_answers and figures.get("longest_answer", 0) > self.policy.sampling.max_tokens:
                long_answers = True
                self._warn_of_cuts(stage, int(figures["longest_answer"]))
            every, interim = config.evaluate_every, self.recipe.stages[-1].interim(stage)
            if every and interim and before // every < self.cursor.learned // every:
                evaluating = time.perf_counter()
                self._evaluate(interim, interim=True)
                taken = time.perf_counter() - evaluating
                parts["evaluate"] = parts.get("evaluate", 0.0) + taken
                self.begun += taken  # a time limit is of the stage alone
            if time.perf_counter() - self.saved_at >= config.save_seconds:
                self.cursor = replace(self.cursor, seconds=time.perf_counter() - self.begun)
                self.save()

    def _share(self, stage: LearningStage) -> float:
        """Return how much of the stage is done, by its own limits and the run's limit of tokens."""
        own, limit = stage.until.progress(self.cursor.step, self.cursor.seconds).share, self.config.tokens
        return own if limit is None or not stage.plays else max(own, min(1.0, self.cursor.tokens / limit))

    def _announce(self, stage: LearningStage) -> None:
        """Report limits of the stage: wrong moves that cannot be interjected, episodes that are not selected."""
        planner = stage.planned(self.recipe) if stage.plays else None
        if planner and "admissible" in planner.wants and not runner.lists_actions(self.pool.task):
            self.log.say(f"{stage.name}: no wrong moves are interjected, {self.pool.task} lists no admissible actions")
        if (selection := stage.selection(self.learner)) is not None:
            kept, size = selection
            self.log.say(f"{stage.name}: {kept} of {size} recorded episodes are kept ({kept / size:.1%})")

    def _warn_of_cuts(self, stage: LearningStage, tokens: int) -> None:
        """Report that the policy cannot say what it imitates."""
        limit = self.policy.sampling.max_tokens
        self.log.say(
            f"{stage.name}: an imitated answer has {tokens} tokens, but answers are cut at {limit}; use --max-tokens"
        )

    def _fit(self, stage: LearningStage, *, since: float) -> None:
        """Report once how many steps fit into the time of the stage; `since` are its seconds before the last step."""
        step, seconds = self.cursor.step, self.cursor.seconds
        expected = stage.until.expected(step, seconds)
        if expected is not None and seconds >= MEASURED and (step == 1 or since < MEASURED):
            of = "" if stage.until.steps is None else f" of {stage.until.steps}"
            self.log.say(f"{stage.name}: {seconds / step:.2f} s a step, so {expected}{of} steps in its time limit")

    def _count(self, figures: Mapping[str, float], plays: bool, *, seconds: float) -> None:
        """Advance the cursor by a step; `plays` is False if its episodes were read from a data set."""
        actions, cursor = int(sum(figures.get(name, 0.0) for name in ACTIONS)), self.cursor
        self.cursor = replace(
            cursor,
            step=cursor.step + 1,
            run_step=cursor.run_step + 1,
            tokens=cursor.tokens + self.services.counted() + (actions if plays else 0),
            turns=cursor.turns + (int(figures["played_turns"]) if plays else 0),
            learned=cursor.learned + actions,
            seconds=seconds,
        )

    def _evaluate(self, stage: Evaluate, prefix: str = "evaluated", *, interim: bool = False) -> Report:
        clock = Stopwatch()
        temperature = self.recipe.temperature if stage.temperature is None else stage.temperature
        training = self.policy.sampling
        self.policy.sampling = replace(training, temperature=temperature)
        pool = self.pool
        size = runner.size_of(pool.task, stage.split, pool.options)
        jobs = runner.episodes(
            pool.task, split=stage.split, size=size, count=stage.episodes, seed=pool.seed, options=pool.options
        )
        if (prompt := self.learner.tasks.prompt) is not None:
            jobs = [replace(job, prompt=prompt) for job in jobs]
        with clock("evaluate"), self.learner.answering(stage.by):
            seats = self.learner.seats.configs(interim=interim) if stage.others == "seats" else {}
            engine, ranks = self.services.engine(stage.planner, seats), self.services.ranks
            mine = runner.outcomes(self.policy, ranks.share_groups(jobs), engine=engine)
            outcomes = dict(ranks.gathered(mine.items()))
        self.policy.sampling = training
        origin = {"policy": self.policy.name, "version": self.policy.version, "seed": pool.seed}
        report = runner.report_of(jobs, outcomes, finished=True, **origin)
        self._write(stage.name, of_evaluation(report, prefix), clock)
        return report

    # Inside ----------------------------------------------------------------------------------------------------

    def _write(self, stage: str, figures: Mapping[str, float], clock: Stopwatch) -> None:
        seconds = {f"seconds_{part}": value for part, value in clock.parts.items()}
        cursor = self.cursor
        place: dict[str, float | int | str] = {"stage": stage, "step": cursor.step, "run_step": cursor.run_step}
        spent = {"action_tokens": cursor.tokens, "environment_steps": cursor.turns, "seconds": cursor.seconds}
        self.log.write({**place, **figures, **spent, **seconds}, step=cursor.run_step)

    def save(self) -> None:
        """Write a checkpoint."""
        self.cursor = replace(self.cursor, saves=self.cursor.saves + 1)
        self.saved_at = time.perf_counter()
        if not self.services.ranks.main:
            return
        state = {
            "cursor": asdict(self.cursor),
            "model": self.policy.model.state_dict(),
            "version": self.policy.version,
            "learner": self.recipe_learner.state_dict(),
            "stage_learner": None if self.learner is self.recipe_learner else self.learner.state_dict(),
            "random": torch.get_rng_state(),
            "metrics": self.log.offset,
            "seconds": self.seconds,
            "reports": {name: report.state_dict() for name, report in self.reports.items()},
        }
        checkpoint.save(self.folder / CHECKPOINTS, state, number=self.cursor.saves)
        self.saved_at = time.perf_counter()

    def _restore(self, saved: dict[str, Any]) -> None:
        self.cursor = RunCursor(**saved["cursor"])
        self.policy.model.load_state_dict(saved["model"])
        self.policy.update()
        self.policy.version = saved["version"]
        self.recipe_learner.load_state_dict(saved["learner"])
        self.pending = saved["stage_learner"]
        self.seconds = saved["seconds"]
        self.reports = {name: Report.from_state(state) for name, state in saved["reports"].items()}
        torch.set_rng_state(saved["random"])

    def result(self) -> RunResult:
        """Write the policy, the curve and the reports."""
        target = self.folder / "policy"
        done = RunResult(folder=self.folder, policy=target, reports=self.reports, seconds=self.seconds)
        if not self.services.ranks.main:
            return done
        partial_ = self.folder / "policy.partial"
        with writing(target):
            shutil.rmtree(partial_, ignore_errors=True)
            self.policy.save(partial_)
            shutil.rmtree(target, ignore_errors=True)
            partial_.rename(target)
        curve.draw(self.folder)
        states = {name: report.state_dict() for name, report in self.reports.items()}
        replace_file(self.folder / "reports.json", json.dumps(states))
        return done
