"""State of a running episode: the turns of each seat, the pending action and the trajectories they make."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from lmgym.errors import ReplayError
from lmgym.policy.base import TOOLS, Conversation, Policy, extends, offered
from lmgym.rollout.answers import AnswerFormat, action_of
from lmgym.rollout.context import Context, History, with_request
from lmgym.rollout.env_handle import StepResult
from lmgym.rollout.fork import PLY, RESEED, fork, seat_id
from lmgym.rollout.planner import Fork, Group
from lmgym.types import FIRST_SEAT, Completion, Job, Kind, Message, Trajectory, Turn

EMPTY = Message(role="user", text="")
KEPT_STATES = 2  # the present one, and the one before the latest answer
OTHERS = "others"  # reward term for what a seat earned by the turns of other seats
ENDING = ("score", "success", "seat_scores", "figures")


@lru_cache(maxsize=4096)
def number_of(name: str) -> int:
    """Return a stable integer below 2^56 for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


@dataclass(frozen=True, kw_only=True)
class SeatConfig:
    """The policy and prompt of a seat."""

    policy: Policy | None = None  # None: the policy of the run
    prompt: str | None = None  # system prompt of the seat
    trained: bool = True  # False: its trajectories carry the tag "trained": False
    answers: AnswerFormat = "plain"  # the part of its answers that is the action
    tools: str = "native"  # "text": tools in the system prompt; "none": left out; else: in the policy's own way
    max_tokens: int | None = None  # of an answer, in place of the engine's


@dataclass(slots=True)
class SeatState:
    """One seat of a running episode."""

    name: str
    policy: Policy
    trained: bool
    history: History
    answers: AnswerFormat = "plain"
    tool_mode: str = "native"
    max_tokens: int | None = None  # of an answer; None: the engine's
    rendered: tuple[Message, ...] = ()  # messages that the last turn answered
    completions: list[Completion] = field(default_factory=list)  # of the current segment
    income: float = 0.0  # earned before the seat's first turn
    tools: tuple[Mapping[str, Any], ...] = ()  # for its next turn
    offered: tuple[Mapping[str, Any], ...] = ()  # at its last turn

    def extends(self, messages: Sequence[Message]) -> bool:
        """Return True if `messages` continue the last prompt and its reply with user messages only."""
        replies = self.history.replies
        return extends(messages, self.rendered, replies[-1] if replies else None)

    def earn(self, amount: float) -> None:
        """Add a reward from another seat's turn to the last turn, or keep it for the first one."""
        turns = self.history.turns
        if not turns:
            self.income += amount
        elif amount:
            turns[-1] = _with_income(turns[-1], amount)


@dataclass(slots=True, kw_only=True)
class PendingAction:
    """An action that the environment has not answered yet."""

    observation: Message
    completion: Completion
    text: str  # the action
    fresh: bool
    kind: Kind
    reseed: int | None = None  # fresh chance that the environment gets before the action
    info: Mapping[str, Any] = field(default_factory=dict)  # of the turn, added to the environment's
    turn: Turn | None = None  # the turn of a prefix that is replayed


@dataclass(slots=True, kw_only=True, eq=False)
class EpisodeState:
    """A running episode; planners see it as a `Node`."""

    job: Job
    group: Group
    task: str  # id
    number: int  # in the order of jobs
    seats: dict[str, SeatState]
    exact: bool  # replayed turns must show the same observations and rewards
    parallel_calls: bool = False  # an action may hold several tool calls
    thoughts: bool = False  # actions hold the thinking of answers
    tries: int = 1
    slot: int = -1
    position: int = 0  # in the prefix
    actions: int = 0  # of the agent
    forks: int = 0
    results: list[StepResult] = field(default_factory=list)  # of the reset and each step
    reseeded: bool = False  # True once the job's fresh chance was given
    stop: str = ""
    current: SeatState = field(init=False)  # the seat on turn
    latest: StepResult = field(init=False)
    reset_info: Mapping[str, Any] = field(init=False)
    pending: PendingAction | None = None
    messages: tuple[Message, ...] = ()  # that the seat on turn answers
    summary: str | None = None  # request for a summary that the policy is answering

    @property
    def seat(self) -> str:
        """Name of the seat on turn."""
        return self.current.name

    @property
    def turns(self) -> Sequence[Turn]:
        """Turns of the seat on turn so far."""
        return self.current.history.turns

    @property
    def observation(self) -> Message:
        """Observation that the seat on turn answers next."""
        return self.current.history.observation

    @property
    def info(self) -> Mapping[str, Any]:
        """Info of the latest step or of the reset."""
        return self.latest.info

    @property
    def hints(self) -> Mapping[str, Any]:
        """Hints that the seat's policy and the planner requested from the environment."""
        return self.latest.hints

    def take(self, result: StepResult) -> None:
        """Record the environment's answer; the pending action becomes a turn."""
        action, self.pending = self.pending, None
        if action is not None:
            seat = self.current
            self.actions += seat.name == FIRST_SEAT
            turn = self._turn(action, result) if action.turn is None else self._replayed(action.turn, result)
            if seat.income:
                turn, seat.income = _with_income(turn, seat.income), 0.0
            seat.history.append(turn)
        elif not result.truncated:
            self.reset_info = result.info
            for name, text in result.info.get("prompts", {}).items():  # the task's own, for seats without one
                if name in self.seats and self.seats[name].history.prompt is None:
                    self.seats[name].history.prompt = Message(role="system", text=text)
        for name, amount in result.earned.items():
            if name in self.seats:
                self.seats[name].earn(amount)
        if (result.terminated or result.truncated) and self.position < len(self.job.prefix):
            raise ReplayError(
                f"{self.job.id} ended after {self.position} of the {len(self.job.prefix)} turns to replay"
            )
        self.latest = result
        self.results.append(replace(result, pictures={}))  # the engine has them
        if len(self.results) > KEPT_STATES:
            self.results[-1 - KEPT_STATES] = replace(self.results[-1 - KEPT_STATES], state=None)
        self.current = self.seats.get(result.seat) or self.current
        self.current.history.observation = result.observation
        if not (result.terminated or result.truncated):
            self.current.tools = result.tools

    def ask(self, context: Context, *, max_tokens: int | None) -> Conversation:
        """Return the conversation for the policy on turn, which asks for a summary if the context requests one."""
        seat = self.current
        messages = context.messages(seat.history)
        self.summary = context.request(seat.history, messages, seat.policy.count)
        self.messages = tuple(messages if self.summary is None else with_request(messages, self.summary))
        if seat.tools != seat.offered or not seat.extends(self.messages):
            seat.completions = []
        conversation = Conversation(
            messages=self.messages,
            spoken=tuple(seat.completions),
            # the same sampling noise whenever the job is played
            noise=(number_of(self.job.id), self.job.attempt, number_of(seat.name), len(seat.history.turns)),
            hints=self.latest.hints,
            tools=seat.tools,
            parallel_calls=self.parallel_calls,
            max_tokens=max_tokens if seat.max_tokens is None else seat.max_tokens,
        )
        return conversation if seat.tool_mode == "native" else offered(conversation, seat.tool_mode)

    def summarise(self, completion: Completion) -> None:
        """Record the policy's answer as a summary, a turn that the environment never sees."""
        request = Message(role="user", text=self.summary or "")
        self.current.history.append(self._turn(self._action(completion, request, "summary"), None))

    def say(self, completion: Completion) -> PendingAction:
        """Return the policy's answer as the next action."""
        kind: Kind = "act" if completion.ids else "given"
        self.pending = self._action(completion, self.current.history.observation, kind)
        if self.job.reseed is not None and not self.reseeded:
            self.pending.reseed, self.reseeded = self.job.reseed, True
        return self.pending

    def replace(self, text: str, context: Context, info: Mapping[str, Any]) -> PendingAction:
        """Return a planner's text as the next action, in place of the policy's."""
        self.messages = tuple(context.messages(self.current.history))
        action = self.say(Completion(text=text))
        action.info = info
        return action

    def repeat(self, context: Context) -> PendingAction | None:
        """Return the action of the next turn of the prefix; None for a summary, which is recorded here."""
        seat, turn = self.current, self.job.prefix[self.position]
        self.position += 1
        messages = context.messages(seat.history)
        if turn.kind == "summary":
            messages = with_request(messages, turn.observation.text)
        elif self.exact and turn.observation != seat.history.observation:
            raise ReplayError(
                f"{self.job.id}: turn {self.position} answered {turn.observation.text!r}, "
                f"but the environment showed {seat.history.observation.text!r}"
            )
        self.messages, seat.offered = tuple(messages), seat.tools
        action = self._action(turn.completion, turn.observation, turn.kind, fresh=turn.fresh)
        if self.job.parent is None:
            seat.completions = []  # recorded elsewhere: the rendering is unknown
        if turn.action is None:
            seat.history.append(turn)
            return None
        action.text, action.turn, action.reseed = turn.action, turn, turn.info.get(RESEED)
        self.pending = action
        return action

    def trajectories(self) -> list[Trajectory]:
        """Return each seat's view of the episode so far, the agent's first."""
        job, result = self.job, self.latest
        views = []
        for name, seat in self.seats.items():
            ending = {key: result.info[key] for key in ENDING if key in result.info}
            scores = ending.get("seat_scores", {})
            if name != FIRST_SEAT and name in scores:
                ending |= {"score": float(scores[name]), "success": scores[name] >= 1.0}
            prompt = seat.history.prompt
            view = Trajectory(
                id=seat_id(job.id, name),
                root=seat_id(job.root or job.id, name),
                parent=None if job.parent is None else seat_id(job.parent, name),
                forked_at=0 if job.parent is None else self._shared_turns(seat),
                task=self.task,
                options=job.options,
                split=job.split,
                instance=job.instance,
                index=job.index,
                seed=job.seed,
                attempt=job.attempt,
                reseed=job.reseed,
                group=job.group,
                seat=name,
                prompt=prompt.text if prompt else None,
                tags=job.tags if seat.trained else {**job.tags, "trained": False},
                turns=tuple(seat.history.turns),
                info={**self.reset_info, **ending},
                final=result.observation if result.seat == name or result.terminated else None,
                terminated=result.terminated,
                truncated=result.truncated,
                stop=self.stop or ("done" if result.terminated else "max_turns" if result.truncated else ""),
            )
            views.append(view)
        return views

    def forked(self, decision: Fork) -> list[Job]:
        """Return jobs that share this episode's turns, or the first of them, and continue on their own."""
        views = self.trajectories()
        own = next(view for view in views if view.seat == self.seat)
        turn = len(own.turns) if decision.turn is None else decision.turn
        first, self.forks = self.forks, self.forks + decision.count
        return [
            fork(
                own,
                turn,
                number=number,
                reseed=None if decision.reseed is None else decision.reseed + number - first,
                others=[view for view in views if view is not own],
                budget=self.job.budget,
                trusted=True,
            )
            for number in range(first, self.forks)
        ]

    def saved(self, job: Job) -> Sequence[StepResult]:
        """Return the results up to the state that a fork starts from; none if that state is not saved."""
        results = self.results[: 1 + sum(turn.action is not None for turn in job.prefix)]
        return results if results[-1].state is not None else ()

    def resume(self, results: Sequence[StepResult], context: Context) -> None:
        """Replay the prefix with recorded results in place of the environment's; the last result is still to come."""
        for result in results[:-1]:
            self.take(result)
            while self.repeat(context) is None:
                pass

    def _action(
        self, completion: Completion, observation: Message, kind: Kind, *, fresh: bool | None = None
    ) -> PendingAction:
        """Return a completion as an action, and record it as the answer to the last messages."""
        seat = self.current
        if fresh is None:
            fresh = completion.fresh or not seat.completions if completion.ids else not seat.extends(self.messages)
        if fresh or not completion.ids:
            seat.completions = []  # the next prompt cannot continue text that has no ids
        if completion.ids:
            seat.completions.append(completion)
        seat.rendered = self.messages
        whole = seat.answers == "plain" or kind == "summary"
        text = completion.text if whole else action_of(completion.text, seat.answers)
        if self.thoughts and completion.thinking and kind != "summary":
            text = f"<think>{completion.thinking}</think>{text}"
        return PendingAction(observation=observation, completion=completion, text=text, fresh=fresh, kind=kind)

    def _turn(self, action: PendingAction, result: StepResult | None) -> Turn:
        """Return the turn of an action and its result; a summary has no result."""
        info: Mapping[str, Any] = {} if result is None else result.info
        if len(self.seats) > 1:
            info = {**info, PLY: sum(len(seat.history.turns) for seat in self.seats.values())}
        seat = self.current
        if seat.tools != seat.offered:
            info, seat.offered = {**info, TOOLS: seat.tools}, seat.tools
        if action.info or action.reseed is not None:
            reseed = {} if action.reseed is None else {RESEED: action.reseed}
            info = {**info, **action.info, **reseed}
        return Turn(
            observation=action.observation,
            completion=action.completion,
            action=None if result is None else action.text,
            reward=0.0 if result is None else result.reward,
            terms={} if result is None else result.terms,
            info=info,
            fresh=action.fresh,
            kind=action.kind,
        )

    def _replayed(self, turn: Turn, result: StepResult) -> Turn:
        """Return a replayed turn, with the environment's reward if a recipe or another seat has changed it since."""
        recorded = math.fsum(turn.info.get("reward_terms", turn.terms).values())
        if self.exact and not math.isclose(recorded, result.reward, abs_tol=1e-9):
            raise ReplayError(
                f"{self.job.id}: turn {self.position} earned {recorded}, but {result.reward} in the replay"
            )
        return turn if turn.reward == result.reward else replace(turn, reward=result.reward, terms=result.terms)

    def _shared_turns(self, seat: SeatState) -> int:
        """Return the number of the seat's turns that are part of the prefix."""
        if len(self.seats) == 1:
            return self.position
        replayed = {id(turn.completion) for turn in self.job.prefix[: self.position]}
        return sum(id(turn.completion) in replayed for turn in seat.history.turns)


def _with_income(turn: Turn, amount: float) -> Turn:
    terms = {**turn.terms, OTHERS: turn.terms.get(OTHERS, 0.0) + amount}
    return replace(turn, reward=turn.reward + amount, terms=terms)
