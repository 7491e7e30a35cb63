"""Tasks: choose the episodes that a step plays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from lmgym.errors import RecipeError
from lmgym.train.interfaces import Tasks
from lmgym.train.parts.filters import groups
from lmgym.train.services import Services
from lmgym.train.state import InstancePool
from lmgym.types import Job, Trajectory

EXAMPLES, TRANSCRIPT = 3, 400  # episodes shown to a reflector, and characters of each
REFLECTION = """An agent gets this instruction:
{best}

These episodes went badly:
{episodes}

Write a better instruction in one sentence."""


@dataclass(frozen=True)
class Uniform(Tasks):
    """Passes over all instances of the split, each pass in a new order that depends on the seed alone."""

    instances: int  # per step
    tries: int = 1  # episodes per instance: a group
    budget: int | None = None  # maximum number of turns, below the task's own limit
    first: int | None = None  # use only the first instances of the split; None: all
    options: Mapping[str, Any] = field(default_factory=dict)  # of the task in these episodes, beside the run's

    def __post_init__(self) -> None:
        optional = (number for number in (self.budget, self.first) if number is not None)
        if min(self.instances, self.tries, *optional) < 1:
            raise RecipeError(f"instances, tries, budget and first must be 1 or more; got {self}")

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Return the jobs of a step, grouped by instance."""
        pool = replace(pool, options={**pool.options, **self.options})
        numbers = range(step * self.instances, (step + 1) * self.instances)
        groups = (
            group_jobs(pool, step, place, number, self.index(number, pool), tries=self.tries, budget=self.budget)
            for place, number in enumerate(numbers)
        )
        return [job for group in groups for job in group]

    def index(self, number: int, pool: InstancePool) -> int:
        """Return the instance of draw `number`, counted over all steps."""
        size = pool.size if self.first is None else min(self.first, pool.size)
        lap, position = divmod(number, size)
        return int(order(pool.seed, lap, size)[position])


@dataclass(frozen=True)
class Ramp(Tasks):
    """Raises the turn limit of other tasks in steps (ScalingInter: Xi et al. 2025, AgentGym-RL)."""

    tasks: Tasks
    limits: Sequence[tuple[int, int]]  # (step from which it holds, maximum number of turns), in the order of steps

    def __post_init__(self) -> None:
        starts = [start for start, _ in self.limits]
        if not starts or starts[0] != 0 or starts != sorted(set(starts)) or min(turns for _, turns in self.limits) < 1:
            raise RecipeError(f"turn limits begin at step 0, in the order of steps, with 1 turn or more: {self.limits}")

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Return the jobs of the other tasks with the turn limit of the step."""
        turns = [turns for start, turns in self.limits if start <= step][-1]
        return [replace(job, budget=turns) for job in self.tasks.draw(step, pool)]


@dataclass
class Band(Tasks):
    """Passes over instances, leaving out those whose success rate so far is outside a band.

    An instance is judged after `attempts` episodes. If none is left, all are played again.
    """

    STATE = ("next", "results")

    uniform: Uniform
    low: float  # rate below which an instance is left out
    high: float = 1.0  # rate above which it is left out
    attempts: int = 8
    next: int = 0  # number of the next draw
    results: dict[int, tuple[int, int]] = field(default_factory=dict)  # by instance: successes, episodes

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Return the jobs of the next instances within the band."""
        jobs: list[Job] = []
        for place in range(self.uniform.instances):
            size = pool.size if self.uniform.first is None else min(self.uniform.first, pool.size)
            numbers = range(self.next, self.next + 2 * size)
            number = next((n for n in numbers if self._within(self.uniform.index(n, pool))), self.next)
            self.next = number + 1
            index, tries, budget = self.uniform.index(number, pool), self.uniform.tries, self.uniform.budget
            jobs += group_jobs(pool, step, place, number, index, tries=tries, budget=budget)
        return jobs

    def observe(self, trajectories: Sequence[Trajectory], services: Services) -> None:
        """Count successes and episodes of each instance."""
        for trajectory in trajectories:
            assert trajectory.index is not None
            successes, episodes = self.results.get(trajectory.index, (0, 0))
            self.results[trajectory.index] = (successes + trajectory.success, episodes + 1)

    def _within(self, index: int) -> bool:
        successes, episodes = self.results.get(index, (0, 0))
        return episodes < self.attempts or self.low <= successes / episodes <= self.high


@dataclass
class Bank(Tasks):
    """Plays an instance less often the more often it was won, and not much longer than its longest success (DART).

    With s its success rate so far it has round(tries (1 - s)) episodes, `fewest` at least, of `margin` turns more than
    its longest success at most.
    """

    STATE = ("results",)

    uniform: Uniform
    fewest: int
    margin: int
    results: dict[int, tuple[int, int, int]] = field(default_factory=dict)  # successes, episodes, longest success

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Return the jobs of the next instances."""
        jobs: list[Job] = []
        uniform = self.uniform
        for place in range(uniform.instances):
            number = step * uniform.instances + place
            index = uniform.index(number, pool)
            won, episodes, longest = self.results.get(index, (0, 0, 0))
            tries = max(self.fewest, round(uniform.tries * (1 - won / max(1, episodes))))
            limits = [turns for turns in (uniform.budget, longest and longest + self.margin) if turns]
            jobs += group_jobs(pool, step, place, number, index, tries=tries, budget=min(limits, default=None))
        return jobs

    def observe(self, trajectories: Sequence[Trajectory], services: Services) -> None:
        """Count successes and episodes of each instance, and keep the turns of its longest success."""
        for trajectory in trajectories:
            assert trajectory.index is not None
            won, episodes, longest = self.results.get(trajectory.index, (0, 0, 0))
            turns = len(trajectory.turns) if trajectory.success else 0
            self.results[trajectory.index] = (won + trajectory.success, episodes + 1, max(longest, turns))


@dataclass
class Population(Tasks):
    """Plays each group under one of several system prompts, the better ones more often (INSPO).

    An instruction's weight is the moving average of the mean returns of its groups, at `rate`; it is drawn with the
    softmax of weights over `temperature`. After every `every` steps a policy rewrites the best one, given the worst
    episodes since, and the new one takes the place of the worst, with the mean weight of the others.
    """

    STATE = ("instructions", "weights", "worst", "steps")

    uniform: Uniform
    instructions: list[str]
    temperature: float = 0.1  # of the softmax, in units of return
    rate: float = 0.2
    every: int = 10  # steps; 0: never
    reflector: str | None = None  # model string of the policy that rewrites; None: the one that is trained
    weights: dict[str, float] = field(default_factory=dict)  # by instruction
    worst: list[tuple[float, str]] = field(default_factory=list)  # return and transcript, since the last rewriting
    steps: int = 0

    @property
    def prompt(self) -> str | None:
        """The best instruction so far."""
        return max(self.instructions, key=self._weight)

    def draw(self, step: int, pool: InstancePool) -> list[Job]:
        """Return the jobs of a step, each group with its instruction."""
        jobs: list[Job] = []
        scaled = np.array([self._weight(each) for each in self.instructions]) / self.temperature
        chances = np.exp(scaled - scaled.max())
        for place in range(self.uniform.instances):
            number = step * self.uniform.instances + place
            chosen = np.random.default_rng([pool.seed, number, 5]).choice(len(scaled), p=chances / chances.sum())
            index, tries, budget = self.uniform.index(number, pool), self.uniform.tries, self.uniform.budget
            prompt = self.instructions[int(chosen)]
            jobs += group_jobs(pool, step, place, number, index, tries=tries, budget=budget, prompt=prompt)
        return jobs

    def observe(self, trajectories: Sequence[Trajectory], services: Services) -> None:
        """Credit the instructions with the returns of their groups, and perhaps replace one."""
        for members in groups(trajectories).values():
            prompt, mean = members[0].prompt or "", fmean(each.reward for each in members)
            before = self.weights.get(prompt, mean)
            self.weights[prompt] = (1 - self.rate) * before + self.rate * mean
        told = [(each.reward, transcript(each)) for each in trajectories]
        self.worst = sorted([*self.worst, *told])[:EXAMPLES]
        self.steps += 1
        if self.every and self.steps % self.every == 0 and len(self.instructions) > 1:
            self._evolve(services)

    def _evolve(self, services: Services) -> None:
        question = REFLECTION.format(best=self.prompt, episodes="\n\n".join(text for _, text in self.worst))
        (answer,) = services.judge([question], model=self.reflector)
        new = " ".join(answer.split())
        if new and new not in self.instructions:
            ranked = sorted(self.instructions, key=self._weight)
            self.weights[new] = fmean(map(self._weight, ranked[1:]))
            self.instructions = [*ranked[1:], new]
        self.worst = []

    def _weight(self, instruction: str) -> float:
        """Return the weight of an instruction: before its first group the mean of the others, and 0 at the start."""
        weights = [self.weights[each] for each in self.instructions if each in self.weights]
        return self.weights.get(instruction, fmean(weights) if weights else 0.0)


def transcript(trajectory: Trajectory) -> str:
    """Return an episode in words, cut to its last characters."""
    lines = (f"{turn.observation.text}\n> {turn.completion.text}" for turn in trajectory.turns)
    return "\n".join(lines)[-TRANSCRIPT:]


def group_jobs(
    pool: InstancePool,
    step: int,
    place: int,
    number: int,
    index: int,
    *,
    tries: int,
    budget: int | None = None,
    prompt: str | None = None,
    tags: Mapping[str, Any] | None = None,
) -> list[Job]:
    """Return the tries of an instance: group `place` of its step; the draw's `number` seeds their common chance."""
    group = f"{pool.stage}-{step}-{place}"
    return [
        Job(
            task=pool.task,
            split=pool.split,
            options=pool.options,
            index=index,
            seed=int(np.random.default_rng([pool.seed, number]).integers(1 << 31)),
            attempt=attempt,
            budget=budget,
            prompt=prompt,
            tags=tags or {},
            id=f"{group}-{attempt}",
            group=group,
        )
        for attempt in range(tries)
    ]


@cache
def order(seed: int, lap: int, size: int) -> npt.NDArray[np.int64]:
    """Return the numbers below `size` in the order of pass `lap`."""
    return np.random.default_rng([seed, lap]).permutation(size)
