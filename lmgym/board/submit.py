"""Submission: from the recorded episodes of an evaluation to an entry, without anything about the author's machine."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lmgym.board import entry as entries
from lmgym.board import parsing, run_folder
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
from lmgym.board.reproduce import check_weights_alone
from lmgym.board.run_folder import RunFolder
from lmgym.board.validate import check_name, validate_entry
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol, protocol
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.policy.select import model_of
from lmgym.rollout.fork import PLY
from lmgym.types import FIRST_SEAT, Trajectory, Turn

if TYPE_CHECKING:
    from lmgym.policy.local.policy import LocalPolicy  # imports torch

DIGITS = 6  # decimals of log-probs and entropies


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Everything in an entry that does not follow from its episodes."""

    name: str  # system name, the same on every task
    title: str
    authors: tuple[str, ...]
    date: str  # YYYY-MM-DD
    policy: PolicyRecord
    user: str | None = None  # policy in the other seats
    settings: Mapping[str, Any] = field(default_factory=dict)
    declared: Declaration = field(default_factory=Declaration)
    links: Links = field(default_factory=Links)


def submit(
    run: RunFolder, leaderboard: Path, *, policy: LocalPolicy | None, name: str = "", title: str = "", **signed: Any
) -> Path:
    """Write the entry of an evaluation to a leaderboard and return the path of its JSON file.

    `policy` is the policy that played, where it is local: the entry states the digest of its weights. `name` and
    `title` default to those of the policy; `signed` are further fields of the signature. Raises SubmissionError where
    the run or its signature cannot be an entry, or contains an API key from the environment.
    """
    name = name or run_folder.slug(run.policy)
    check_name(name)
    weights: dict[str, Any] = {}
    if policy is not None:
        from lmgym.policy.local.audit import parameters, weights_digest

        check_weights_alone(policy)
        if model_of(run.policy) != run.policy:
            raise SubmissionError(
                f"an entry of {run.policy} states no weights, as its ids cannot be scored again: leave --model out"
            )
        weights = {"parameters": parameters(policy), "weights": weights_digest(policy)}
    public_name = run_folder.public_name(run.policy)
    signature = Signature(
        name=name,
        title=title or public_name,
        policy=PolicyRecord(name=public_name, kind=run_folder.kind_of(run.policy), **weights),
        user=run.user(),
        settings=run.entry_settings(),
        **signed,
    )
    entry, episodes = build(run.trajectories(), signature)
    contents = (entries.canonical(entry).decode(), entries.packed(episodes).decode())
    secrets = Secrets.of_environment()
    if any(secrets.struck(content) != content for content in contents):
        raise SubmissionError("the run or its signature contains an API key from the environment; nothing was written")
    folder = leaderboard / "entries"
    path = folder / entries.folder_name(entry.task) / f"{entry.name}.json"
    validate_entry(entries.as_record(entries.plain(entry), Entry, path.name), path)
    return entries.write(folder, entry, episodes)


def build(trajectories: Iterable[Trajectory], signature: Signature) -> tuple[Entry, list[RecordedEpisode]]:
    """Make an entry of the trajectories of a run, with its episodes in the order of the protocol.

    Raises SubmissionError where an episode is missing, repeated, or not one of the protocol.
    """
    by_episode: dict[tuple[int | None, int], dict[str, Trajectory]] = {}
    for trajectory in trajectories:
        seats = by_episode.setdefault((trajectory.index, trajectory.attempt), {})
        if trajectory.seat in seats:
            raise SubmissionError(f"instance {trajectory.index}, try {trajectory.attempt} is in this run twice")
        seats[trajectory.seat] = trajectory
    if not by_episode:
        raise SubmissionError("this run has no episodes")
    first = next(iter(by_episode.values()))
    rules = protocol(first[FIRST_SEAT].task)
    hint = f"play the board's episodes with: lmgym eval {rules.task} --standard"
    for seats in by_episode.values():
        agent = seats[FIRST_SEAT]
        name = f"instance {agent.index}, try {agent.attempt}"
        if (agent.task, agent.split) != (rules.task, rules.split):
            raise SubmissionError(
                f"{name} is of {agent.task} {agent.split}; the board ranks {rules.task} {rules.split}: {hint}"
            )
        if agent.options or agent.instance is not None:
            raise SubmissionError(f"{name} was played with options {dict(agent.options)}: {hint}")
        if agent.parent is not None or agent.reseed is not None:
            raise SubmissionError(f"{name} continues another episode: {hint}")
        if agent.index is None or agent.seed != rules.seed(agent.index, agent.attempt):
            raise SubmissionError(f"{name} was played with seed {agent.seed}, which is not the board's: {hint}")
    if missing := [key for key in rules.names() if key not in by_episode]:
        raise SubmissionError(
            f"{rules.task} is ranked on {len(rules)} episodes; this run lacks {len(missing)} of them, the first is "
            f"instance {missing[0][0]}, try {missing[0][1]}; play all with: lmgym eval {rules.task} --standard"
        )
    episodes = [record_episode(by_episode.pop(key)) for key in rules.names()]
    if by_episode:
        index, attempt = next(iter(by_episode))
        raise SubmissionError(f"instance {index}, try {attempt} is not one that {rules.task} is ranked on")
    return _entry(first, episodes, rules, signature), episodes


def record_episode(seats: Mapping[str, Trajectory]) -> RecordedEpisode:
    """Make the record of an episode from its trajectories by seat."""
    agent = seats[FIRST_SEAT]
    turns = [
        (turn.info.get(PLY, number), seat, turn)
        for seat, trajectory in seats.items()
        for number, turn in enumerate(trajectory.turns)
    ]
    cost = _usage(agent, "cost") if agent.turns else None
    return RecordedEpisode(
        index=agent.index or 0,
        attempt=agent.attempt,
        seed=agent.seed,
        turns=tuple(_record_turn(turn, seat) for _, seat, turn in sorted(turns, key=lambda each: each[0])),
        final=None if agent.final is None else observation_digest(agent.final),
        score=agent.score,
        success=agent.success,
        terminated=agent.terminated,
        truncated=agent.truncated,
        stop=agent.stop,  # type: ignore[arg-type]  # validation checks the word
        cost=None if cost is None else round(cost, 9),
        tokens_in=None if (count := _usage(agent, "in")) is None else int(count),
        tokens_out=None if (count := _usage(agent, "out")) is None else int(count),
        figures=dict(agent.figures),
    )


def _usage(agent: Trajectory, name: str) -> float | None:
    """Sum a figure over all calls as the endpoint counted it; return None where a call has none."""
    values = [turn.completion.usage.get(name) for turn in agent.turns]
    return None if None in values else math.fsum(float(value) for value in values if value is not None)


def _record_turn(turn: Turn, seat: str) -> RecordedTurn:
    answer = turn.completion
    if answer.finish == "broken":
        raise SubmissionError("this run lacks an answer that never arrived; resume the evaluation first")
    return RecordedTurn(
        observation=observation_digest(turn.observation),
        action=turn.action,
        reward=float(turn.reward),
        seat=seat,
        words=None if answer.text == turn.action else answer.text,
        prompt=answer.prompt_ids,
        ids=answer.ids,
        logprobs=tuple(min(0.0, round(value, DIGITS)) for value in answer.logprobs),
        entropy=tuple(round(value, DIGITS) for value in answer.entropy),
        finish=answer.finish,
        fresh=answer.fresh,
    )


def _entry(
    first: Mapping[str, Trajectory], episodes: Sequence[RecordedEpisode], rules: Protocol, signature: Signature
) -> Entry:
    seats = tuple(first)
    if all(episode.final is not None for episode in episodes):  # no episode was cut at the turn of another seat
        active = {FIRST_SEAT, *(turn.seat for episode in episodes for turn in episode.turns)}
        seats = tuple(seat for seat in first if seat in active)
    prompt = first[FIRST_SEAT].prompt
    own = first[FIRST_SEAT].info.get("prompts", {}).get(FIRST_SEAT)  # the task's, which replay makes again
    settings = dict(signature.settings) | ({} if prompt in (None, own) else {"prompt": prompt})
    others = {seat: name for seat, name in settings.pop("seats", {}).items() if seat in seats}
    user = "; ".join(f"{seat}: {name}" for seat, name in sorted(others.items())) or signature.user
    entry = Entry(
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
        user=user if len(seats) > 1 else None,
        settings=settings | ({"seats": others} if others else {}),
        identity="",
        claim=Claim(
            score=round(math.fsum(episode.score for episode in episodes) / len(episodes), 9),
            success=round(sum(episode.success for episode in episodes) / len(episodes), 9),
        ),
        declared=signature.declared,
        links=signature.links,
        episodes=EpisodeFile(count=len(episodes), sha256=parsing.digest(entries.packed(episodes))),
    )
    return msgspec.structs.replace(entry, identity=entries.identity(entry))
