"""What a run is besides its weights: where it stands, how it goes about it, and what came of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from lmgym.evaluation.runner import Report
from lmgym.evaluation.stats import Interval


@dataclass(frozen=True, kw_only=True)
class RunCursor:
    """Where a run stands."""

    stage: int = 0
    step: int = 0  # of the stage
    seconds: float = 0.0  # in the stage, interruptions left out
    run_step: int = 0  # of all stages
    tokens: int = 0  # of actions played, shown or sampled at stored moments so far
    turns: int = 0  # played or shown so far
    learned: int = 0  # tokens of actions in the steps so far, recorded ones as often as they came
    saves: int = 0


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How a run goes about it; none of this changes what it learns, but `lockstep` and `concurrency` its bits."""

    save_seconds: float = 30.0  # the first step that ends so long after a checkpoint makes the next, as a stage's end
    keep_episodes: Collection[int] = ()  # steps, counted over all stages, whose episodes are kept as JSON lines
    concurrency: int = 64  # episodes at once
    lockstep: bool = False  # the same bits whatever lives in threads or processes
    quiet: bool = False  # no progress bar
    evaluate_every: int = 0  # tokens of actions between evaluations as the last stage makes them; 0: none in between
    tokens: int | None = None  # of actions, after which nothing more is played to learn from


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """What came of a run."""

    folder: Path
    policy: Path  # `hf:` of it loads the final weights
    reports: Mapping[str, Report]  # by the name of the Evaluate stage
    seconds: Mapping[str, Mapping[str, float]]  # stage -> part -> seconds; "total" among the parts

    @property
    def paired_gain(self) -> Interval | None:
        """Success of the last report over the first, paired; None where there is a single one."""
        return self._since("success")

    @property
    def paired_score_gain(self) -> Interval | None:
        """The same of the mean score."""
        return self._since("score")

    @property
    def partial(self) -> bool:
        """Whether scores say more than success does: some lie between 0 and 1, or 1 is not asked for."""
        outcomes = (outcome for report in self.reports.values() for outcome in report.outcomes)
        return any(outcome.score != outcome.success for outcome in outcomes)

    def _since(self, of: Literal["success", "score"]) -> Interval | None:
        found = list(self.reports.values())
        return found[-1].since(found[0], of=of) if len(found) > 1 else None
