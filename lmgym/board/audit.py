"""Whether a policy said the recorded ids itself: prompts made and ids scored again, surprise held against entropy.

The conversations are those that the environments and the context rule make of the recorded actions, so a prompt cannot
hold what was never shown. A stranger's words under a policy's name are too surprising to it, whatever log-probs are
written beside them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lmgym.board.entry import Entry, Episode, Ply
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol as Rules
from lmgym.policy.base import Conversation, SimpleSession
from lmgym.rollout.context import Context, Full
from lmgym.rollout.engine import Engine
from lmgym.rollout.live import Part, number_of
from lmgym.rollout.picture_folder import PictureFolder
from lmgym.rollout.segments import Segment, segments
from lmgym.types import FIRST_SEAT, Completion, Message, Picture, Trajectory

Array = npt.NDArray[np.float64]
Row = tuple[  # ids of a segment, which were sampled, by what noise, and the pictures by their places
    Sequence[int], Sequence[bool], Sequence[float], tuple[Picture, ...]
]

TOLERANCE = 1e-3  # of a log-probability, in nats: float32 in batches of another make-up, and six digits written
HALF = 3e-2  # the same for weights or sampling in 16 bits
LARGEST_Z = 4.0  # of the surprisal over all tokens; a true policy exceeds it once in 16,000 entries
ENOUGH = 10.0  # variance, nats squared, from which the sum counts as normal
ALPHA = 1e-4  # chance of refusing a true policy by its episodes
MISSED = 0.01  # of a true policy's tokens, at most, that the board's noise does not draw on other hardware
MANY = 1 << 40  # tokens that are above any limit
ALONE = 64  # episodes at once, where only the agent speaks
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)  # at which episodes are counted whose tokens were not drawn


class Figures(Protocol):
    """The sampled tokens of a segment under the model, each (N,)."""

    @property
    def logprobs(self) -> Array:
        """As drawn."""

    @property
    def entropy(self) -> Array:
        """Nats."""

    @property
    def variance(self) -> Array:
        """Of the surprisal."""

    @property
    def root(self) -> Array:
        """Log of the sum of the square roots of all probabilities."""

    @property
    def gap(self) -> Array:
        """Logit of the likeliest token above that of this one."""

    @property
    def drawn(self) -> Array:
        """1 where the noise draws this token."""


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

    def see(self, pictures: Mapping[str, bytes]) -> None:
        """Look pictures up in `pictures` from here on, PNGs by digest."""

    def text(self, answer: Sequence[int]) -> str:
        """Words of an answer, without its thinking."""

    def end(self, answer: Sequence[int]) -> int | None:
        """Tokens after which the policy ends this answer by itself; None where it would go on."""

    def noise(self, name: Sequence[int], count: int) -> list[float]:
        """The first `count` draws of the stream that an answer has by its name."""

    def rescore(self, rows: Sequence[Row]) -> Sequence[Figures]:
        """Score the sampled tokens of segments."""


@dataclass
class Recorded:
    """Says what was recorded, after making sure that it answers what is asked."""

    scorer: Scorer | None  # None: of a seat whose policy nobody has
    plies: Mapping[tuple[int, ...], Ply]  # by the name of the sampling noise
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

    def see(self, pictures: Mapping[str, bytes]) -> None:
        """Let the policy look pictures up in `pictures`."""
        if self.scorer is not None:
            self.scorer.see(pictures)

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

    def _check(self, scorer: Scorer, ply: Ply, words: str, conversation: Conversation) -> None:
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
    episodes: Sequence[Episode],
    scorer: Scorer,
    rules: Rules,
    *,
    context: Context | None = None,
    tolerance: float = TOLERANCE,
) -> dict[str, Any]:
    """Hold the ids of episodes against a policy. Raises SubmissionError where it cannot have said them."""
    heat = float(entry.settings.get("temperature", 1.0))
    rows: list[Row] = []
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
        found = scorer.rescore(rows)
    if heat == 0:
        return _greedy(np.array(stated), found, tolerance)
    _compare(np.array(stated), np.concatenate([each.logprobs for each in found]), tolerance)
    surprise = _surprise(found, owner)
    return {"tolerance": tolerance, **surprise, "drawn": _drawn(found, owner)}


def _noise(scorer: Scorer, trajectory: Trajectory, segment: Segment) -> list[float]:
    """What the sampled tokens of a segment were drawn by: the engine names the noise of each turn."""
    seat = (number_of(trajectory.id), trajectory.attempt, number_of(trajectory.seat))
    turns = enumerate(trajectory.turns[segment.start : segment.stop], segment.start)
    return [draw for number, turn in turns for draw in scorer.noise((*seat, number), len(turn.completion.ids))]


def _drawn(found: Sequence[Figures], owner: Sequence[int]) -> float:
    """Share of the tokens that the board's noise draws: then there were no other tries to choose from.

    Each episode's misses have a binomial p of their own, since a short one would not be seen among the tokens of long
    ones; then at each level there may not be more episodes of so small a p than chance has.
    """
    from scipy.stats import binom

    drawn = np.zeros((max(owner) + 1, 2))  # tokens, and of them missed, by episode
    np.add.at(drawn, owner, [(len(each.drawn), float((each.drawn == 0).sum())) for each in found])
    tokens, missed = drawn[drawn[:, 0] > 0].T
    chances = binom.sf(missed - 1, tokens, MISSED)
    strange = [int((chances <= level * (1 + 1e-9)).sum()) for level in LEVELS]
    rare = [float(binom.sf(count - 1, len(tokens), level)) for count, level in zip(strange, LEVELS, strict=True)]
    rare.append(float(binom.sf(missed.sum() - 1, tokens.sum(), MISSED)))
    share = float(1 - missed.sum() / tokens.sum())
    if min(rare) < ALPHA / len(rare):
        raise SubmissionError(
            f"the board's noise draws {share:.1%} of these tokens, and in {strange[1]} of {len(tokens)} episodes too "
            "few: they are of another try than that which the protocol has (seed 0, lmgym eval --standard)"
        )
    return round(share, 6)


def _played(
    entry: Entry,
    episodes: Sequence[Episode],
    scorer: Scorer,
    rules: Rules,
    context: Context,
    pictures: PictureFolder,
) -> Iterator[Trajectory]:
    """The agent's trajectories, in order, as the engine makes them of the recorded words."""
    limit = entry.settings.get("max_tokens")
    jobs = [rules.job(each.index, each.attempt) for each in episodes]
    plies: dict[tuple[int, ...], Ply] = {}
    for job, each in zip(jobs, episodes, strict=True):
        for seat in entry.seats:
            for number, ply in enumerate(ply for ply in each.turns if ply.seat == seat):
                plies[number_of(job.id), job.attempt, number_of(seat), number] = ply
    cast = {seat: Part(policy=Recorded(None, plies, None)) for seat in entry.seats if seat != FIRST_SEAT}
    at_once = 1 if cast else ALONE  # other seats count by what the record of the one episode says
    prompt = entry.settings.get("prompt")
    cast |= {FIRST_SEAT: Part(prompt=prompt, policy=Recorded(scorer, plies, limit))}
    engine = Engine(context=context, cast=cast, lockstep=True, concurrency=at_once, pictures=pictures)
    for trajectory in engine.run(Recorded(scorer, plies, limit), jobs):
        if trajectory.seat == FIRST_SEAT:
            yield trajectory


def _compare(stated: Array, found: Array, tolerance: float) -> None:
    if not len(found):
        raise SubmissionError("this entry has no token ids: there is nothing to score again")
    apart = np.abs(stated - found)
    if not np.isfinite(found).all():
        raise SubmissionError(f"{int((~np.isfinite(found)).sum())} tokens are cut off by this sampling (top-k, top-p)")
    if float(apart.max()) > tolerance:
        raise SubmissionError(
            f"{int((apart > tolerance).sum())} of {len(apart)} log-probs are not this policy's: "
            f"they differ by up to {apart.max():.3g}, over the tolerance of {tolerance:g}"
        )


def _surprise(found: Sequence[Figures], owner: Sequence[int]) -> dict[str, Any]:
    """Hold surprisals against entropies: over all tokens, and in each episode by a bound that is exact.

    Along what a policy samples the product of p(x)^(-1/2) / sum_v p(v)^(1/2) has mean 1, so that it exceeds n / a in
    one of n episodes with a chance of at most a (Markov).
    """
    surprisal = np.concatenate([-each.logprobs for each in found])
    excess = float((surprisal - np.concatenate([each.entropy for each in found])).sum())
    variance = float(sum(each.variance.sum() for each in found))
    z = excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess) if abs(excess) > 1e-3 else 0.0
    if variance >= ENOUGH and abs(z) > LARGEST_Z:
        raise SubmissionError(
            f"these ids surprise the policy by {surprisal.mean():.3f} nats a token, its own would by "
            f"{surprisal.mean() - excess / len(surprisal):.3f} (z = {z:.1f}): it did not sample them"
        )
    episodes = len(set(owner))
    weight = np.zeros(max(owner) + 1)
    np.add.at(weight, owner, [float((-each.logprobs / 2 - each.root).sum()) for each in found])
    bound = math.log(2 * episodes / ALPHA)
    if (worst := float(weight.max())) > bound or float(weight.sum()) > math.log(2 / ALPHA):
        raise SubmissionError(
            f"the ids of an episode are too surprising for this policy to have sampled them (log-weight {worst:.1f}, "
            f"bound {bound:.1f} over {episodes} episodes)"
        )
    return {"tokens": len(surprisal), "z": round(z, 3), "worst": round(worst, 3), "bound": round(bound, 3)}


def _greedy(stated: Array, found: Sequence[Figures], tolerance: float) -> dict[str, Any]:
    """Each token is the likeliest, and certain: the distribution that it was drawn from has no other."""
    gap = np.concatenate([each.gap for each in found])
    if not len(gap):
        raise SubmissionError("this entry has no token ids: there is nothing to score again")
    if float(gap.max()) > tolerance:
        raise SubmissionError(
            f"{int((gap > tolerance).sum())} of {len(gap)} tokens are not the policy's likeliest, as temperature 0 asks"
        )
    if wrong := int((stated != 0).sum()):
        raise SubmissionError(
            f"{wrong} of {len(stated)} log-probs are not 0, which they are at temperature 0; got {stated.min():.3g}"
        )
    return {"tolerance": tolerance, "tokens": len(gap), "greedy": True}
