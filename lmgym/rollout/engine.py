"""The rollout engine: policies play jobs in environments, many at once, and yield trajectories."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from lmgym.env.registry import find
from lmgym.errors import BackendError, RecipeError
from lmgym.policy.base import AnswersLater, Conversation, Policy, Session, TakesPictures
from lmgym.rollout.context import Context, Full, History
from lmgym.rollout.env_handle import HintNames, Setting, StepResult
from lmgym.rollout.env_pool import EnvPool, Kind
from lmgym.rollout.episode_state import EMPTY, EpisodeState, SeatConfig, SeatState
from lmgym.rollout.planner import Fork, Group, Planner, Stop
from lmgym.rollout.stats import Stats
from lmgym.rollout.workers import Fault
from lmgym.types import FIRST_SEAT, Completion, Job, Message, Trajectory

POLL = 0.2  # seconds to wait for environments before the clock is checked again
TRIES = 3  # plays of a job whose environment breaks

Key = tuple[int, int, str]  # number of the job, try, seat


@dataclass(kw_only=True)
class Engine:
    """Plays jobs, many at once.

    Within `with engine:` environments are kept between runs; otherwise they are closed at the end of each run. A run
    is bit-reproducible if environments are inline or `lockstep` is set.
    """

    context: Context = field(default_factory=Full)
    planner: Planner = field(default_factory=Planner)
    seats: Mapping[str, SeatConfig] = field(default_factory=dict)  # the task's scripted players take all other seats
    concurrency: int = 64  # episodes played at the same time
    task_limits: bool = True  # play no more episodes of a task at once than its SPEC allows
    lockstep: bool = False  # each call to a policy waits for all running environments and keeps the order of jobs
    player: Kind | None = None  # where environments run; None: as their SPECs say
    timeout: float | None = 600.0  # seconds for one call in a thread or a process; SPECs may ask for more
    processes: int | None = None  # at most; None: one per core
    max_tokens: int | None = None  # of an answer; None leaves it to the policy
    pictures: MutableMapping[str, bytes] = field(default_factory=dict)  # PNGs by digest, as messages name them
    stats: Stats = field(default_factory=Stats)  # of the latest run

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise RecipeError(f"concurrency must be at least 1; got {self.concurrency}")
        self._env_pool: EnvPool | None = None
        self._keep_envs = False
        self._running = False
        self.numbers = itertools.count()  # of the jobs without an id, over all runs

    def run(self, policy: Policy, jobs: Iterable[Job]) -> Iterator[Trajectory]:
        """Play `jobs`, drawn as there is room for them; `policy` plays every seat for which `seats` names no other.

        Yields one trajectory per seat as episodes end; in lockstep in the order of jobs. Raises BackendError if faults
        exceed a tenth of the episodes.
        """
        if self._running:
            raise RecipeError("this engine is running: exhaust or close that run first, or use another engine")
        self._running, self.stats = True, Stats()
        if self._env_pool is None:
            self._env_pool = EnvPool(timeout=self.timeout, processes=self.processes, spare=self.concurrency)
        completed = False
        try:
            yield from EngineRun(self, policy, iter(jobs), self._env_pool).play()
            completed = True
        finally:
            self._running = False
            if not (completed and self._keep_envs):
                self.close()

    def close(self) -> None:
        """Close all environments."""
        if self._env_pool is not None:
            self._env_pool.close()
            self._env_pool = None

    def pids(self) -> list[int]:
        """Return the ids of the processes in which environments run."""
        return self._env_pool.pids() if self._env_pool else []

    def __enter__(self) -> Self:
        """Keep environments until the end of the block."""
        self._keep_envs = True
        return self

    def __exit__(self, *error: object) -> None:
        """Close all environments."""
        self._keep_envs = False
        self.close()


@dataclass
class EngineRun:
    """State of one run of an engine."""

    engine: Engine
    policy: Policy
    jobs: Iterator[Job]
    pool: EnvPool

    def __post_init__(self) -> None:
        self.policies: dict[str, Policy] = {FIRST_SEAT: self.policy}
        for seat, config in self.engine.seats.items():
            self.policies[seat] = self.policy if config.policy is None else config.policy
        wanted = self.engine.planner.wants
        self.hint_names: HintNames = {seat: policy.wants | wanted for seat, policy in self.policies.items()}
        for policy in self.policies.values():
            if isinstance(policy, TakesPictures):
                policy.use_pictures(self.engine.pictures)
        self.sessions: dict[int, Session] = {id(policy): policy.session() for policy in self.policies.values()}
        self.stats = self.engine.stats
        self.queue: deque[tuple[int, int, Job]] = deque()  # number, try, job; played before those of `jobs`
        self.saved: dict[str, Sequence[StepResult]] = {}  # by id of a fork not yet started: to the state to restore
        self.job_count = 0
        self.ids: set[str] = set()
        self.groups: dict[str, Group] = {}  # with jobs that have not ended
        self.drawing: Group | None = None  # group of the latest job of `jobs`, of which more may follow
        self.episodes: dict[int, EpisodeState] = {}  # by slot
        self.waiting: dict[Hashable, EpisodeState] = {}  # for a policy's answer, by key
        self.puts: list[tuple[Key, Session, Conversation]] = []  # conversations not yet put into their sessions
        self.finished: dict[int, list[Trajectory]] = {}  # by number of the job
        self.next_number = 0  # of the job whose trajectories come next in lockstep

    def play(self) -> Iterator[Trajectory]:
        """Play all jobs, yielding the trajectories of finished episodes; in lockstep in the order of jobs."""
        lockstep = self.engine.lockstep
        while True:
            self._hear_environments()
            while self.finished and (not lockstep or self.next_number in self.finished):
                yield from self.finished.pop(self.next_number if lockstep else next(iter(self.finished)))
                self.next_number += 1
            if self._admit():
                continue  # environments that start are heard before the policies act
            if not self.episodes:
                break
            self._hear_policies()
        if self.stats.voided and not self.stats.played:
            raise BackendError(f"no episode completed: all {self.stats.voided} attempts broke; {self.stats.latest}")

    def _admit(self) -> bool:
        """Start episodes while there is room; return True if any started."""
        started = False
        while len(self.episodes) < self.engine.concurrency:
            if not self.queue and not self._draw():
                break
            spec = find(self.queue[0][2].task)
            if self.engine.task_limits and spec.concurrency and self._played(spec.id) >= spec.concurrency:
                break
            self._start(*self.queue.popleft())
            started = True
        return started

    def _played(self, task: str) -> int:
        """Return the number of running episodes of a task."""
        return sum(each.task == task for each in self.episodes.values())

    def _draw(self) -> bool:
        """Queue the next job of the run; return False if there is nothing left to play."""
        job, before = next(self.jobs, None), self.drawing
        self.drawing = None if job is None else self._enqueue(job)
        if before is not None and before is not self.drawing:
            self._settle(before)
        return bool(self.queue)

    def _settle(self, group: Group) -> None:
        """Let the planner add jobs to a group whose jobs have all ended."""
        if group.open or group is self.drawing:
            return
        for job in self.engine.planner.after_group(group):
            self._enqueue(job)
        if not group.open:
            del self.groups[group.name]

    def _enqueue(self, job: Job) -> Group:
        """Queue a job under the next number, with a new id if it has none; return its group."""
        if not job.id:
            job = replace(job, id=f"e{next(self.engine.numbers)}")
        if job.id in self.ids:
            raise RecipeError(f"two jobs of one run have the id {job.id!r}: they would share their sampling noise")
        self.ids.add(job.id)
        self.queue.append((self.job_count, 1, job))
        self.job_count += 1
        group = self.groups.setdefault(Group.name_of(job), Group(Group.name_of(job)))
        group.jobs.append(job)
        group.open += 1
        return group

    def _start(self, number: int, tries: int, job: Job) -> None:
        """Reset an environment for a job."""
        spec = find(job.task)
        setting = Setting(task=spec.id, split=job.split, options=job.options, seats=frozenset(self.policies))
        seats: dict[str, SeatState] = {}
        for name, policy in self.policies.items():
            config = self.engine.seats.get(name, SeatConfig())
            text = job.prompt if name == FIRST_SEAT and job.prompt is not None else config.prompt
            seats[name] = SeatState(
                name=name,
                policy=policy,
                trained=config.trained,
                history=History(EMPTY, None if text is None else Message(role="system", text=text)),
                answers=config.answers,
                tool_mode=config.tools,
                max_tokens=config.max_tokens,
            )
        episode = EpisodeState(
            job=job,
            group=self.groups[Group.name_of(job)],
            task=spec.id,
            number=number,
            seats=seats,
            exact=spec.goldens == "exact",
            parallel_calls=spec.parallel_calls,
            thoughts=spec.thoughts,
            tries=tries,
        )
        episode.slot = self.pool.acquire(setting, self.engine.player or spec.player, timeout=spec.call_timeout)
        self.episodes[episode.slot] = episode
        if results := self.saved.pop(job.id, ()):  # if it breaks, it is replayed
            self.stats.restored += 1
            episode.resume(results, self.engine.context)
            self.pool.send(episode.slot, "restore", results[-1], self.hint_names)
            return
        options: dict[str, Any] = {} if job.index is None else {"index": job.index}
        if job.instance is not None:
            options = {"instance": job.instance}
        self.pool.send(episode.slot, "reset", job.seed, options, self.hint_names)

    def _hear_environments(self) -> None:
        """Take environments' answers, and the answers to what is sent meanwhile.

        In lockstep one answer of every busy environment is taken at a time, in the order of jobs.
        """
        while self.pool.busy:
            if self.engine.lockstep:
                answers: list[tuple[int, StepResult] | Fault] = []
                while self.pool.busy:
                    answers += self.pool.collect(POLL)
                numbers = {slot: episode.number for slot, episode in self.episodes.items()}
                answers.sort(
                    key=lambda answer: min(
                        (numbers.get(slot, -1) for slot in (answer.slots if isinstance(answer, Fault) else answer[:1])),
                        default=-1,
                    )
                )
            else:
                sampling = self.puts or any(len(session) for session in self.sessions.values())
                answers = self.pool.collect(0.0 if sampling else POLL)
            if not answers:
                return
            # environments may be lost with answers that came before: faults void these
            for answer in sorted(answers, key=lambda answer: not isinstance(answer, Fault)):
                if isinstance(answer, Fault):
                    self._void(answer)
                else:
                    self._take(*answer)

    def _take(self, slot: int, result: StepResult) -> None:
        """Record an environment's answer; then finish, fork, cut or continue its episode."""
        episode = self.episodes.get(slot)
        if episode is None:
            return  # voided by a fault that arrived with this answer
        self.engine.pictures.update(result.pictures)
        action = episode.pending
        self.stats.steps += action is not None
        episode.take(result)
        if result.terminated or result.truncated:
            del self.episodes[slot]
            self.pool.release(slot)
            self._forget(episode)
            self.stats.played += 1
            answered = action is not None and action.turn is None
            if answered and (end := self.engine.planner.at_end(episode)) is not None:
                self._fork(episode, end)
            first, *others = self.finished[episode.number] = episode.trajectories()
            for job in self.engine.planner.after_episode(first, others):
                self._enqueue(job)
            episode.group.trajectories.append(first)
            self._end(episode)
            return
        if action is not None and action.turn is None:  # turns of a prefix are not the planner's
            decision = self.engine.planner.after_step(episode)
            reason = decision.reason if isinstance(decision, Stop) else None
            if isinstance(decision, Fork):
                reason = decision.stop
                self._fork(episode, decision)
            if reason is not None:
                episode.stop = reason
                self.pool.send(slot, "cut")
                return
        self._go_on(episode)

    def _fork(self, episode: EpisodeState, decision: Fork) -> None:
        """Queue forks of an episode."""
        for job in episode.forked(decision):
            self._enqueue(job)
            self.saved[job.id] = episode.saved(job)

    def _void(self, fault: Fault) -> None:
        """Drop the episodes of a fault and queue their jobs again; a broken episode is never scored."""
        voided = [self.episodes.pop(slot) for slot in fault.slots if slot in self.episodes]
        for episode in sorted(voided, key=lambda episode: -episode.number):
            self._forget(episode)
            if episode.tries < TRIES:
                self.stats.retried += 1
                self.queue.appendleft((episode.number, episode.tries + 1, episode.job))
            else:
                self.stats.abandoned += 1
                self.finished[episode.number] = []
                self._end(episode)
        self.stats.void(fault, len(voided))

    def _end(self, episode: EpisodeState) -> None:
        """Count an episode as ended in its group."""
        episode.group.open -= 1
        self._settle(episode.group)

    def _forget(self, episode: EpisodeState) -> None:
        """Drop an episode's conversations from all sessions."""
        for seat, policy in self.policies.items():
            key = (episode.number, episode.tries, seat)
            self.sessions[id(policy)].drop(key)
            if self.waiting.pop(key, None) is not None:
                self.puts = [put for put in self.puts if put[0] != key]

    def _go_on(self, episode: EpisodeState) -> None:
        """Send the next action of the prefix or planner, or ask the policy; cut an episode whose budget is spent."""
        action = None
        while action is None and episode.position < len(episode.job.prefix):
            action = episode.repeat(self.engine.context)
        if action is None:
            budget = episode.job.budget
            if budget is not None and episode.actions >= budget and episode.current.name == FIRST_SEAT:
                episode.stop = "budget"
                self.pool.send(episode.slot, "cut")
                return
            replacement = self.engine.planner.before_step(episode)
            if replacement is None:
                self._ask(episode)
                return
            action = episode.replace(replacement.text, self.engine.context, replacement.info)
        saving = action.turn is None and self.engine.planner.saves(episode)
        self.pool.send(episode.slot, "step", action.text, action.reseed, saving)

    def _ask(self, episode: EpisodeState) -> None:
        """Queue the conversation of the seat on turn for its policy."""
        key = (episode.number, episode.tries, episode.current.name)
        conversation = episode.ask(self.engine.context, max_tokens=self.engine.max_tokens)
        self.waiting[key] = episode
        self.puts.append((key, self.sessions[id(episode.current.policy)], conversation))

    def _hear_policies(self) -> None:
        """Let policies sample until one of them answers, in lockstep until all have, and send on their actions."""
        lockstep = self.engine.lockstep
        if lockstep:
            self.puts.sort(key=lambda put: put[0])
        for key, session, conversation in self.puts:
            session.put(key, conversation)
        self.puts.clear()
        completions: list[tuple[Hashable, Completion]] = []
        busy = [session for session in self.sessions.values() if len(session)]
        computing = not all(isinstance(session, AnswersLater) for session in busy)
        for session in busy:
            completions += session.poll() if computing and isinstance(session, AnswersLater) else session.step()
            while lockstep and len(session):
                completions += session.step()
        answers = [(self.waiting.pop(key), completion) for key, completion in completions if key in self.waiting]
        if lockstep:
            answers.sort(key=lambda answer: answer[0].number)
        for episode, completion in answers:
            if completion.finish == "broken":
                self.pool.release(episode.slot)
                error = BackendError(str(completion.usage.get("fault", "a policy broke")))
                self._void(Fault((episode.slot,), error))
            elif completion.finish == "context" and not completion.ids and not completion.text:
                episode.stop = "context"
                self.pool.send(episode.slot, "cut")
            elif episode.summary is not None:
                episode.summarise(completion)
                self._ask(episode)
            else:
                action = episode.say(completion)
                patch = self.engine.planner.before_action(episode, action.text)
                if patch is not None:
                    action.text, action.info = patch.text, patch.info
                saving = self.engine.planner.saves(episode)
                self.pool.send(episode.slot, "step", action.text, action.reseed, saving)
