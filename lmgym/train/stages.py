"""The stages of a run: each knows how to play its episodes and how to learn from them.

A new kind of stage is a subclass of LearningStage with `play` and `learn`, in the file of the recipe that needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar, Literal, Protocol

from lmgym.errors import RecipeError
from lmgym.rollout import dataset
from lmgym.rollout.planner import Planner
from lmgym.train import source
from lmgym.train.batch import masked, with_observations
from lmgym.train.collate import turns_out
from lmgym.train.figures import of_demonstrations, of_play, over_draws
from lmgym.train.interfaces import Credit, Filter, Needs, Optimiser, Parts, Reward, Tasks, Term, no_credit
from lmgym.train.learner import Learner, StepContext, Turns, filtered
from lmgym.train.ranges import PositiveInt, check_ranges
from lmgym.train.schedule import Until
from lmgym.types import Trajectory

Played = tuple[list[Trajectory], int]  # episodes in the order of their jobs; jobs that were given up


class StageRunner(Protocol):
    """The loop, as stages see it."""

    def learn(self, stage: LearningStage) -> None:
        """Run a stage step by step until it ends."""

    def evaluate(self, stage: Evaluate) -> None:
        """Evaluate and keep the report."""


@dataclass(frozen=True, kw_only=True)
class Stage(ABC):
    """A part of a run; the base of stages."""

    learns: ClassVar[bool] = False

    name: str

    @property
    def skipped(self) -> bool:
        """True if the stage has no steps."""
        return False

    @abstractmethod
    def run(self, runner: StageRunner) -> None:
        """Run the stage from the point that the run has reached in it."""

    def needs(self) -> Needs:
        """Return the requirements of the stage."""
        return Needs()

    def unrolled(self) -> list[Stage]:
        """Return the stages that this one stands for."""
        return [self]

    def on_split(self, split: str) -> Stage:
        """Return the stage with its evaluations on `split`."""
        return self

    def interim(self, stage: LearningStage) -> Evaluate | None:
        """Return the evaluation to repeat in the middle of `stage` if this stage is the last; None for none."""
        return None


@dataclass(frozen=True, kw_only=True)
class Evaluate(Stage):
    """Plays a split without learning: the same episodes with the same noise each time, so that reports pair up."""

    split: str = "test"
    episodes: int = 100
    temperature: float | None = None  # None: that of the training
    by: Literal["policy", "critic"] = "policy"  # critic: the policy guided by the critic
    planner: Planner | None = None  # None: every episode is played to its end, whatever the training plays

    def __post_init__(self) -> None:
        if self.episodes < 1:
            raise RecipeError(f"an evaluation has 1 episode or more; got {self.episodes}")

    def run(self, runner: StageRunner) -> None:
        """Evaluate."""
        runner.evaluate(self)

    def needs(self) -> Needs:
        """Return the split, and that a critic guides the policy."""
        return Needs(split=self.split, guidance=self.by == "critic")

    def on_split(self, split: str) -> Stage:
        """Return the evaluation on another split."""
        return replace(self, split=split)

    def interim(self, stage: LearningStage) -> Evaluate | None:
        """Return this evaluation, of the policy alone unless `stage` trains the critic that guides it."""
        return self if self.by == "critic" and stage.trains_critic else replace(self, by="policy")


@dataclass(frozen=True, kw_only=True)
class LearningStage(Stage):
    """A stage that plays and learns step by step; the base of those."""

    learns: ClassVar[bool] = True
    trains_critic: ClassVar[bool] = False  # the critic alone

    until: Until

    @property
    def skipped(self) -> bool:
        """True if the stage has no steps."""
        return self.until.steps == 0

    def run(self, runner: StageRunner) -> None:
        """Run the steps."""
        runner.learn(self)

    def begin(self, learner: Learner) -> None:
        """Make what the stage trains: the updater, the critic."""

    def step(self, learner: Learner, step: StepContext) -> dict[str, float]:
        """Play, learn, and return figures for the log."""
        with step.clock("play"):
            episodes, abandoned = self.play(learner, step)
        if step.kept:
            learner.write(episodes, "episodes", step)
        figures = {**self.describe(episodes), "abandoned": float(abandoned)}
        return {**figures, **self.learn(learner, episodes, step)}

    @abstractmethod
    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return the episodes of a step and the number of jobs that were given up."""

    @abstractmethod
    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Learn from the episodes of a step and return figures."""

    @property
    def plays(self) -> bool:
        """True if episodes are played rather than read."""
        return True

    def planned(self, parts: Parts) -> Planner | None:
        """Return the planner of the episodes that the stage plays."""
        return parts.planner

    def describe(self, episodes: Sequence[Trajectory]) -> dict[str, float]:
        """Return the figures of the episodes of a step."""
        return of_play(episodes)

    def selection(self, learner: Learner) -> tuple[int, int] | None:
        """Return how many episodes of a data set are used, and of how many; None if none are selected."""
        return None


@dataclass(frozen=True, kw_only=True)
class Sft(LearningStage):
    """Imitation of demonstrated or recorded episodes, with its own parts in place of the recipe's."""

    tasks: Tasks
    loss: Sequence[Term]
    name: str = "sft"
    recorded: Path | None = None  # JSON lines of episodes, or a folder of such; None: the demonstrator plays fresh ones
    select: Filter | None = None  # of all that is recorded, before any of it is drawn
    planner: Planner | None = None
    reward: Sequence[Reward] = ()
    filter: Sequence[Filter] = ()
    credit: Credit = no_credit
    observation_weight: float = 0.0  # of tokens outside the answers
    optimiser: Optimiser = field(default_factory=Optimiser)

    def needs(self) -> Needs:
        """Return the data set, or that a demonstrator is needed."""
        return Needs(data=self.recorded, select=self.select, demonstrator=self.recorded is None)

    @property
    def plays(self) -> bool:
        """True if the demonstrator plays."""
        return self.recorded is None

    def planned(self, parts: Parts) -> Planner | None:
        """Return the stage's own planner."""
        return self.planner

    def begin(self, learner: Learner) -> None:
        """Make the updater."""
        learner.begin_updates(self.loss, self.optimiser)

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return demonstrations or episodes of the data set."""
        jobs = learner.jobs(self.tasks, self.name, step)
        if self.recorded is None:
            return learner.play(jobs, self.planner, by=source.demonstrated)
        return learner.read(self.recorded, step, count=len(jobs), select=self.select), 0

    def describe(self, episodes: Sequence[Trajectory]) -> dict[str, float]:
        """Return figures of demonstrations."""
        return of_demonstrations(episodes)

    def selection(self, learner: Learner) -> tuple[int, int] | None:
        """Return how many episodes of the data set `select` keeps, and of how many."""
        if self.recorded is None or self.select is None:
            return None
        path = learner.data(self.recorded)
        return len(source.selected(path, self.select)), source.size(path)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Imitate."""
        selection = self.selection(learner)
        with step.clock("collate"):
            kept, out, figures = filtered(episodes, self.reward, self.filter)
        if selection is not None:
            figures = {"selected": selection[0] / selection[1], **figures}
        if not kept:
            return {**figures, "trained_tokens": 0.0}
        with step.clock("collate"):
            batch = learner.services.batch(kept, "given", ends=False)
        with step.clock("credit"):
            batch = replace(batch, advantage=self.credit(batch))
            batch = masked(batch, turns_out(batch, kept, out))
            if self.observation_weight:
                batch = with_observations(batch, self.observation_weight)
        return figures | learner.update(batch, kept, step)


@dataclass(frozen=True, kw_only=True)
class Rl(LearningStage):
    """Reinforcement learning by the parts of the recipe."""

    name: str = "rl"
    optimiser: Optimiser = field(default_factory=Optimiser)
    rescore: bool | None = None  # old log-probs by the trainer; None: where its precision differs from the sampler's
    kl_probe_tokens: int = 2048  # tokens a step on which the KL to the start policy is measured; 0: never
    updates_per_step: PositiveInt = 1  # draws from the store, each followed by an update with the weights so far

    def __post_init__(self) -> None:
        check_ranges(self)

    def needs(self) -> Needs:
        """Return that the critic is used, how old log-probs come about, and whether a store is drawn from."""
        return Needs(critic=True, sampler_logprobs=self.rescore is False, store=self.updates_per_step > 1)

    def begin(self, learner: Learner) -> None:
        """Make the updater, the critic and the reference."""
        joint = learner.begin_critic(policy_learns=True)
        probe = bool(learner.reward_kl or self.kl_probe_tokens)
        updater = learner.begin_updates(learner.parts.loss, self.optimiser, joint=joint, reference=probe)
        updater.scores_old = self.rescore is None and self.optimiser.single

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return episodes of the policy."""
        return learner.play(learner.jobs(learner.parts.tasks, self.name, step), learner.parts.planner)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Learn from the episodes, or through the store from one draw or several."""
        kept, out, figures = learner.judged(episodes, step)
        if learner.store is None:
            return figures | self._update(learner, kept, out, step)
        figures |= learner.stored(kept, step)
        draws: list[dict[str, float]] = []
        for number in range(self.updates_per_step):
            own = step.draw(number)
            with step.clock("play"):
                drawn = learner.store.draw(learner.services, seed=own.seed)
            draws.append(self._update(learner, drawn, out, own))
        return figures | over_draws(draws)

    def _update(self, learner: Learner, episodes: list[Trajectory], out: Turns, step: StepContext) -> dict[str, float]:
        """Train the critic and the policy on episodes, without the turns that are `out`; return figures."""
        if not episodes:
            return {"trained_tokens": 0.0}
        with step.clock("collate"):
            batch = learner.services.batch(episodes, "sampled", ends=learner.critic is not None)
        with step.clock("score"):
            batch, factor, gap = learner.rescored(batch, self.rescore)
            batch, divergence = learner.compared(batch, probe_tokens=self.kl_probe_tokens, seed=step.seed)
        batch, figures = learner.valued(batch, step)
        with step.clock("credit"):
            batch = replace(batch, advantage=learner.parts.credit(batch) * factor)
            batch = masked(batch, turns_out(batch, episodes, out))
        return {**figures, **learner.update(batch, episodes, step), **gap, **divergence}


@dataclass(frozen=True, kw_only=True)
class FitCritic(LearningStage):
    """A stage in which the critic learns and the policy does not: its warm-up, or the whole of value learning."""

    trains_critic: ClassVar[bool] = True

    name: str = "critic"
    recorded: Path | None = None  # episodes, as for Sft; None: the policy plays

    def needs(self) -> Needs:
        """Return the data set and that the critic is used."""
        return Needs(data=self.recorded, critic=True)

    @property
    def plays(self) -> bool:
        """True if the policy plays."""
        return self.recorded is None

    def begin(self, learner: Learner) -> None:
        """Make the critic."""
        learner.begin_critic(policy_learns=False)

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return episodes of the policy or of the data set."""
        jobs = learner.jobs(learner.parts.tasks, self.name, step)
        if self.recorded is None:
            return learner.play(jobs, learner.parts.planner)
        return learner.read(self.recorded, step, count=len(jobs)), 0

    def describe(self, episodes: Sequence[Trajectory]) -> dict[str, float]:
        """Return figures of play, or of demonstrations where episodes are recorded."""
        return of_play(episodes) if self.recorded is None else of_demonstrations(episodes)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Train the critic."""
        kept, _, figures = learner.judged(episodes, step)
        if learner.store is not None:
            return figures | learner.stored(kept, step)
        if not kept:
            return {**figures, "trained_tokens": 0.0}
        with step.clock("collate"):
            batch = learner.services.batch(kept, "sampled" if self.recorded is None else "given", ends=True)
        return figures | learner.valued(batch, step)[1]


@dataclass(frozen=True, kw_only=True)
class Generate(LearningStage):
    """Plays and writes the episodes, for stages that learn from records."""

    into: str  # folder within that of the run, a file a step
    tasks: Tasks
    planner: Planner | None = None
    filter: Sequence[Filter] = ()
    demonstrated: bool = False  # by the task's demonstrator; False: by the policy
    name: str = "generate"

    def needs(self) -> Needs:
        """Return the data set that is made, and that a demonstrator is needed."""
        return Needs(makes=self.into, demonstrator=self.demonstrated)

    def planned(self, parts: Parts) -> Planner | None:
        """Return the stage's own planner."""
        return self.planner

    def play(self, learner: Learner, step: StepContext) -> Played:
        """Return demonstrations or episodes of the policy."""
        by = source.demonstrated if self.demonstrated else source.played
        return learner.play(learner.jobs(self.tasks, self.name, step), self.planner, by=by)

    def describe(self, episodes: Sequence[Trajectory]) -> dict[str, float]:
        """Return figures of play or of demonstrations."""
        return of_demonstrations(episodes) if self.demonstrated else of_play(episodes)

    def learn(self, learner: Learner, episodes: list[Trajectory], step: StepContext) -> dict[str, float]:
        """Write the episodes."""
        kept, _, _ = filtered(episodes, (), self.filter)
        learner.write([dataset.labelled(episode, learner.policy) for episode in kept], self.into, step)
        return {"kept_episodes": float(len(kept))}


@dataclass(frozen=True, kw_only=True)
class Repeat(Stage):
    """The same stages several times; their names get the number of the round."""

    name: str = "repeat"
    stages: Sequence[Stage]
    times: int

    def run(self, runner: StageRunner) -> None:
        """Run the stages that this one stands for."""
        for stage in self.unrolled():
            stage.run(runner)

    def unrolled(self) -> list[Stage]:
        """Return the stages of all rounds."""
        inner = [each for stage in self.stages for each in stage.unrolled()]
        return [replace(each, name=f"{each.name} {n}") for n in range(1, self.times + 1) for each in inner]

    def on_split(self, split: str) -> Stage:
        """Return the rounds with their evaluations on `split`."""
        return replace(self, stages=[stage.on_split(split) for stage in self.stages])
