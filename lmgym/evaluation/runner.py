"""A policy over a split: the same episodes with the same noise whoever plays, so that two reports pair up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lmgym.env.registry import build, find
from lmgym.evaluation.stats import Interval, bootstrap, clustered, paired, wilson
from lmgym.policy.base import Policy
from lmgym.rollout.engine import Engine
from lmgym.types import Job, Trajectory


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one episode went."""

    index: int | None
    attempt: int
    score: float
    success: bool
    reward: float
    turns: int
    invalid: int  # turns whose action was none
    truncated: bool
    tokens: int  # sampled


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a policy did on a split."""

    task: str
    split: str
    policy: str
    version: int = 0
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()

    @property
    def success(self) -> Interval:
        """Share of episodes solved; Wilson's interval, or the bootstrap over instances where these come again."""
        solved = [float(outcome.success) for outcome in self.outcomes]
        indices = [outcome.index for outcome in self.outcomes]
        if len(set(indices)) == len(indices):
            return wilson(int(sum(solved)), len(solved))
        return clustered(solved, indices)

    @property
    def score(self) -> Interval:
        """Mean score, the bootstrap over instances."""
        scores = [outcome.score for outcome in self.outcomes]
        return clustered(scores, [outcome.index for outcome in self.outcomes])

    @property
    def turns(self) -> Interval:
        """Mean number of turns."""
        return bootstrap([outcome.turns for outcome in self.outcomes])

    def since(self, before: Report) -> Interval:
        """Gain in success over a report on the same episodes."""
        names = [[(outcome.index, outcome.attempt) for outcome in report.outcomes] for report in (before, self)]
        if names[0] != names[1]:
            raise ValueError(f"two reports on {self.task} {self.split} are of different episodes and do not pair up")
        old, new = ([float(outcome.success) for outcome in report.outcomes] for report in (before, self))
        return paired(old, new, [outcome.index for outcome in self.outcomes])

    def state_dict(self) -> dict[str, Any]:
        """As plain values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Report:
        """From plain values."""
        return cls(**{**state, "outcomes": tuple(Outcome(**outcome) for outcome in state["outcomes"])})


def size_of(task: str, split: str, options: Mapping[str, Any]) -> int:
    """Instances of a split, as the task's environment counts them: options may decide which data it plays."""
    env = build(task, split=split, **options)
    size: int = env.unwrapped.size()
    env.close()
    return size


def id_of(task: str) -> str:
    """The id that a task's name stands for."""
    return find(task).id


def episodes(
    task: str, *, split: str, size: int, count: int, tries: int = 1, seed: int = 0, options: Mapping[str, Any]
) -> list[Job]:
    """Jobs for `count` instances of a split of `size`, `tries` times each; all of it in order where it suffices."""
    if count >= size:
        indices = np.arange(size)
    else:
        indices = np.sort(np.random.default_rng([seed, size]).choice(size, count, replace=False))
    return [
        Job(
            task=task,
            split=split,
            options=options,
            index=int(index),
            seed=seed,
            attempt=attempt,
            id=f"eval-{split}-{index}-{attempt}",
            group=f"eval-{split}-{index}",
        )
        for index in indices
        for attempt in range(tries)
    ]


def evaluate(
    policy: Policy,
    jobs: list[Job],
    *,
    engine: Engine,
    seed: int = 0,
    keep: Callable[[Trajectory], object] | None = None,
) -> Report:
    """Play `jobs` and report, in their order; each episode is handed to `keep`."""
    places = {job.id: place for place, job in enumerate(jobs)}
    found = sorted(engine.run(policy, jobs), key=lambda trajectory: places[trajectory.id])
    if keep is not None:
        for trajectory in found:
            keep(trajectory)
    return Report(
        task=jobs[0].task,
        split=jobs[0].split,
        policy=policy.name,
        version=policy.version,
        seed=seed,
        options=dict(jobs[0].options),
        outcomes=tuple(outcome(trajectory) for trajectory in found),
    )


def outcome(trajectory: Trajectory) -> Outcome:
    """What a report keeps of an episode."""
    return Outcome(
        index=trajectory.index,
        attempt=trajectory.attempt,
        score=trajectory.score,
        success=trajectory.success,
        reward=trajectory.reward,
        turns=len(trajectory.turns),
        invalid=sum(not turn.info.get("valid", True) for turn in trajectory.turns),
        truncated=trajectory.truncated,
        tokens=sum(len(turn.completion.ids) for turn in trajectory.turns),
    )
