"""A trajectory as rows of tokens: a Segment is what one forward pass scores, from one `fresh` turn to the next.

Masks follow from the field a token stands in. Every sampled token of an episode and its forks is a loss token in
exactly one segment of one trajectory: the turns a fork shares are its parent's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from lmgym.types import Picture, Trajectory, pictures_in

Prefix = Literal["own", "every"]


@dataclass(frozen=True, kw_only=True)
class Segment:
    """Turns `start` to `stop` (exclusive) of a trajectory; sequences but `pictures` have one entry a token."""

    trajectory: Trajectory
    number: int  # among the segments of the trajectory
    start: int
    stop: int
    ids: tuple[int, ...]
    sampled: tuple[bool, ...]  # to be trained: sampled by the policy, and not the parent's
    given: tuple[bool, ...]  # an answer nobody sampled: only SFT terms train on it
    turn: tuple[int, ...]  # number of the turn where sampled or given, else -1
    logprobs: tuple[float, ...]  # as sampled; 0 elsewhere
    entropy: tuple[float, ...]  # nats, as sampled; 0 elsewhere
    pictures: tuple[Picture, ...] = ()  # by their places among `ids`

    def __len__(self) -> int:
        """Tokens."""
        return len(self.ids)

    @property
    def version(self) -> int:
        """Of the weights that spoke, the oldest of the segment."""
        return min(turn.completion.version for turn in self.trajectory.turns[self.start : self.stop])


def segments(trajectory: Trajectory, *, prefix: Prefix = "own") -> list[Segment]:
    """Cut a trajectory where its turns are fresh; parts without a token to train on are left out.

    With `prefix="every"` the turns shared with the parent are trained in the fork as well. Turns without ids have no
    tokens here: `LocalPolicy.encode` gives them theirs.
    """
    turns = trajectory.turns
    first = trajectory.forked_at if prefix == "own" else 0  # turn to train
    starts = [0, *(number for number, turn in enumerate(turns) if turn.fresh and number), len(turns)]
    cut = [_segment(trajectory, start, stop, first) for start, stop in pairwise(starts) if stop > first]
    kept = [segment for segment in cut if any(segment.sampled) or any(segment.given)]
    return [replace(segment, number=number) for number, segment in enumerate(kept)]


def _segment(trajectory: Trajectory, start: int, stop: int, first: int) -> Segment:
    ids: list[int] = []
    sampled: list[bool] = []
    given: list[bool] = []
    of_turn: list[int] = []
    logprobs: list[float] = []
    entropy: list[float] = []
    for number, turn in enumerate(trajectory.turns[start:stop], start):
        said = turn.completion
        shown, spoke, own = len(said.prompt_ids), len(said.ids), number >= first
        ids += (*said.prompt_ids, *said.ids)
        sampled += [False] * shown + [own and turn.kind != "given"] * spoke
        given += [False] * shown + [own and turn.kind == "given"] * spoke
        of_turn += [-1] * shown + [number if own else -1] * spoke
        logprobs += [0.0] * shown + list(said.logprobs or [0.0] * spoke)
        entropy += [0.0] * shown + list(said.entropy or [0.0] * spoke)
    return Segment(
        trajectory=trajectory,
        number=0,
        start=start,
        stop=stop,
        ids=tuple(ids),
        sampled=tuple(sampled),
        given=tuple(given),
        turn=tuple(of_turn),
        logprobs=tuple(logprobs),
        entropy=tuple(entropy),
        pictures=pictures_in(turn.completion for turn in trajectory.turns[start:stop]),
    )


def joined(first: Segment, second: Segment) -> Segment:
    """Two segments as one, which has the place of the first."""
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
