"""Evaluations on record: recorded episodes are not played again, and every run ends with a report."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from lmgym.errors import BackendError, LmgymError, PolicyError
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.exact import exact_figures
from lmgym.evaluation.policies import Policies
from lmgym.evaluation.record import Record
from lmgym.evaluation.runner import Outcome, Report, outcome, report_of
from lmgym.evaluation.settings import Settings
from lmgym.policy.endpoints.calls import Halted
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import episode_id
from lmgym.types import FIRST_SEAT, Job, Trajectory

INTERRUPTED = "interrupted"


@dataclass(kw_only=True)
class EvalProgress:
    """Progress of a run."""

    jobs: Sequence[Job]
    outcomes: dict[str, Outcome] = field(default_factory=dict)  # by job id
    resumed: int = 0  # of them, played in earlier sessions
    voided: int = 0  # episodes that broke, most of them played again


Watch = Callable[[EvalProgress], object]


@dataclass(kw_only=True)
class Evaluation:
    """One session of a recorded run."""

    record: Record
    policies: Policies
    jobs: Sequence[Job]
    engine: Engine
    budget: Budget
    settings: Settings
    calls: Calls | None = None
    error: LmgymError | None = None  # the error that ended the run, if one did

    def play(self, watch: Watch = lambda progress: None) -> Report:
        """Play the episodes that are not on record and report on all; `error` holds what ended the run early.

        `watch` is called at the start and after every episode. The policies are closed at the end.
        """
        order = {job.id: number for number, job in enumerate(self.jobs)}
        recorded = {each.id: outcome(each) for each in self.record.played() if each.id in order}
        progress = EvalProgress(jobs=self.jobs, outcomes=recorded, resumed=len(recorded))
        self.budget.played += len(recorded)
        stopped, exact = "", dict[str, float]()
        try:
            watch(progress)
            stopped = self._play(progress, watch)
            exact = {} if stopped else self._exact()
        except Halted as error:
            stopped = self.record.secrets.struck(str(error))
        except KeyboardInterrupt:
            stopped = INTERRUPTED
        except (PolicyError, BackendError) as error:
            stopped, self.error = self.record.secrets.struck(str(error)), error
            error.args = (stopped,)  # the message is printed
        finally:
            self.policies.close()  # before calls are accounted for
        report = report_of(
            self.jobs,
            progress.outcomes,
            finished=not stopped,
            policy=self.policies.agent.name,
            version=self.policies.agent.version,
            seed=self.settings.seed,
            identity=self.settings.identity(),
            settings=self.settings.recorded(),
            stopped=stopped,
            exact=exact,
        )
        return self.record.finish(report, order, None if self.calls is None else self.calls.account())

    def _exact(self) -> dict[str, float]:
        """Return the exact figures of a policy that is shown whole conversations and answers with bare actions."""
        settings = self.settings
        if settings.context != "full" or settings.answers != "plain" or not settings.temperature:
            return {}
        return exact_figures(settings.task, self.policies.agent, options=settings.options, prompt=settings.prompt)

    def _play(self, progress: EvalProgress, watch: Watch) -> str:
        """Play; return the limit that kept jobs from starting, if one did."""
        limit: list[str] = []
        views: dict[str, list[Trajectory]] = {}  # finished seats of each episode, until all are there
        for trajectory in self.engine.run(self.policies.agent, self._admitted(progress, limit)):
            episode = episode_id(trajectory.id, trajectory.seat)
            seats = views.setdefault(episode, [])
            seats.append(trajectory)
            if len(seats) == len({FIRST_SEAT, *self.engine.seats}):
                self._keep(views.pop(episode), progress)
                watch(progress)
        return limit[0] if limit else ""

    def _admitted(self, progress: EvalProgress, limit: list[str]) -> Iterator[Job]:
        """Yield the jobs still to be played until a budget is used up; its message then goes into `limit`."""
        started = self.budget.played
        for job in self.jobs:
            if job.id in progress.outcomes:
                continue
            if message := self.budget.full(started):
                limit.append(message)
                return
            started += 1
            yield job

    def _keep(self, seats: Sequence[Trajectory], progress: EvalProgress) -> None:
        """Put a finished episode on record."""
        self.record.keep(seats)
        agent = next(view for view in seats if view.seat == FIRST_SEAT)
        progress.outcomes[agent.id] = outcome(agent)
        progress.voided = self.engine.stats.voided
        self.budget.played += 1
