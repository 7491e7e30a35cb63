"""A policy over a split: the same episodes with the same noise whoever plays, so that two reports pair up."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from lmgym.env.registry import build, find, has_demonstrator, lists_admissible
from lmgym.evaluation.stats import Interval, clustered, paired, unit
from lmgym.policy.base import Policy
from lmgym.rollout.engine import Engine
from lmgym.types import FIRST_SEAT, Completion, Job, Trajectory


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How one episode went."""

    index: int | None
    attempt: int
    score: float
    success: bool
    reward: float
    turns: int  # actions; summaries are none
    invalid: int  # turns whose action was none
    truncated: bool
    stop: str = ""  # what ended it: "done", "max_turns", "context", "budget" ...; "void"
    tokens_in: int | None = None  # of the prompts of all calls, repeats included; None: some call does not say
    tokens_out: int | None = None  # sampled, thinking included
    cost: float | None = None  # US dollars; None: not known
    seconds: float = 0.0  # that the policy took to answer
    cut: int = 0  # answers that ended at the limit of tokens
    filtered: int = 0  # answers that a content filter took away
    voided: bool = False  # a backend or an endpoint broke at every try: no result, and in no mean
    solved_at: int | None = None  # turns after which the episode was a success; None where it was none


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
    identity: str = ""  # digest of all settings that a score depends on
    settings: Mapping[str, Any] = field(default_factory=dict)  # these; empty where nobody wrote them down
    planned: int = 0  # episodes that the run was to play
    stopped: str = ""  # why it ended before that

    @property
    def played(self) -> tuple[Outcome, ...]:
        """The outcomes that are results."""
        return tuple(outcome for outcome in self.outcomes if not outcome.voided)

    @property
    def success(self) -> Interval:
        """Share of episodes solved, the tries of an instance as one; Wilson's interval for what the sample is worth."""
        return unit([float(outcome.success) for outcome in self.played], self.instances)

    @property
    def score(self) -> Interval:
        """Mean score, the tries of an instance as one; the same interval."""
        return unit([outcome.score for outcome in self.played], self.instances)

    @property
    def turns(self) -> Interval:
        """Mean number of turns, bootstrap over instances."""
        return clustered([outcome.turns for outcome in self.played], self.instances)

    @property
    def instances(self) -> list[int | None]:
        """Which instance each result is of."""
        return [outcome.index for outcome in self.played]

    def since(self, before: Report, *, of: Literal["success", "score"] = "success") -> Interval:
        """Gain over a report on the same episodes, over those of which both have a result."""
        names = [[(outcome.index, outcome.attempt) for outcome in report.outcomes] for report in (before, self)]
        if names[0] != names[1]:
            raise ValueError(f"two reports on {self.task} {self.split} are of different episodes and do not pair up")
        pairs = [pair for pair in zip(before.outcomes, self.outcomes, strict=True) if not any(o.voided for o in pair)]
        old, new = ([float(getattr(pair[side], of)) for pair in pairs] for side in (0, 1))
        return paired(old, new, [outcome.index for outcome, _ in pairs])

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


def pictured(task: str, options: Mapping[str, Any]) -> bool:
    """Whether a task with these options shows pictures."""
    env = build(task, **options)
    spaces = getattr(env.observation_space, "spaces", {})
    env.close()
    return "images" in spaces


def id_of(task: str) -> str:
    """The id that a task's name stands for."""
    return find(task).id


def replays(task: str, options: Mapping[str, Any]) -> bool:
    """Whether the same seed and actions make the same episode, as its environment says: a server decides on its own."""
    env = build(task, **options)
    deterministic: bool = env.unwrapped.task.deterministic
    env.close()
    return deterministic


def demonstrates(task: str) -> bool:
    """Whether a task has somebody to imitate: a demonstrator or an oracle, for some of its instances at least."""
    return has_demonstrator(find(task))


def lists_actions(task: str) -> bool:
    """Whether a task says which actions are admissible: without it nothing can be played in a player's stead."""
    return lists_admissible(find(task))


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
            seed=try_seed(task, split, int(index), attempt, seed=seed),
            attempt=attempt,
            id=f"eval-{split}-{index}-{attempt}",
            group=f"eval-{split}-{index}",
        )
        for index in indices
        for attempt in range(tries)
    ]


def try_seed(task: str, split: str, index: int, attempt: int, *, seed: int = 0) -> int:
    """Seed of the environment's chance in one try, 31 bits; with `seed` 0 that of the board's protocol."""
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
    """Play `jobs` and report, in their order; each trajectory is handed to `keep` as it ends."""
    found = outcomes(policy, jobs, engine=engine, keep=keep)
    return report_of(jobs, found, policy=policy.name, version=policy.version, seed=seed, finished=True)


def outcomes(
    policy: Policy, jobs: list[Job], *, engine: Engine, keep: Callable[[Trajectory], object] | None = None
) -> dict[str, Outcome]:
    """Play `jobs`, of which there may be none; how those went that did not break at every try, by their ids."""
    found: dict[str, Outcome] = {}
    for trajectory in engine.run(policy, jobs):
        if trajectory.seat == FIRST_SEAT:
            found[trajectory.id] = outcome(trajectory)
        if keep is not None:
            keep(trajectory)
    return found


def report_of(jobs: Sequence[Job], found: Mapping[str, Outcome], *, finished: bool, **about: Any) -> Report:
    """The report on `jobs`, one or more, by what is `found` by their ids; a job without is void if the run is over."""
    known = [found.get(job.id) or (void(job) if finished else None) for job in jobs]
    return Report(
        task=jobs[0].task,
        split=jobs[0].split,
        options=dict(jobs[0].options),
        outcomes=tuple(outcome for outcome in known if outcome is not None),
        planned=len(jobs),
        **about,
    )


def void(job: Job) -> Outcome:
    """What is known of an episode that broke at every try."""
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
    """What a report keeps of an episode."""
    acts = [turn for turn in trajectory.turns if turn.action is not None]
    said = [turn.completion for turn in trajectory.turns]
    costs = [completion.usage.get("cost") for completion in said]
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
        tokens_in=None if _untold(said, "in") else sum(int(c.usage.get("in") or 0) for c in said) or _prompted(said),
        tokens_out=None if _untold(said, "out") else sum(int(c.usage.get("out") or 0) or len(c.ids) for c in said),
        cost=None if None in costs or not costs else sum(float(cost) for cost in costs if cost is not None),
        seconds=sum(float(c.usage.get("seconds") or 0.0) for c in said),
        cut=sum(c.finish == "length" for c in said),
        filtered=sum(c.finish == "filter" for c in said),
        solved_at=len(acts) if trajectory.success else None,
    )


def _untold(said: Sequence[Completion], name: str) -> bool:
    """Whether some call took tokens of which nobody says how many; players of a task take none."""
    return any(c.usage.get(name) is None and (name in c.usage or "call" in c.usage) for c in said)


def _prompted(said: Sequence[Completion]) -> int:
    """Tokens of all prompts where ids are known: each call reads its whole segment so far."""
    total = length = 0
    for completion in said:
        length = (0 if completion.fresh else length) + len(completion.prompt_ids)
        total += length
        length += len(completion.ids)
    return total
