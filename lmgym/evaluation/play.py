"""A run on record: episodes that are there are not played again, and whatever ends it leaves a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from lmgym.errors import BackendError, LmgymError, PolicyError
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.record import Record
from lmgym.evaluation.runner import Outcome, Report, outcome, report_of
from lmgym.policy.base import Policy
from lmgym.policy.endpoints.calls import Halted
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import episode_id
from lmgym.types import FIRST_SEAT, Job, Trajectory

INTERRUPTED = "interrupted"
Watch = Callable[["EvalProgress"], object]


@dataclass(kw_only=True)
class EvalProgress:
    """How far a run is."""

    jobs: Sequence[Job]
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # by id of the job
    before: int = 0  # of them, played in earlier sessions
    voided: int = 0  # episodes that broke, most of them played again


@dataclass(kw_only=True)
class Evaluation:
    """One session of a run: a policy, jobs, and where they are recorded."""

    record: Record
    policy: Policy
    jobs: Sequence[Job]
    engine: Engine
    budget: Budget
    identity: str
    settings: Mapping[str, Any] = field(default_factory=dict)  # whose digest it is
    calls: Calls | None = None
    seed: int = 0
    watch: Watch = lambda progress: None
    end: Callable[[], object] = lambda: None  # lets policies go, before calls are accounted for
    error: LmgymError | None = None  # what ended the run, where it was no budget

    def play(self) -> Report:
        """Play what is not there yet, and report on all that is; `error` holds what ended it early."""
        order = {job.id: place for place, job in enumerate(self.jobs)}
        progress = EvalProgress(jobs=self.jobs, outcomes=self._before(order))
        progress.before = len(progress.outcomes)
        self.budget.played += progress.before
        stopped = ""
        try:
            self.watch(progress)
            stopped = self._play(progress)
        except Halted as error:
            stopped = self.record.secrets.struck(str(error))
        except KeyboardInterrupt:
            stopped = INTERRUPTED
        except (PolicyError, BackendError) as error:
            stopped, self.error = self.record.secrets.struck(str(error)), error
            error.args = (stopped,)  # it is shown
        finally:
            self.end()
        report = report_of(
            self.jobs,
            progress.outcomes,
            over=not stopped,
            policy=self.policy.name,
            version=self.policy.version,
            seed=self.seed,
            identity=self.identity,
            settings=self.settings,
            stopped=stopped,
        )
        return self.record.finish(report, order, None if self.calls is None else self.calls.account())

    def _before(self, order: Mapping[str, int]) -> dict[str, Outcome]:
        """Outcomes of the episodes on record."""
        return {trajectory.id: outcome(trajectory) for trajectory in self.record.played() if trajectory.id in order}

    def _play(self, progress: EvalProgress) -> str:
        """Play; which limit kept jobs from being begun, if any did."""
        left: list[str] = []
        seats: dict[str, list[Trajectory]] = {}  # views of episodes that ended, until all are there
        for trajectory in self.engine.run(self.policy, self._admitted(progress, left)):
            episode = episode_id(trajectory.id, trajectory.seat)
            views = seats.setdefault(episode, [])
            views.append(trajectory)
            if len(views) == len({FIRST_SEAT, *self.engine.seats}):
                self._keep(seats.pop(episode), progress)
        return left[0] if left else ""

    def _admitted(self, progress: EvalProgress, left: list[str]) -> Iterator[Job]:
        """The jobs that are still to be played, until a budget is used up; then `left` says which."""
        begun = self.budget.played
        for job in self.jobs:
            if job.id in progress.outcomes:
                continue
            if reason := self.budget.full(begun):
                left.append(reason)
                return
            begun += 1
            yield job

    def _keep(self, views: Sequence[Trajectory], progress: EvalProgress) -> None:
        """Put a finished episode on record."""
        self.record.keep(views)
        agent = next(view for view in views if view.seat == FIRST_SEAT)
        progress.outcomes[agent.id] = outcome(agent)
        progress.voided = self.engine.stats.voided
        self.budget.played += 1
        self.watch(progress)
