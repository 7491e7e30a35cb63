"""Audit of recorded token ids: prompts are rendered again, ids scored again, and surprise is compared with entropy.

The conversations are those that the environments and the context rule make of the recorded actions, so a prompt
cannot contain anything the policy was not shown. Words of another author are too surprising to a policy, whatever
log-probabilities stand beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from lmgym.board.entry import Entry, RecordedEpisode, RecordedTurn, settings_of
from lmgym.board.evidence import FULL, Precision, weigh
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol
from lmgym.evaluation.settings import context_rule
from lmgym.policy.base import Conversation, SimpleSession
from lmgym.rollout.answers import AnswerFormat, action_of
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig, number_of
from lmgym.rollout.picture_folder import PictureFolder
from lmgym.rollout.segments import segments
from lmgym.types import FIRST_SEAT, Completion, Message, Picture

if TYPE_CHECKING:
    from lmgym.policy.local.audit import Auditor  # imports torch

MANY = 1 << 40  # tokens, more than any limit
ALONE = 64  # episodes at once, where only the agent plays


def audit(
    entry: Entry,
    episodes: Sequence[RecordedEpisode],
    auditor: Auditor,
    rules: Protocol,
    *,
    precision: Precision = FULL,
) -> dict[str, Any]:
    """Score the ids of episodes under a policy. Raises SubmissionError where the policy cannot have sampled them."""
    settings = settings_of(entry)
    jobs = [rules.job(episode.index, episode.attempt) for episode in episodes]
    record: dict[tuple[int, ...], RecordedTurn] = {}
    for job, episode in zip(jobs, episodes, strict=True):
        for seat in entry.seats:
            for number, turn in enumerate(turn for turn in episode.turns if turn.seat == seat):
                record[number_of(job.id), job.attempt, number_of(seat), number] = turn
    agent = RecordedPolicy(auditor, record, settings.max_tokens, answers=settings.answers)
    seats = {seat: SeatConfig(policy=RecordedPolicy(None, record, None)) for seat in entry.seats if seat != FIRST_SEAT}
    concurrency = 1 if seats else ALONE  # other seats count tokens by the record of a single episode
    seats[FIRST_SEAT] = SeatConfig(prompt=settings.prompt, policy=agent, answers=settings.answers, tools=settings.tools)
    rows = []
    stated: list[float] = []
    owner: list[int] = []
    with TemporaryDirectory() as folder:
        engine = Engine(
            context=context_rule(settings.context),
            seats=seats,
            lockstep=True,
            concurrency=concurrency,
            pictures=PictureFolder(Path(folder)),
        )
        played = (trajectory for trajectory in engine.run(agent, jobs) if trajectory.seat == FIRST_SEAT)
        for number, trajectory in enumerate(played):
            name = (number_of(trajectory.id), trajectory.attempt, number_of(trajectory.seat))
            for segment in segments(trajectory):
                noise: list[float] = []
                for place in range(segment.start, segment.stop):  # the engine names the noise of each turn
                    noise += auditor.noise((*name, place), len(trajectory.turns[place].completion.ids))
                rows.append((segment.ids, segment.sampled, noise, segment.pictures))
                stated += [value for value, own in zip(segment.logprobs, segment.sampled, strict=True) if own]
                owner.append(number)
        rescored = auditor.rescore(rows) if rows else []
    return weigh(np.array(stated), rescored, owner, temperature=settings.temperature, precision=precision)


@dataclass
class RecordedPolicy:
    """A policy that gives the recorded answers, after checking that the audited policy could give them here."""

    auditor: Auditor | None  # None: a seat whose policy is not audited
    turns: Mapping[tuple[int, ...], RecordedTurn]  # by the name of the sampling noise
    limit: int | None  # tokens per answer
    _: KW_ONLY
    answers: AnswerFormat = "plain"
    name: str = "recorded"
    version: int = 0
    wants: frozenset[str] = frozenset()
    latest: tuple[int, ...] = ()  # noise name of the latest answer

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation from the record."""
        return [self._answer(conversation) for conversation in conversations]

    def count(self, messages: Sequence[Message]) -> int:
        """Return the tokens of messages rendered from nothing.

        A seat without an auditor counts enough to cause a summary where the record has one next.
        """
        if self.auditor is not None:
            return len(self.auditor.policy.prompt(Conversation(messages=tuple(messages)))[0])
        *name, number = self.latest
        following = self.turns.get((*name, number + 1))
        return MANY if following is not None and following.action is None else 0

    def use_pictures(self, pictures: Mapping[str, bytes]) -> None:
        """Let the audited policy look up pictures in `pictures`."""
        if self.auditor is not None:
            self.auditor.policy.use_pictures(pictures)

    def session(self) -> SimpleSession:
        """Return a session that answers at once."""
        return SimpleSession(self)

    def _answer(self, conversation: Conversation) -> Completion:
        self.latest = conversation.noise
        turn = self.turns.get(conversation.noise)
        if turn is None:  # the record ends here, so the policy's context must be full
            if self.auditor is not None:
                used = _tokens_before(*self.auditor.policy.prompt(conversation), conversation)
                if used < self.auditor.policy.context:
                    raise SubmissionError(
                        f"an episode was stopped for a full context, but its {used} tokens are less than this "
                        f"policy's {self.auditor.policy.context}"
                    )
            return Completion(text="", finish="context")
        text = turn.words if turn.words is not None else turn.action or ""
        pictures: tuple[Picture, ...] = ()
        thinking = ""
        if self.auditor is not None:
            _check_answer(self.auditor, turn, text, conversation, limit=self.limit)
            if turn.action is not None and (meant := action_of(text, self.answers)) != turn.action:
                raise SubmissionError(f"the action of {text[:40]!r} is {meant[:40]!r}, not {turn.action[:40]!r}")
            thinking, _ = self.auditor.text(turn.prompt, turn.ids)
            pictures = self.auditor.policy.pictures(conversation, turn.prompt, fresh=turn.fresh)
        return Completion(
            text=text,
            thinking=thinking,
            prompt_ids=turn.prompt,
            ids=turn.ids,
            logprobs=turn.logprobs,
            entropy=turn.entropy,
            finish=turn.finish,
            fresh=turn.fresh,
            pictures=pictures,
        )


def _check_answer(
    auditor: Auditor, turn: RecordedTurn, text: str, conversation: Conversation, *, limit: int | None
) -> None:
    """Raise SubmissionError unless the ids follow this conversation, spell the answer, and end where they must."""
    if not turn.ids:
        raise SubmissionError(f"the answer {text[:40]!r} has no token ids to score")
    if (highest := max(turn.ids)) >= auditor.vocabulary:
        raise SubmissionError(f"{text[:40]!r} has the token id {highest}; this policy has {auditor.vocabulary:,} ids")
    if (list(turn.prompt), turn.fresh) != auditor.policy.prompt(conversation):
        raise SubmissionError(f"the ids before {text[:40]!r} are not the conversation as this policy renders it")
    _, spelt = auditor.text(turn.prompt, turn.ids)
    if spelt != text:
        raise SubmissionError(f"the ids of {text[:40]!r} spell {spelt[:40]!r}")
    count, room = len(turn.ids), auditor.policy.context - _tokens_before(turn.prompt, turn.fresh, conversation)
    endings = {"stop": (count, count), "length": (None, limit), "context": (None, room)}
    if (auditor.end(turn.ids), count) != endings.get(turn.finish):
        raise SubmissionError(f"the answer {text[:40]!r} does not end as this policy ends one ({turn.finish})")


def _tokens_before(prompt: Sequence[int], fresh: bool, conversation: Conversation) -> int:
    """Return the tokens of a segment before an answer."""
    spoken = () if fresh else conversation.spoken
    return len(prompt) + sum(len(completion.prompt_ids) + len(completion.ids) for completion in spoken)
