"""From the recorded episodes of an evaluation to an entry: what replaying needs, nothing of the machine it ran on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.entry import (
    Claim,
    Declaration,
    Entry,
    EpisodeFile,
    Links,
    PolicyRecord,
    RecordedEpisode,
    RecordedTurn,
    observation_digest,
)
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol, protocol
from lmgym.rollout.fork import PLY
from lmgym.types import FIRST_SEAT, Trajectory, Turn

DIGITS = 6  # of log-probs and entropies, after the point


@dataclass(frozen=True, kw_only=True)
class Signature:
    """What the author says of an entry."""

    name: str  # of the system: the same on every task
    title: str
    authors: tuple[str, ...]
    date: str  # YYYY-MM-DD
    policy: PolicyRecord
    user: str | None = None  # the policy in the other seats
    settings: Mapping[str, Any] = field(default_factory=dict)
    declared: Declaration = field(default_factory=Declaration)
    links: Links = field(default_factory=Links)


def build(trajectories: Iterable[Trajectory], signature: Signature) -> tuple[Entry, list[RecordedEpisode]]:
    """An entry of the episodes of a run, with its episodes in the order of the protocol.

    Raises SubmissionError where an episode is not of the protocol, or one is missing.
    """
    together: dict[tuple[int | None, int], dict[str, Trajectory]] = {}
    for each in trajectories:
        seats = together.setdefault((each.index, each.attempt), {})
        if each.seat in seats:
            raise SubmissionError(f"instance {each.index}, try {each.attempt} is in this run twice")
        seats[each.seat] = each
    if not together:
        raise SubmissionError("this run has no episodes")
    first = next(iter(together.values()))
    agent = first[FIRST_SEAT]
    rules = protocol(agent.task)
    for seats in together.values():
        _check(seats[FIRST_SEAT], rules)
    if missing := [name for name in rules.names() if name not in together]:
        raise SubmissionError(
            f"{rules.task} is ranked on {len(rules)} episodes, this run lacks {len(missing)} of them, the first of "
            f"instance {missing[0][0]}, try {missing[0][1]}: play them all by: lmgym eval {rules.task} --standard"
        )
    episodes = [episode(together.pop(name)) for name in rules.names()]
    if together:
        index, attempt = next(iter(together))
        raise SubmissionError(f"instance {index}, try {attempt} is none of those that {rules.task} is ranked on")
    return _entry(agent, episodes, rules, signature, _heard(first, episodes)), episodes


def _heard(seats: Iterable[str], episodes: Sequence[RecordedEpisode]) -> tuple[str, ...]:
    """The seats that were on turn in some episode; whoever was to play another was never asked, as if not there."""
    if any(each.final is None for each in episodes):  # an episode was cut when it was another seat's turn
        return tuple(seats)
    spoke = {FIRST_SEAT, *(ply.seat for each in episodes for ply in each.turns)}
    return tuple(seat for seat in seats if seat in spoke)


def _check(agent: Trajectory, rules: Protocol) -> None:
    name = f"instance {agent.index}, try {agent.attempt}"
    hint = f"play the episodes of the board by: lmgym eval {rules.task} --standard"
    if (agent.task, agent.split) != (rules.task, rules.split):
        raise SubmissionError(
            f"{name} is of {agent.task} {agent.split}; the board ranks {rules.task} {rules.split}: {hint}"
        )
    if agent.options or agent.instance is not None:
        raise SubmissionError(f"{name} was played with options of its own, {dict(agent.options)}: {hint}")
    if agent.parent is not None or agent.reseed is not None:
        raise SubmissionError(f"{name} goes on from another episode: {hint}")
    if agent.index is None or agent.seed != rules.seed(agent.index, agent.attempt):
        raise SubmissionError(f"{name} was played with seed {agent.seed}, which is not the board's: {hint}")


def episode(seats: Mapping[str, Trajectory]) -> RecordedEpisode:
    """The record of an episode, given its trajectories by seat."""
    agent = seats[FIRST_SEAT]
    turns = [(turn.info.get(PLY, place), seat, turn) for seat, each in seats.items() for place, turn in _turns(each)]
    costs = [turn.completion.usage.get("cost") for turn in agent.turns]
    return RecordedEpisode(
        index=agent.index or 0,
        attempt=agent.attempt,
        seed=agent.seed,
        turns=tuple(_ply(turn, seat) for _, seat, turn in sorted(turns, key=lambda each: each[0])),
        final=None if agent.final is None else observation_digest(agent.final),
        score=agent.score,
        success=agent.success,
        terminated=agent.terminated,
        truncated=agent.truncated,
        stop=agent.stop,
        cost=None if None in costs or not costs else round(math.fsum(map(float, filter(None, costs))), 9),
        tokens_in=_told(agent, "in"),
        tokens_out=_told(agent, "out"),
    )


def _told(agent: Trajectory, name: str) -> int | None:
    """Tokens of all calls as they were counted elsewhere; None where one was not."""
    counts = [turn.completion.usage.get(name) for turn in agent.turns]
    return None if None in counts else sum(map(int, filter(None, counts)))


def _turns(trajectory: Trajectory) -> list[tuple[int, Turn]]:
    return list(enumerate(trajectory.turns))


def _ply(turn: Turn, seat: str) -> RecordedTurn:
    said = turn.completion
    if said.finish == "broken":
        raise SubmissionError("an answer that never came stands in this run: resume the evaluation first")
    return RecordedTurn(
        observation=observation_digest(turn.observation),
        action=turn.action,
        reward=float(turn.reward),
        seat=seat,
        words=None if said.text == turn.action else said.text,
        prompt=said.prompt_ids,
        ids=said.ids,
        logprobs=tuple(min(0.0, round(value, DIGITS)) for value in said.logprobs),
        entropy=tuple(round(value, DIGITS) for value in said.entropy),
        finish=said.finish,
        fresh=said.fresh,
    )


def _entry(
    agent: Trajectory,
    episodes: Sequence[RecordedEpisode],
    rules: Protocol,
    signature: Signature,
    seats: tuple[str, ...],
) -> Entry:
    settings = dict(signature.settings) | ({} if agent.prompt is None else {"prompt": agent.prompt})
    asked = {seat: who for seat, who in settings.pop("seats", {}).items() if seat in seats}
    found = Entry(
        schema=1,
        licence="CC0-1.0",
        task=rules.task,
        split=rules.split,
        options={},
        instances=rules.instances,
        tries=rules.tries,
        max_turns=rules.max_turns,
        name=signature.name,
        title=signature.title,
        authors=signature.authors,
        date=signature.date,
        policy=signature.policy,
        seats=seats,
        user=signature.user if len(seats) > 1 else None,
        settings=settings | ({"seats": asked} if asked else {}),
        identity="",
        claim=Claim(
            score=round(math.fsum(each.score for each in episodes) / len(episodes), 9),
            success=round(sum(each.success for each in episodes) / len(episodes), 9),
        ),
        declared=signature.declared,
        links=signature.links,
        episodes=EpisodeFile(count=len(episodes), sha256=parsing.digest(entries.packed(episodes))),
    )
    return msgspec.structs.replace(found, identity=entries.identity(found))
