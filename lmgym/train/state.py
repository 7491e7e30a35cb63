"""The records of a run besides its weights: configuration, position and result."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

from lmgym.evaluation.runner import Report
from lmgym.evaluation.stats import Interval

GREEDY = ", greedy"  # ends the name of an evaluation at temperature 0


class Checkpointed:
    """A part whose state in a checkpoint is the attributes that `STATE` names."""

    STATE: ClassVar[tuple[str, ...]] = ()

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint."""
        return {name: copy(getattr(self, name)) for name in self.STATE}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore the state of a checkpoint."""
        for name in self.STATE:
            setattr(self, name, copy(state[name]))


@dataclass(frozen=True, kw_only=True)
class InstancePool:
    """The instances that jobs are drawn from: a split of a task, its size and the seed of the run."""

    task: str
    size: int  # instances of the split
    stage: str = ""  # its name begins the ids of its episodes
    split: str = "train"
    options: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class RunCursor:
    """The position of a run in its recipe."""

    stage: int = 0
    step: int = 0  # of the stage
    seconds: float = 0.0  # in the stage, without interruptions and evaluations
    run_step: int = 0  # of all stages
    tokens: int = 0  # of actions played, demonstrated or sampled at stored turns so far
    turns: int = 0  # played or demonstrated so far
    learned: int = 0  # tokens of actions in the steps so far, recorded ones as often as they came
    saves: int = 0


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """Settings that do not change what a run learns; `lockstep` and `concurrency` change its bits."""

    save_seconds: float = 30.0  # least time between checkpoints; the end of a stage always makes one
    keep_episodes: Collection[int] = ()  # steps, counted over all stages, whose episodes are kept as JSON lines
    concurrency: int | None = None  # episodes at once; None: 64, of some tasks fewer, as their SPECs say
    lockstep: bool = False  # same bits also for environments in threads or processes
    quiet: bool = False  # no progress
    evaluate_every: int = 0  # tokens of actions between evaluations like the last stage's; 0: none
    tokens: int | None = None  # of actions, after which no more episodes are played to learn from; schedules ignore it


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a run."""

    folder: Path
    policy: Path  # `hf:` and this path load the final weights
    reports: Mapping[str, Report]  # by the name of the Evaluate stage
    seconds: Mapping[str, Mapping[str, float]]  # stage -> part -> seconds; "total" among the parts

    @property
    def paired_gain(self) -> Interval | None:
        """Paired difference in success between the last report and the first; None if there is one report."""
        return self._since("success")

    @property
    def paired_score_gain(self) -> Interval | None:
        """Paired difference in the mean score."""
        return self._since("score")

    @property
    def paired_greedy_gain(self) -> Interval | None:
        """Paired difference in success at temperature 0; None without such reports before and after."""
        return self._since("success", greedy=True)

    @property
    def partial(self) -> bool:
        """True if scores say more than success: some lie between 0 and 1, or success does not require 1."""
        outcomes = (outcome for report in self.reports.values() for outcome in report.outcomes)
        return any(outcome.score != outcome.success for outcome in outcomes)

    def _since(self, of: Literal["success", "score"], *, greedy: bool = False) -> Interval | None:
        reports = [report for name, report in self.reports.items() if name.endswith(GREEDY) == greedy]
        return reports[-1].since(reports[0], of=of) if len(reports) > 1 else None
