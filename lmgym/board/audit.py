"""Whether a policy said the recorded ids itself: prompts made and ids scored again, surprise held against entropy.

The conversations are those that the environments and the context rule make of the recorded actions, so a prompt cannot
hold what was never shown. A stranger's words under a policy's name are too surprising to it, whatever log-probs are
written beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np

from lmgym.board.entry import Entry, RecordedEpisode, RecordedTurn
from lmgym.board.figures import FULL, Precision, ScoredTokens, judged
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol as Rules
from lmgym.policy.base import Conversation, SimpleSession
from lmgym.rollout.context import Context, Full
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig, number_of
from lmgym.rollout.picture_folder import PictureFolder
from lmgym.rollout.segments import Segment, segments
from lmgym.types import FIRST_SEAT, Completion, Message, Picture, Trajectory

SegmentRow = tuple[  # ids of a segment, which were sampled, by what noise, and the pictures by their places
    Sequence[int], Sequence[bool], Sequence[float], tuple[Picture, ...]
]

MANY = 1 << 40  # tokens that are above any limit
ALONE = 64  # episodes at once, where only the agent speaks


class Scorer(Protocol):
    """A policy as this check sees it."""

    @property
    def context(self) -> int:
        """Tokens that a segment can have."""

    @property
    def vocabulary(self) -> int:
        """Ids that there are, from 0."""

    def prompt(self, conversation: Conversation) -> tuple[list[int], bool]:
        """Ids that are new in a conversation, and whether they render all of it."""

    def pictures(self, conversation: Conversation, prompt: Sequence[int], *, fresh: bool) -> tuple[Picture, ...]:
        """Where in `prompt`, which `prompt()` made of a conversation, pictures stand."""

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Look pictures up in `pictures` from here on, PNGs by digest."""

    def text(self, answer: Sequence[int]) -> str:
        """Words of an answer, without its thinking."""

    def end(self, answer: Sequence[int]) -> int | None:
        """Tokens after which the policy ends this answer by itself; None where it would go on."""

    def noise(self, name: Sequence[int], count: int) -> list[float]:
        """The first `count` draws of the stream that an answer has by its name."""

    def rescore(self, rows: Sequence[SegmentRow]) -> Sequence[ScoredTokens]:
        """Score the sampled tokens of segments."""


@dataclass
class RecordedPolicy:
    """Says what was recorded, after making sure that it answers what is asked."""

    scorer: Scorer | None  # None: of a seat whose policy nobody has
    plies: Mapping[tuple[int, ...], RecordedTurn]  # by the name of the sampling noise
    limit: int | None  # tokens of an answer
    name: str = "recorded"
    version: int = 0
    wants: frozenset[str] = frozenset()
    latest: tuple[int, ...] = ()  # the name of what was said last

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Say it."""
        return [self._said(conversation) for conversation in conversations]

    def count(self, messages: Sequence[Message]) -> int:
        """Tokens of the messages rendered from nothing; where no policy counts them, enough that a summary comes.

        That is where the record has one next, of the episode in which this seat spoke last.
        """
        if self.scorer is not None:
            return len(self.scorer.prompt(Conversation(messages=tuple(messages)))[0])
        *name, number = self.latest
        following = self.plies.get((*name, number + 1))
        return MANY if following is not None and following.action is None else 0

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Let the policy look pictures up in `pictures`."""
        if self.scorer is not None:
            self.scorer.use_pictures(pictures)

    def session(self) -> SimpleSession:
        """A session that answers at once."""
        return SimpleSession(self)

    def _said(self, conversation: Conversation) -> Completion:
        self.latest = conversation.noise
        ply = self.plies.get(conversation.noise)
        if ply is None:  # the record ends here
            self._check_room(conversation)
            return Completion(text="", finish="context")
        words = ply.action if ply.action is not None else ply.words or ""
        pictures: tuple[Picture, ...] = ()
        if self.scorer is not None:
            self._check(self.scorer, ply, words, conversation)
            pictures = self.scorer.pictures(conversation, ply.prompt, fresh=ply.fresh)
        return Completion(
            text=words,
            prompt_ids=ply.prompt,
            ids=ply.ids,
            logprobs=ply.logprobs,
            entropy=ply.entropy,
            finish=ply.finish,
            fresh=ply.fresh,
            pictures=pictures,
        )

    def _check(self, scorer: Scorer, ply: RecordedTurn, words: str, conversation: Conversation) -> None:
        if not ply.ids:
            raise SubmissionError(f"an answer without token ids, {words[:40]!r}: there is nothing to score again")
        if (highest := max(ply.ids)) >= scorer.vocabulary:
            raise SubmissionError(f"{words[:40]!r} has the token id {highest}; this policy knows {scorer.vocabulary:,}")
        if (list(ply.prompt), ply.fresh) != scorer.prompt(conversation):
            raise SubmissionError(f"the ids before {words[:40]!r} are not what was shown, as this policy renders it")
        if scorer.text(ply.ids) != words:
            raise SubmissionError(f"the ids of {words[:40]!r} spell {scorer.text(ply.ids)[:40]!r}")
        count, room = len(ply.ids), scorer.context - _used(ply.prompt, ply.fresh, conversation)
        wanted = {"stop": (count, count), "length": (None, self.limit), "context": (None, room)}.get(ply.finish)
        if (scorer.end(ply.ids), count) != wanted:
            raise SubmissionError(f"the answer {words[:40]!r} does not end as this policy ends one ({ply.finish})")

    def _check_room(self, conversation: Conversation) -> None:
        """Whether the policy had no room left, as a record says that ends before its episode does."""
        if self.scorer is None:
            return
        used = _used(*self.scorer.prompt(conversation), conversation)
        if used < self.scorer.context:
            raise SubmissionError(
                f"an episode was stopped for want of room, but {used} tokens are less than this policy's "
                f"{self.scorer.context}"
            )


def _used(prompt: Sequence[int], fresh: bool, conversation: Conversation) -> int:
    """Ids of a segment before an answer."""
    return len(prompt) + sum(len(said.prompt_ids) + len(said.ids) for said in conversation.spoken if not fresh)


def audit(
    entry: Entry,
    episodes: Sequence[RecordedEpisode],
    scorer: Scorer,
    rules: Rules,
    *,
    context: Context | None = None,
    precision: Precision = FULL,
) -> dict[str, Any]:
    """Hold the ids of episodes against a policy. Raises SubmissionError where it cannot have said them."""
    heat = float(entry.settings.get("temperature", 1.0))
    rows: list[SegmentRow] = []
    stated: list[float] = []
    owner: list[int] = []
    with TemporaryDirectory() as folder:
        pictures = PictureFolder(Path(folder))
        for place, trajectory in enumerate(_played(entry, episodes, scorer, rules, context or Full(), pictures)):
            for segment in segments(trajectory):
                noise = _noise(scorer, trajectory, segment)
                rows.append((segment.ids, segment.sampled, noise, segment.pictures))
                stated += [value for value, own in zip(segment.logprobs, segment.sampled, strict=True) if own]
                owner.append(place)
        found = scorer.rescore(rows) if rows else ()
    return judged(np.array(stated), found, owner, heat=heat, precision=precision)


def _noise(scorer: Scorer, trajectory: Trajectory, segment: Segment) -> list[float]:
    """What the sampled tokens of a segment were drawn by: the engine names the noise of each turn."""
    seat = (number_of(trajectory.id), trajectory.attempt, number_of(trajectory.seat))
    turns = enumerate(trajectory.turns[segment.start : segment.stop], segment.start)
    return [draw for number, turn in turns for draw in scorer.noise((*seat, number), len(turn.completion.ids))]


def _played(
    entry: Entry,
    episodes: Sequence[RecordedEpisode],
    scorer: Scorer,
    rules: Rules,
    context: Context,
    pictures: PictureFolder,
) -> Iterator[Trajectory]:
    """The agent's trajectories, in order, as the engine makes them of the recorded words."""
    limit = entry.settings.get("max_tokens")
    jobs = [rules.job(each.index, each.attempt) for each in episodes]
    plies: dict[tuple[int, ...], RecordedTurn] = {}
    for job, each in zip(jobs, episodes, strict=True):
        for seat in entry.seats:
            for number, ply in enumerate(ply for ply in each.turns if ply.seat == seat):
                plies[number_of(job.id), job.attempt, number_of(seat), number] = ply
    seats = {seat: SeatConfig(policy=RecordedPolicy(None, plies, None)) for seat in entry.seats if seat != FIRST_SEAT}
    at_once = 1 if seats else ALONE  # other seats count by what the record of the one episode says
    prompt = entry.settings.get("prompt")
    seats |= {FIRST_SEAT: SeatConfig(prompt=prompt, policy=RecordedPolicy(scorer, plies, limit))}
    engine = Engine(context=context, seats=seats, lockstep=True, concurrency=at_once, pictures=pictures)
    for trajectory in engine.run(RecordedPolicy(scorer, plies, limit), jobs):
        if trajectory.seat == FIRST_SEAT:
            yield trajectory
