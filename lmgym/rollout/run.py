"""One run of the engine: jobs in, trajectories out, policies and environments kept busy in between."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lmgym.env.registry import find
from lmgym.errors import BackendError, RecipeError
from lmgym.policy.base import Conversation, Policy, Sees, Session
from lmgym.rollout.context import History
from lmgym.rollout.env_handle import Setting, StepResult, Wants
from lmgym.rollout.env_pool import EnvPool
from lmgym.rollout.episode_state import NOTHING, EpisodeState, PendingAction, SeatConfig, SeatState
from lmgym.rollout.fork import RESEED
from lmgym.rollout.planner import Fork, Node, Stop
from lmgym.rollout.workers import Fault
from lmgym.types import FIRST_SEAT, Completion, Job, Message, Trajectory

if TYPE_CHECKING:
    from lmgym.rollout.engine import Engine

POLL = 0.2  # seconds between looks at the clock while nothing happens
TRIES = 3  # of a job whose environment breaks
FAULTS = 0.1  # of the episodes that ended, which may break
ENOUGH = 20  # episodes, before that share means anything

Key = tuple[int, int, str]  # number of the job, which try, seat


@dataclass
class Stats:
    """What a run did so far."""

    played: int = 0  # episodes that ended
    steps: int = 0  # actions that environments answered
    voided: int = 0  # episodes lost to a broken backend
    retried: int = 0  # of them, played again
    abandoned: int = 0  # jobs given up after three voids
    faults: int = 0  # what broke: one worker's death may void many episodes
    latest: str = ""  # of the faults
    events: set[str] = field(default_factory=set)  # faults that come as an error in each of the episodes they void

    def void(self, fault: Fault, episodes: int) -> None:
        """Count a fault. Raises BackendError where more than a tenth of the episodes would be lost to such."""
        self.faults += fault.error.event not in self.events
        if fault.error.event:
            self.events.add(fault.error.event)
        self.latest = str(fault.error)
        self.voided += episodes
        ended = self.played + self.voided
        if ended >= ENOUGH and self.faults > FAULTS * ended:
            raise BackendError(f"{self.faults} faults in {ended} episodes; the last: {self.latest}") from fault.error


@dataclass
class Run:
    """The state of one run."""

    engine: Engine
    policy: Policy
    jobs: Iterator[Job]
    players: EnvPool

    def __post_init__(self) -> None:
        self.seats: dict[str, Policy] = {FIRST_SEAT: self.policy}
        for seat, part in self.engine.seats.items():
            self.seats[seat] = self.policy if part.policy is None else part.policy
        wants = self.engine.planner.wants
        self.wants: Wants = {seat: policy.wants | wants for seat, policy in self.seats.items()}
        for policy in self.seats.values():
            if isinstance(policy, Sees):
                policy.see(self.engine.pictures)
        self.sessions: dict[int, Session] = {id(policy): policy.session() for policy in self.seats.values()}
        self.stats = self.engine.stats
        self.queue: deque[tuple[int, int, Job]] = deque()  # number, try, job: before those of `jobs`
        self.drawn = 0
        self.ids: set[str] = set()
        self.live: dict[int, EpisodeState] = {}  # by slot
        self.busy: set[int] = set()  # slots whose answer is awaited
        self.asked: dict[Hashable, EpisodeState] = {}  # by key
        self.puts: list[tuple[Key, Session, Conversation]] = []
        self.finished: dict[int, list[Trajectory]] = {}  # by number of the job
        self.next = 0  # number whose trajectories are due, in lockstep

    def play(self) -> Iterator[Trajectory]:
        """Play all jobs."""
        while self.live or self._admit():
            self._hear_environments()
            yield from self._due()
            if not self._admit():  # those that begin are heard before the policies speak
                self._hear_policies()
        yield from self._due()  # those that waited for an episode which a policy broke
        if self.stats.voided and not self.stats.played:
            raise BackendError(
                f"no episode could be played: all {self.stats.voided} attempts broke; {self.stats.latest}"
            )

    # Jobs ------------------------------------------------------------------------------------------------------

    def _admit(self) -> bool:
        """Start episodes while there is room; whether any was."""
        started = False
        while len(self.live) < self.engine.concurrency:
            if not self.queue:
                job = next(self.jobs, None)
                if job is None:
                    break
                self._enqueue(job)
            self._start(*self.queue.popleft())
            started = True
        return started

    def _enqueue(self, job: Job) -> None:
        """Number a job, and name it if it has no name."""
        if not job.id:
            job = replace(job, id=self.engine.new_id())
        if job.id in self.ids:
            raise RecipeError(f"two jobs of one run are called {job.id!r}: they would share their sampling noise")
        self.ids.add(job.id)
        self.queue.append((self.drawn, 1, job))
        self.drawn += 1

    def _start(self, number: int, tries: int, job: Job) -> None:
        spec = find(job.task)
        setting = Setting(task=spec.id, split=job.split, options=job.options, seats=frozenset(self.seats))
        live = EpisodeState(
            job=job,
            task=spec.id,
            number=number,
            sides={seat: self._side(seat, job) for seat in self.seats},
            exact=spec.goldens == "exact",
            tries=tries,
        )
        live.slot = self.players.acquire(setting, self.engine.player or spec.player)
        self.live[live.slot] = live
        choice = {"index": job.index} if job.index is not None else {}
        self._send(live, "reset", job.seed, choice if job.instance is None else {"instance": job.instance}, self.wants)

    def _side(self, seat: str, job: Job) -> SeatState:
        part = self.engine.seats.get(seat, SeatConfig())
        words = part.prompt
        if seat == FIRST_SEAT and job.prompt is not None:
            words = job.prompt
        prompt = None if words is None else Message(role="system", text=words)
        return SeatState(seat=seat, policy=self.seats[seat], trained=part.trained, history=History(NOTHING, prompt))

    # Environments ----------------------------------------------------------------------------------------------

    def _send(self, live: EpisodeState, method: str, *arguments: object) -> None:
        self.busy.add(live.slot)
        self.players.send(live.slot, method, *arguments)

    def _hear_environments(self) -> None:
        """Take what environments answered, and what they answer to that."""
        while self.busy and (answers := self._answers()):
            for answer in answers:
                if isinstance(answer, Fault):
                    self._void(answer)
                else:
                    self._take(*answer)

    def _answers(self) -> list[tuple[int, StepResult] | Fault]:
        """What is there; in lockstep one answer of every environment, in the order of jobs."""
        if not self.engine.lockstep:
            at_work = self.puts or any(len(session) for session in self.sessions.values())
            return self.players.collect(0.0 if at_work else POLL)
        answers: list[tuple[int, StepResult] | Fault] = []
        missing = set(self.busy)
        while missing:
            for answer in self.players.collect(POLL):
                answers.append(answer)
                missing.difference_update(_slots(answer))
        numbers = {slot: live.number for slot, live in self.live.items()}
        return sorted(answers, key=lambda answer: min(numbers.get(slot, -1) for slot in _slots(answer)))

    def _take(self, slot: int, shown: StepResult) -> None:
        live = self.live.get(slot)
        if live is None:
            return  # an answer to an episode that is void
        self.busy.discard(slot)
        self.engine.pictures.update(shown.pictures)
        said = live.saying
        self.stats.steps += said is not None
        live.take(shown)
        if shown.terminated or shown.truncated:
            self._finish(live)
        elif said is None or said.turn is not None or not self._planned(live):
            self._go_on(live)

    def _planned(self, live: EpisodeState) -> bool:
        """Ask the planner after a step; whether the episode ends here."""
        decision = self.engine.planner.after_step(Node(live))
        reason = decision.reason if isinstance(decision, Stop) else None
        if isinstance(decision, Fork):
            reason = decision.stop
            for job in live.forked(decision):
                self._enqueue(job)
        if reason is not None:
            self._cut(live, reason)
        return reason is not None

    def _cut(self, live: EpisodeState, reason: str) -> None:
        live.stop = reason
        self._send(live, "cut")

    def _void(self, fault: Fault) -> None:
        """Lose the episodes of a fault and play them again: void, never zero."""
        lost = [self.live.pop(slot) for slot in fault.slots if slot in self.live]
        for live in sorted(lost, key=lambda live: -live.number):
            self._forget(live)
            if live.tries < TRIES:
                self.stats.retried += 1
                self.queue.appendleft((live.number, live.tries + 1, live.job))
            else:
                self.stats.abandoned += 1
                self.finished[live.number] = []
        self.stats.void(fault, len(lost))

    def _finish(self, live: EpisodeState) -> None:
        del self.live[live.slot]
        self.players.release(live.slot)
        self._forget(live)
        self.stats.played += 1
        first, *others = self.finished[live.number] = live.trajectories()
        for job in self.engine.planner.after_episode(first, others):
            self._enqueue(job)

    def _forget(self, live: EpisodeState) -> None:
        self.busy.discard(live.slot)
        for seat, policy in self.seats.items():
            key = (live.number, live.tries, seat)
            self.sessions[id(policy)].drop(key)
            if self.asked.pop(key, None) is not None:
                self.puts = [put for put in self.puts if put[0] != key]

    # Policies --------------------------------------------------------------------------------------------------

    def _go_on(self, live: EpisodeState) -> None:
        """Have the seat on turn say something; end the episode where it may say no more."""
        while live.position < len(live.job.prefix):
            said = live.repeat(self.engine.context)
            if said is not None:
                self._step(live, said)
                return
        budget = live.job.budget
        if budget is not None and live.actions >= budget and live.side.seat == FIRST_SEAT:
            self._cut(live, "budget")
            return
        words = self.engine.planner.before_step(Node(live))
        if words is None:
            self._ask(live)
        else:
            self._step(live, live.replace(words.text, self.engine.context, words.info))

    def _ask(self, live: EpisodeState) -> None:
        key = (live.number, live.tries, live.side.seat)
        conversation = live.ask(self.engine.context, max_tokens=self.engine.max_tokens)
        self.asked[key] = live
        self.puts.append((key, self.sessions[id(live.side.policy)], conversation))

    def _hear_policies(self) -> None:
        """Let policies speak: as far as one of them finishes; in lockstep until all have."""
        if self.engine.lockstep:
            self.puts.sort(key=lambda put: put[0])
        for key, session, conversation in self.puts:
            session.put(key, conversation)
        self.puts.clear()
        answers: list[tuple[Hashable, Completion]] = []
        for session in self.sessions.values():
            if len(session):
                answers += session.step()
            while self.engine.lockstep and len(session):
                answers += session.step()
        asked = [(self.asked.pop(key, None), completion) for key, completion in answers]
        heard = [(live, completion) for live, completion in asked if live is not None]
        if self.engine.lockstep:
            heard.sort(key=lambda pair: pair[0].number)
        for live, completion in heard:
            self._hear(live, completion)

    def _hear(self, live: EpisodeState, completion: Completion) -> None:
        if completion.finish == "broken":
            self.players.release(live.slot)
            self._void(Fault((live.slot,), BackendError(str(completion.usage.get("fault", "a policy broke")))))
        elif completion.finish == "context" and not completion.ids and not completion.text:
            self._cut(live, "context")
        elif live.summary is not None:
            live.summarised(completion)
            self._ask(live)
        else:
            self._step(live, live.say(completion))

    def _step(self, live: EpisodeState, said: PendingAction) -> None:
        """Give the environment what was said, and fresh chance where that is due."""
        if said.turn is not None:
            self._send(live, "step", said.turn.action, said.turn.info.get(RESEED))
            return
        reseed = None
        if not live.reseeded and live.job.reseed is not None:
            reseed, live.reseeded = live.job.reseed, True
            said.info = {**said.info, RESEED: reseed}
        self._send(live, "step", said.completion.text, reseed)

    # Results ---------------------------------------------------------------------------------------------------

    def _due(self) -> Iterator[Trajectory]:
        """Finished episodes as they come; in lockstep in the order of jobs."""
        if not self.engine.lockstep:
            finished, self.finished = self.finished, {}
            for trajectories in finished.values():
                yield from trajectories
        while self.next in self.finished:
            yield from self.finished.pop(self.next)
            self.next += 1


def _slots(answer: tuple[int, StepResult] | Fault) -> tuple[int, ...]:
    return answer.slots if isinstance(answer, Fault) else (answer[0],)
