"""Collate trajectories into a Batch: one row per segment, padded on the right, rewards on the last token of a turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import torch
from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.policy.models.vision import Gallery, Media
from lmgym.rollout.segments import Segment, joined, segments
from lmgym.train.batch import Batch
from lmgym.types import Trajectory

Trained = Literal["sampled", "given"]  # tokens that the policy sampled, or tokens to imitate


def collate(
    trajectories: Sequence[Trajectory],
    *,
    trained: Trained = "sampled",
    ends: bool = False,
    gallery: Gallery | None = None,
) -> Batch:
    """Return the batch of all tokens `trained`; turns that a fork shares with its parent belong to the parent.

    With `ends`, rows of truncated episodes end with `final_ids`, for a critic. `gallery` holds the pictures.
    """
    cutter = ended if ends else segments
    rows = [(number, row) for number, trajectory in enumerate(trajectories) for row in cutter(trajectory)]
    if not rows:
        raise RecipeError("nothing to train on: no episode has an answer with ids")
    cuts = [row for _, row in rows]
    masks = [row.sampled if trained == "sampled" else row.given for row in cuts]
    mask = _padded(masks, torch.bool)
    lengths = torch.tensor([len(row) for row in cuts])
    zeros = torch.zeros(mask.shape)
    slips = [{n for n, turn in enumerate(r.trajectory.turns) if not turn.info.get("valid", True)} for r in cuts]
    batch = Batch(
        ids=_padded((row.ids for row in cuts), torch.long),
        attention=torch.arange(mask.shape[1]) < lengths[:, None],
        mask=mask,
        turn=_padded((row.turn for row in cuts), torch.long, fill=-1),
        invalid=_padded(([t in slip for t in row.turn] for row, slip in zip(cuts, slips, strict=True)), torch.bool),
        logprobs=_padded((row.logprobs for row in cuts), torch.float32),
        entropy=_padded((row.entropy for row in cuts), torch.float32),
        reward=_padded(_rewards(trajectories, rows, masks), torch.float32),
        value=zeros,
        quality=zeros,
        target=zeros,
        boot=torch.zeros(len(mask)),
        advantage=zeros,
        weight=mask.float(),
        reference=zeros,
        **_keys(trajectories, rows),
        media=None if gallery is None else Media(tuple(row.pictures for row in cuts), gallery),
    )
    check(batch, trajectories, trained)
    return batch


def ended(trajectory: Trajectory) -> list[Segment]:
    """Return the segments of a trajectory, with the final observation of a truncated one."""
    parts = segments(trajectory)
    final = trajectory.final_ids if trajectory.truncated else ()
    if not parts or not final or (parts[-1].stop < len(trajectory.turns) and not trajectory.final_fresh):
        return parts
    no, zero = (False,) * len(final), (0.0,) * len(final)
    end = Segment(
        trajectory=trajectory,
        number=len(parts),
        start=len(trajectory.turns),
        stop=len(trajectory.turns),
        ids=final,
        sampled=no,
        given=no,
        turn=(-1,) * len(final),
        logprobs=zero,
        entropy=zero,
        pictures=trajectory.final_pictures,
    )
    return [*parts, end] if trajectory.final_fresh else [*parts[:-1], joined(parts[-1], end)]


def _keys(trajectories: Sequence[Trajectory], rows: Sequence[tuple[int, Segment]]) -> dict[str, Tensor]:
    """Return the keys of each row: episode, segment, group and so on; each (B,)."""
    groups = {group: number for number, group in enumerate(dict.fromkeys(t.group for t in trajectories))}
    seats = {seat: number for number, seat in enumerate(dict.fromkeys(t.seat for t in trajectories))}
    numbers = {trajectory.id: number for number, trajectory in enumerate(trajectories)}
    last = {number: place for place, (number, _) in enumerate(rows)}
    cut = [last[number] == place and trajectories[number].truncated for place, (number, _) in enumerate(rows)]
    versions = [[turn.completion.version for turn in row.trajectory.turns[row.start : row.stop]] for _, row in rows]
    return {
        "episode": torch.tensor([number for number, _ in rows]),
        "segment": torch.tensor([row.number for _, row in rows]),
        "group": torch.tensor([groups[row.trajectory.group] for _, row in rows]),
        "seat": torch.tensor([seats[row.trajectory.seat] for _, row in rows]),
        "parent": torch.tensor([numbers.get(row.trajectory.parent or "", -1) for _, row in rows]),
        "forked": torch.tensor([row.trajectory.forked_at for _, row in rows]),
        "version": torch.tensor([min(of_row, default=0) for of_row in versions]),
        "cut": torch.tensor(cut),
        "stored": torch.zeros(len(rows), dtype=torch.bool),
    }


def _rewards(
    trajectories: Sequence[Trajectory], rows: Sequence[tuple[int, Segment]], masks: Sequence[Sequence[bool]]
) -> list[list[float]]:
    """Put each turn's reward on its last trained token; a turn without one uses the last before it, else the next."""
    rewards = [[0.0] * len(row) for _, row in rows]
    last: list[dict[int, tuple[int, int]]] = [{} for _ in trajectories]  # turn -> (row, column), by episode
    for row_number, ((number, row), mask) in enumerate(zip(rows, masks, strict=True)):
        last[number].update({turn: (row_number, column) for column, turn in enumerate(row.turn) if mask[column]})
    for trajectory, tokens in zip(trajectories, last, strict=True):
        for number in range(trajectory.forked_at, len(trajectory.turns) if tokens else 0):
            turn = max((turn for turn in tokens if turn <= number), default=min(tokens))
            row_number, column = tokens[turn]
            rewards[row_number][column] += trajectory.turns[number].reward
    return rewards


def _padded(rows: Iterable[Sequence[float]], dtype: torch.dtype, fill: float = 0) -> Tensor:
    parts = [torch.tensor(row, dtype=dtype) for row in rows]
    return torch.nn.utils.rnn.pad_sequence(parts, batch_first=True, padding_value=fill)


def check(batch: Batch, trajectories: Sequence[Trajectory], trained: Trained) -> None:
    """Assert the invariants of a batch with respect to its trajectories."""
    count = len(trajectories)
    assert len({trajectory.id for trajectory in trajectories}) == count, "two trajectories have one id"
    assert bool((batch.mask <= batch.attention).all()), "a padded token is trained"
    assert not bool(batch.mask[:, 0].any()), "a first token is trained, which nothing predicts"
    assert not bool(batch.reward[~batch.mask].any()), "a reward is on an untrained token"
    tokens = torch.zeros(count, dtype=torch.long).index_add_(0, batch.episode, batch.mask.sum(1)).tolist()
    earned = torch.zeros(count, dtype=torch.float64).index_add_(0, batch.episode, batch.reward.double().sum(1)).tolist()
    for number, trajectory in enumerate(trajectories):
        assert not (trajectory.terminated and trajectory.truncated), f"{trajectory.id} is terminated and truncated"
        own = trajectory.turns[trajectory.forked_at :]
        sampled = sum(len(turn.completion.ids) for turn in own if (turn.kind == "given") == (trained == "given"))
        assert tokens[number] == sampled, f"{trajectory.id}: {tokens[number]} of its {sampled} tokens are trained"
        slack = 1e-5 * (1.0 + sum(abs(turn.reward) for turn in own))
        complete = not sampled or abs(earned[number] - sum(turn.reward for turn in own)) <= slack
        assert complete, f"{trajectory.id}: {earned[number]} of its rewards are in the batch"


def turns_out(batch: Batch, trajectories: Sequence[Trajectory], turns: frozenset[tuple[str, int]]) -> Tensor:
    """Mark the tokens (B, T) of `turns`, given as (trajectory id, turn number)."""
    mask = torch.zeros_like(batch.mask)
    numbers = {trajectory.id: number for number, trajectory in enumerate(trajectories)}
    for name, turn in turns:
        if name in numbers:
            mask |= (batch.episode == numbers[name])[:, None] & (batch.turn == turn)
    return mask
