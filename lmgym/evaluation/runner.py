"""Evaluations of a policy on a split: every policy plays the same episodes with the same seeds, so reports pair up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from lmgym.env.registry import build, find, has_answer, has_demonstrator, lists_admissible, load, options_of, specs
from lmgym.errors import RecipeError
from lmgym.evaluation.stats import Interval, clustered, paired, unit
from lmgym.policy.base import Policy
from lmgym.rollout.engine import Engine
from lmgym.types import FIRST_SEAT, Completion, Job, Trajectory


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of one episode."""

    index: int | None
    attempt: int
    score: float
    success: bool
    reward: float
    turns: int  # actions; summaries do not count
    invalid: int  # turns with an invalid action
    truncated: bool
    stop: str = ""  # reason of the end: "done", "max_turns", "context", "budget" ...; "void"
    tokens_in: int | None = None  # prompts of all calls, repeats included; None: some call is unknown
    tokens_out: int | None = None  # sampled, thinking included
    cost: float | None = None  # US dollars; None: unknown
    seconds: float = 0.0  # spent by the policy
    cut: int = 0  # answers cut at the token limit
    filtered: int = 0  # answers withheld by a content filter
    voided: bool = False  # a backend or endpoint failed at every attempt: no result, in no mean
    solved_at: int | None = None  # turns until success; None without success
    figures: Mapping[str, float] = field(default_factory=dict)  # the task's own


@dataclass(frozen=True, kw_only=True)
class Report:
    """Results of a policy on a split."""

    task: str
    split: str
    policy: str
    version: int = 0
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    outcomes: tuple[Outcome, ...] = ()
    identity: str = ""  # digest of the settings
    settings: Mapping[str, Any] = field(default_factory=dict)  # empty if not recorded
    planned: int = 0  # episodes of the complete run
    stopped: str = ""  # why the run ended early
    exact: Mapping[str, float] = field(default_factory=dict)  # figures of the policy itself, not of its episodes

    @property
    def played(self) -> tuple[Outcome, ...]:
        """Outcomes that are not voided."""
        return tuple(outcome for outcome in self.outcomes if not outcome.voided)

    @property
    def success(self) -> Interval:
        """Success rate, averaged over instances, with the interval of `stats.unit`."""
        return unit([float(outcome.success) for outcome in self.played], self.instances)

    @property
    def score(self) -> Interval:
        """Mean score, averaged over instances, with the same interval."""
        return unit([outcome.score for outcome in self.played], self.instances)

    @property
    def turns(self) -> Interval:
        """Mean number of turns, with the bootstrap interval over instances."""
        return clustered([outcome.turns for outcome in self.played], self.instances)

    @property
    def instances(self) -> list[int | None]:
        """Instance of each outcome in `played`."""
        return [outcome.index for outcome in self.played]

    def since(self, before: Report, *, of: Literal["success", "score"] = "success") -> Interval:
        """Return the paired gain over a report on the same episodes; voided episodes of either do not count."""
        names = [[(outcome.index, outcome.attempt) for outcome in report.outcomes] for report in (before, self)]
        if names[0] != names[1]:
            raise ValueError(f"two reports on {self.task} {self.split} have different episodes and do not pair up")
        pairs = [pair for pair in zip(before.outcomes, self.outcomes, strict=True) if not any(o.voided for o in pair)]
        old, new = ([float(getattr(pair[side], of)) for pair in pairs] for side in (0, 1))
        return paired(old, new, [outcome.index for outcome, _ in pairs])

    def state_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Report:
        """Restore from plain values."""
        return cls(**{**state, "outcomes": tuple(Outcome(**outcome) for outcome in state["outcomes"])})


def size_of(task: str, split: str, options: Mapping[str, Any]) -> int:
    """Return the number of instances of a split, which may depend on the options."""
    with closing(build(task, split=split, **options)) as env:
        return int(env.unwrapped.size())


def pictured(task: str, options: Mapping[str, Any]) -> bool:
    """Return True if a task shows pictures under these options."""
    with closing(build(task, **options)) as env:
        return "images" in getattr(env.observation_space, "spaces", {})


def spec_of(task: str, options: Mapping[str, Any]) -> Any:
    """Return the spec of a task by its id or folder; raise RecipeError for an option that the task does not have."""
    spec = find(task)
    allowed = [*options_of(load(spec)), "max_turns"]
    if unknown := [name for name in options if name not in allowed]:
        names = ", ".join(sorted(allowed))
        raise RecipeError(f"unknown option {unknown[0]!r} for {spec.id}; choose from {names}")
    return spec


def id_of(task: str) -> str:
    """Return the id of a task."""
    return find(task).id


def replays(task: str, options: Mapping[str, Any]) -> bool:
    """Return True if the task, under these options, is deterministic given seed and actions."""
    with closing(build(task, **options)) as env:
        return bool(env.unwrapped.task.deterministic)


def seats_of(task: str) -> tuple[str, ...]:
    """Return the seats of a task beside the agent's."""
    return find(task).seats


def tasks_with(seat: str) -> list[str]:
    """Return the folders of the tasks that have a seat, in the order of their names."""
    return sorted({spec.name for spec in specs().values() if seat in spec.seats})


def demonstrates(task: str) -> bool:
    """Return True if a task has a demonstrator or an oracle, at least for some instances."""
    return has_demonstrator(find(task))


def tells_answer(task: str) -> bool:
    """Return True if a task tells the hidden answer of its instances."""
    return has_answer(find(task))


def reward_terms(task: str, options: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of the reward terms that a task gives for an action, here an empty one."""
    with closing(build(task, **options)) as env:
        env.reset(seed=0)
        return frozenset(env.step("")[4]["reward_terms"])


def lists_actions(task: str) -> bool:
    """Return True if a task lists its admissible actions."""
    return lists_admissible(find(task))


def episodes(
    task: str, *, split: str, size: int, count: int, tries: int = 1, seed: int = 0, options: Mapping[str, Any]
) -> list[Job]:
    """Return jobs for `count` random instances of a split, `tries` each, in order; for all if the split has fewer."""
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
            seed=try_seed(task, split, int(index), attempt, seed=seed),
            attempt=attempt,
            id=f"eval-{split}-{index}-{attempt}",
            group=f"eval-{split}-{index}",
        )
        for index in indices
        for attempt in range(tries)
    ]


def try_seed(task: str, split: str, index: int, attempt: int, *, seed: int = 0) -> int:
    """Return the environment seed of one try, 31 bits; with `seed` 0 it is that of the leaderboard protocol."""
    name = f"{id_of(task)} {split} {index} {attempt}" + (f" {seed}" if seed else "")
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") >> 1


def evaluate(
    policy: Policy,
    jobs: list[Job],
    *,
    engine: Engine,
    seed: int = 0,
    keep: Callable[[Trajectory], object] | None = None,
) -> Report:
    """Play `jobs` and return the report, in their order; `keep` is called with each finished trajectory."""
    results = outcomes(policy, jobs, engine=engine, keep=keep)
    return report_of(jobs, results, policy=policy.name, version=policy.version, seed=seed, finished=True)


def outcomes(
    policy: Policy, jobs: list[Job], *, engine: Engine, keep: Callable[[Trajectory], object] | None = None
) -> dict[str, Outcome]:
    """Play `jobs` and return outcomes by job id; voided episodes have none."""
    results: dict[str, Outcome] = {}
    for trajectory in engine.run(policy, jobs):
        if trajectory.seat == FIRST_SEAT:
            results[trajectory.id] = outcome(trajectory)
        if keep is not None:
            keep(trajectory)
    return results


def report_of(jobs: Sequence[Job], results: Mapping[str, Outcome], *, finished: bool, **about: Any) -> Report:
    """Return the report on `jobs` from outcomes by job id; in a finished run a job without an outcome is void."""
    outcomes = [results.get(job.id) or (void(job) if finished else None) for job in jobs]
    return Report(
        task=jobs[0].task,
        split=jobs[0].split,
        options=dict(jobs[0].options),
        outcomes=tuple(outcome for outcome in outcomes if outcome is not None),
        planned=len(jobs),
        **about,
    )


def void(job: Job) -> Outcome:
    """Return the outcome of an episode that failed at every attempt."""
    return Outcome(
        index=job.index,
        attempt=job.attempt,
        score=0.0,
        success=False,
        reward=0.0,
        turns=0,
        invalid=0,
        truncated=False,
        stop="void",
        voided=True,
    )


def outcome(trajectory: Trajectory) -> Outcome:
    """Return the outcome of an episode."""
    acts = [turn for turn in trajectory.turns if turn.action is not None]
    answers = [turn.completion for turn in trajectory.turns]
    costs = [answer.usage.get("cost") for answer in answers]
    return Outcome(
        index=trajectory.index,
        attempt=trajectory.attempt,
        score=trajectory.score,
        success=trajectory.success,
        reward=trajectory.reward,
        turns=len(acts),
        invalid=sum(not turn.info.get("valid", True) for turn in acts),
        truncated=trajectory.truncated,
        stop=trajectory.stop,
        tokens_in=None if _unknown(answers, "in") else _used(answers, "in") or _prompt_ids(answers),
        tokens_out=None if _unknown(answers, "out") else sum(_used([each], "out") or len(each.ids) for each in answers),
        cost=None if None in costs or not costs else sum(float(cost) for cost in costs if cost is not None),
        seconds=sum(float(each.usage.get("seconds") or 0.0) for each in answers),
        cut=sum(each.finish == "length" for each in answers),
        filtered=sum(each.finish == "filter" for each in answers),
        solved_at=len(acts) if trajectory.success else None,
        figures=dict(trajectory.figures),
    )


def _unknown(answers: Sequence[Completion], name: str) -> bool:
    """Return True if some call used an unknown number of tokens; a task's own players use none."""
    return any(each.usage.get(name) is None and (name in each.usage or "call" in each.usage) for each in answers)


def _used(answers: Sequence[Completion], name: str) -> int:
    return sum(int(each.usage.get(name) or 0) for each in answers)


def _prompt_ids(answers: Sequence[Completion]) -> int:
    """Return the tokens of all prompts, from their ids: each call reads its whole segment so far."""
    total = length = 0
    for completion in answers:
        length = (0 if completion.fresh else length) + len(completion.prompt_ids)
        total += length
        length += len(completion.ids)
    return total
