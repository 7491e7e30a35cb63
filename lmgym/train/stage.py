"""The base of stages, evaluation, and repetition.

A new kind of stage is a subclass of LearningStage with `play` and `learn`, in the file of the recipe that needs it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Protocol

from lmgym.errors import RecipeError
from lmgym.rollout.context import Context
from lmgym.rollout.planner import Planner
from lmgym.train.figures import of_play
from lmgym.train.interfaces import Needs, Parts
from lmgym.train.learner import Learner, StepContext
from lmgym.train.schedule import Until
from lmgym.types import Trajectory

Others = Literal["scripted", "seats"]  # players of other seats in an evaluation: the task's own, or the recipe's
TIMED_ROUND = 1000  # steps of draws set aside for a round that only a time limit ends
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

    def parts_of(self, recipe: Parts) -> Parts:
        """Return the parts of the stage, which are the recipe's unless it brings its own."""
        return recipe

    def unrolled(self) -> list[Stage]:
        """Return the stages that this one stands for."""
        return [self]

    def on_split(self, split: str) -> Stage:
        """Return the stage with its evaluations on `split`."""
        return self

    def seeing(self, context: Context) -> Stage:
        """Return the stage with `context` in its own parts."""
        return self

    def in_round(self, number: int) -> Stage:
        """Return the stage as it runs in a round, counted from 1."""
        return replace(self, name=f"{self.name} {number}")

    def interim(self, stage: LearningStage) -> Evaluate | None:
        """Return the evaluation to repeat in the middle of `stage` if this stage is the last; None for none."""
        return None


@dataclass(frozen=True, kw_only=True)
class Evaluate(Stage):
    """Plays a split without learning: the same episodes with the same noise each time, so that reports pair up."""

    split: str = "test"
    episodes: int = 100
    temperature: float | None = None  # None: that of the training
    greedy: bool = False  # a second time at temperature 0
    by: Literal["policy", "critic"] = "policy"  # critic: the policy guided by the critic
    planner: Planner | None = None  # None: every episode is played to its end, whatever the training plays
    others: Others = "scripted"

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
    drawn: int = 0  # steps of the tasks or the data set that earlier rounds have drawn

    @property
    def skipped(self) -> bool:
        """True if the stage has no steps."""
        return self.until.steps == 0

    def in_round(self, number: int) -> LearningStage:
        """Return the stage as it runs in a round, counted from 1; it draws what follows the draws of earlier rounds."""
        drawn = self.drawn + (number - 1) * (self.until.steps or TIMED_ROUND)
        return replace(self, name=f"{self.name} {number}", drawn=drawn)

    def run(self, runner: StageRunner) -> None:
        """Run the steps."""
        runner.learn(self)

    def begin(self, learner: Learner) -> None:
        """Make what the stage trains: the updater, the critic."""

    def step(self, learner: Learner, step: StepContext) -> dict[str, float]:
        """Play, learn, and return figures for the log."""
        with step.clock("play"):
            episodes, abandoned = self.play(learner, replace(step, number=self.drawn + step.number))
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
class Repeat(Stage):
    """The same stages several times; their names get the number of the round."""

    name: str = "repeat"
    stages: Sequence[Stage]
    times: int

    def __post_init__(self) -> None:
        """Raise RecipeError for rounds within rounds, whose draws would overlap."""
        if any(isinstance(stage, Repeat) for stage in self.stages):
            raise RecipeError("a Repeat cannot hold another Repeat; write out the inner rounds")

    def run(self, runner: StageRunner) -> None:
        """Run the stages that this one stands for."""
        for stage in self.unrolled():
            stage.run(runner)

    def unrolled(self) -> list[Stage]:
        """Return the stages of all rounds."""
        return [stage.in_round(number) for number in range(1, self.times + 1) for stage in self.stages]

    def on_split(self, split: str) -> Stage:
        """Return the rounds with their evaluations on `split`."""
        return replace(self, stages=[stage.on_split(split) for stage in self.stages])

    def seeing(self, context: Context) -> Stage:
        """Return the rounds with `context` in the parts of their stages."""
        return replace(self, stages=[stage.seeing(context) for stage in self.stages])
