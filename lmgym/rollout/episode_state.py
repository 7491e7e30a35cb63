"""An episode while it is played: what each seat was shown and said, and the trajectories that come of it."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from lmgym.errors import ReplayError
from lmgym.policy.base import Conversation, Policy, extends
from lmgym.rollout.context import Context, History, with_request
from lmgym.rollout.env_handle import StepResult
from lmgym.rollout.fork import PLY, fork, seat_id
from lmgym.rollout.planner import Fork
from lmgym.types import FIRST_SEAT, Completion, Job, Kind, Message, Trajectory, Turn

NOTHING = Message(role="user", text="")
OTHERS = "others"  # the reward term of what a seat earned by the turns of others
ENDING = ("score", "success", "seat_scores")


@lru_cache(maxsize=4096)
def number_of(name: str) -> int:
    """A stable whole number below 2^56 for a name."""
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=7).digest(), "big")


@dataclass(frozen=True, kw_only=True)
class SeatConfig:
    """Who plays a seat."""

    policy: Policy | None = None  # None: the policy of the run
    prompt: str | None = None  # system prompt of the seat
    trained: bool = True  # False: its trajectories carry the tag "trained": False


@dataclass(slots=True)
class SeatState:
    """One seat of a running episode."""

    seat: str
    policy: Policy
    trained: bool
    history: History
    rendered: tuple[Message, ...] = ()  # what the last turn answered
    spoken: list[Completion] = field(default_factory=list)  # of the segment
    income: float = 0.0  # earned before the first turn

    def extends(self, messages: Sequence[Message]) -> bool:
        """Whether `messages` begin with what was rendered last and what was said to it, and then only ask."""
        said = self.history.said
        return extends(messages, self.rendered, said[-1] if said else None)

    def said(self, messages: Sequence[Message], completion: Completion, *, fresh: bool) -> None:
        """Remember what was answered to what. Words without ids cannot be gone on from."""
        if fresh or not completion.ids:
            self.spoken = []
        if completion.ids:
            self.spoken.append(completion)
        self.rendered = tuple(messages)

    def append(self, turn: Turn) -> None:
        """Add a turn."""
        self.history.turns.append(turn)
        self.history.said.append(Message(role="assistant", text=turn.completion.text))

    def earn(self, amount: float) -> None:
        """Add what other seats' turns brought to the last turn, or to the first one still to come."""
        turns = self.history.turns
        if not turns:
            self.income += amount
        elif amount:
            turns[-1] = _richer(turns[-1], amount)


@dataclass(slots=True, kw_only=True)
class PendingAction:
    """Words on their way to the environment."""

    observation: Message
    completion: Completion
    fresh: bool
    kind: Kind
    info: Mapping[str, Any] = field(default_factory=dict)  # of the turn, beside the environment's
    turn: Turn | None = None  # of a prefix, that is played again


@dataclass(slots=True, kw_only=True, eq=False)
class EpisodeState:
    """One episode being played."""

    job: Job
    task: str  # id
    number: int  # in the order of jobs
    sides: dict[str, SeatState]
    exact: bool  # a prefix must lead to the same observations and rewards
    tries: int = 1
    slot: int = -1
    position: int = 0  # in the prefix
    actions: int = 0  # of the agent
    forks: int = 0
    reseeded: bool = False  # the job's fresh chance was given
    stop: str = ""
    side: SeatState = field(init=False)  # on turn
    shown: StepResult = field(init=False)
    opening: Mapping[str, Any] = field(init=False)  # info of reset
    tools: tuple[Mapping[str, Any], ...] = ()
    saying: PendingAction | None = None
    asked: tuple[Message, ...] = ()  # what the policy is answering
    summary: str | None = None  # the words that ask for one, while a summary is being written

    def take(self, shown: StepResult) -> None:
        """Record what the environment answered."""
        if self.saying is not None:
            self._complete(self.saying, shown)
            self.saying = None
        elif not shown.truncated:
            self.opening, self.tools = shown.info, shown.tools
        for seat, amount in shown.earned.items():
            if seat in self.sides:
                self.sides[seat].earn(amount)
        if (shown.terminated or shown.truncated) and self.position < len(self.job.prefix):
            raise ReplayError(
                f"{self.job.id} was over after {self.position} of the {len(self.job.prefix)} turns to repeat"
            )
        self.shown = shown
        self.side = self.sides.get(shown.seat) or self.side
        self.side.history.observation = shown.observation

    def noise(self) -> tuple[int, ...]:
        """Name of the sampling noise of the next words: the same whenever the job is played."""
        side = self.side
        return (number_of(self.job.id), self.job.attempt, number_of(side.seat), len(side.history.turns))

    def ask(self, context: Context, *, max_tokens: int | None) -> Conversation:
        """What the seat on turn has to answer."""
        side = self.side
        messages = context.messages(side.history)
        self.summary = context.request(side.history, messages, side.policy.count)
        self.asked = tuple(messages if self.summary is None else with_request(messages, self.summary))
        if not side.extends(self.asked):
            side.spoken = []
        return Conversation(
            messages=self.asked,
            spoken=tuple(side.spoken),
            noise=self.noise(),
            hints=self.shown.hints,
            tools=self.tools,
            max_tokens=max_tokens,
        )

    def summarised(self, completion: Completion) -> None:
        """Take the policy's answer as a summary: a turn that the environment never sees."""
        side = self.side
        observation = Message(role="user", text=self.summary or "")
        turn = self._turn(self._answered(completion, observation, "summary"), None, 0.0, {}, {})
        side.append(turn)

    def say(self, completion: Completion) -> PendingAction:
        """Take the policy's answer as the next action."""
        kind: Kind = "act" if completion.ids else "given"
        self.saying = self._answered(completion, self.side.history.observation, kind)
        return self.saying

    def replace(self, text: str, context: Context, info: Mapping[str, Any]) -> PendingAction:
        """Take words that the policy did not say as the next action."""
        self.asked = tuple(context.messages(self.side.history))
        said = self.say(Completion(text=text))
        said.info = info
        return said

    def repeat(self, context: Context) -> PendingAction | None:
        """Take the next turn of the prefix; None where it is a summary, which no environment needs to hear."""
        side, turn = self.side, self.job.prefix[self.position]
        self.position += 1
        messages = context.messages(side.history)
        if turn.kind == "summary":
            messages = with_request(messages, turn.observation.text)
        elif self.exact and turn.observation != side.history.observation:
            raise ReplayError(
                f"{self.job.id}: turn {self.position} was played to {turn.observation.text!r}, "
                f"but the environment showed {side.history.observation.text!r}"
            )
        side.said(messages, turn.completion, fresh=turn.fresh)
        if self.job.parent is None:
            side.spoken = []  # rendered who knows how
        if turn.action is None:
            side.append(turn)
            return None
        self.saying = PendingAction(
            observation=turn.observation, completion=turn.completion, fresh=turn.fresh, kind=turn.kind, turn=turn
        )
        return self.saying

    def trajectories(self) -> list[Trajectory]:
        """Each seat's view of the episode as it stands, the agent's first."""
        return [self._trajectory(side) for side in self.sides.values()]

    def forked(self, decision: Fork) -> list[Job]:
        """Jobs that share this episode's turns, or the first of them, and go on by themselves."""
        views = self.trajectories()
        mine = next(view for view in views if view.seat == self.side.seat)
        turn = len(mine.turns) if decision.turn is None else decision.turn
        first, self.forks = self.forks, self.forks + decision.count
        return [
            fork(
                mine,
                turn,
                number=number,
                reseed=None if decision.reseed is None else decision.reseed + number - first,
                others=[view for view in views if view is not mine],
                budget=self.job.budget,
                trusted=True,
            )
            for number in range(first, self.forks)
        ]

    def _answered(self, completion: Completion, observation: Message, kind: Kind) -> PendingAction:
        side = self.side
        fresh = completion.fresh or not side.spoken if completion.ids else not side.extends(self.asked)
        side.said(self.asked, completion, fresh=fresh)
        return PendingAction(observation=observation, completion=completion, fresh=fresh, kind=kind)

    def _turn(
        self,
        said: PendingAction,
        action: str | None,
        reward: float,
        terms: Mapping[str, float],
        info: Mapping[str, Any],
    ) -> Turn:
        if len(self.sides) > 1:
            info = {**info, PLY: sum(len(side.history.turns) for side in self.sides.values())}
        return Turn(
            observation=said.observation,
            completion=said.completion,
            action=action,
            reward=reward,
            terms=terms,
            info={**info, **said.info} if said.info else info,
            fresh=said.fresh,
            kind=said.kind,
        )

    def _complete(self, said: PendingAction, shown: StepResult) -> None:
        """Make a turn of what was said and what came of it."""
        side = self.side
        if side.seat == FIRST_SEAT:
            self.actions += 1
        if said.turn is not None:
            turn = self._again(said.turn, shown)
        else:
            turn = self._turn(said, said.completion.text, shown.reward, shown.terms, shown.info)
        if side.income:
            turn, side.income = _richer(turn, side.income), 0.0
        side.append(turn)

    def _again(self, turn: Turn, shown: StepResult) -> Turn:
        """The turn itself, or with the environment's reward where a recipe or another seat added to it since."""
        recorded = math.fsum(turn.info.get("reward_terms", turn.terms).values())
        if self.exact and not math.isclose(recorded, shown.reward, abs_tol=1e-9):
            raise ReplayError(
                f"{self.job.id}: turn {self.position} earned {recorded} when played first, {shown.reward} when again"
            )
        return turn if turn.reward == shown.reward else replace(turn, reward=shown.reward, terms=shown.terms)

    def _trajectory(self, side: SeatState) -> Trajectory:
        job, shown, seat = self.job, self.shown, side.seat
        prompt = side.history.prompt
        mine = shown.seat == seat or shown.terminated
        return Trajectory(
            id=seat_id(job.id, seat),
            root=seat_id(job.root or job.id, seat),
            parent=None if job.parent is None else seat_id(job.parent, seat),
            forked_at=0 if job.parent is None else self._shared(side),
            task=self.task,
            options=job.options,
            split=job.split,
            instance=job.instance,
            index=job.index,
            seed=job.seed,
            attempt=job.attempt,
            reseed=job.reseed,
            group=job.group,
            seat=seat,
            prompt=prompt.text if prompt else None,
            tags=job.tags if side.trained else {**job.tags, "trained": False},
            turns=tuple(side.history.turns),
            info={**self.opening, **self._ending(seat)},
            final=shown.observation if mine else None,
            terminated=shown.terminated,
            truncated=shown.truncated,
            stop=self.stop or ("done" if shown.terminated else "max_turns" if shown.truncated else ""),
        )

    def _shared(self, side: SeatState) -> int:
        """How many of the seat's turns stand in the prefix."""
        if len(self.sides) == 1:
            return self.position
        repeated = {id(turn.completion) for turn in self.job.prefix[: self.position]}
        return sum(id(turn.completion) in repeated for turn in side.history.turns)

    def _ending(self, seat: str) -> dict[str, Any]:
        ending = {name: self.shown.info[name] for name in ENDING if name in self.shown.info}
        scores = ending.get("seat_scores", {})
        if seat != FIRST_SEAT and seat in scores:
            ending |= {"score": float(scores[seat]), "success": scores[seat] >= 1.0}
        return ending


def _richer(turn: Turn, amount: float) -> Turn:
    terms = {**turn.terms, OTHERS: turn.terms.get(OTHERS, 0.0) + amount}
    return replace(turn, reward=turn.reward + amount, terms=terms)
