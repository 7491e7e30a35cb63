"""Trajectories as rows of tokens: a Segment runs from one `fresh` turn to the next and takes one forward pass.

Masks follow from the field a token stands in. Every sampled token of an episode and its forks is a loss token in
exactly one segment of one trajectory: the turns a fork shares belong to its parent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from lmgym.types import Picture, Trajectory, pictures_in

Prefix = Literal["own", "every"]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Turns `start` to `stop` (exclusive) of a trajectory; all sequences but `pictures` have one entry per token."""

    trajectory: Trajectory
    number: int  # position among the segments of the trajectory
    start: int
    stop: int
    ids: tuple[int, ...]
    sampled: tuple[bool, ...]  # to train: sampled by the policy, not part of the parent
    given: tuple[bool, ...]  # part of an answer that was not sampled: only SFT terms train on it
    turn: tuple[int, ...]  # number of the turn where sampled or given, else -1
    logprobs: tuple[float, ...]  # as sampled; 0 elsewhere
    entropy: tuple[float, ...]  # nats, as sampled; 0 elsewhere
    pictures: tuple[Picture, ...] = ()  # by position in `ids`

    def __len__(self) -> int:
        """Return the number of tokens."""
        return len(self.ids)

    @property
    def version(self) -> int:
        """Oldest version of the weights that sampled the segment."""
        return min(turn.completion.version for turn in self.trajectory.turns[self.start : self.stop])


def segments(trajectory: Trajectory, *, prefix: Prefix = "own") -> list[Segment]:
    """Cut a trajectory where its turns are fresh; segments without a token to train on are left out.

    With `prefix="every"` the turns shared with the parent are trained in the fork as well. Turns without ids have no
    tokens here: `LocalPolicy.encode` gives them ids.
    """
    turns = trajectory.turns
    first = trajectory.forked_at if prefix == "own" else 0  # turn to train
    starts = [0, *(number for number, turn in enumerate(turns) if turn.fresh and number), len(turns)]
    kept: list[Segment] = []
    for start, stop in pairwise(starts):
        ids: list[int] = []
        sampled: list[bool] = []
        given: list[bool] = []
        of_turn: list[int] = []
        logprobs: list[float] = []
        entropy: list[float] = []
        for number, turn in enumerate(turns[start:stop], start):
            completion = turn.completion
            prompt_size, size, own = len(completion.prompt_ids), len(completion.ids), number >= first
            ids += (*completion.prompt_ids, *completion.ids)
            sampled += [False] * prompt_size + [own and turn.kind != "given"] * size
            given += [False] * prompt_size + [own and turn.kind == "given"] * size
            of_turn += [-1] * prompt_size + [number if own else -1] * size
            logprobs += [0.0] * prompt_size + list(completion.logprobs or [0.0] * size)
            entropy += [0.0] * prompt_size + list(completion.entropy or [0.0] * size)
        if not any(sampled) and not any(given):
            continue
        segment = Segment(
            trajectory=trajectory,
            number=len(kept),
            start=start,
            stop=stop,
            ids=tuple(ids),
            sampled=tuple(sampled),
            given=tuple(given),
            turn=tuple(of_turn),
            logprobs=tuple(logprobs),
            entropy=tuple(entropy),
            pictures=pictures_in(turn.completion for turn in turns[start:stop]),
        )
        kept.append(segment)
    return kept


def joined(first: Segment, second: Segment) -> Segment:
    """Join two segments into one with the position of the first."""
    return replace(
        first,
        stop=second.stop,
        ids=first.ids + second.ids,
        sampled=first.sampled + second.sampled,
        given=first.given + second.given,
        turn=first.turn + second.turn,
        logprobs=first.logprobs + second.logprobs,
        entropy=first.entropy + second.entropy,
        pictures=first.pictures + tuple(p._replace(start=len(first) + p.start) for p in second.pictures),
    )
