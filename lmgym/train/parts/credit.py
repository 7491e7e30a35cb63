"""Credit that looks ahead: rewards and values of tokens become advantages, along the sampled tokens of an episode.

What follows a sampled token is the next sampled one of its episode (each seat has its own): across the words of the
environment, which neither decay nor earn, and across the segments that a context makes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any, Literal

import torch
from torch import Tensor

from lmgym.errors import RecipeError
from lmgym.train.batch import Batch
from lmgym.train.interfaces import Credit

Level = Literal["token", "turn", "both"]  # what a step of the estimate is; both: over turns, then within each


def chained(batch: Batch) -> Tensor:
    """Where the trained tokens stand among B T places, episode by episode, in the order they were said; (N,)."""
    rows = torch.argsort(batch.episode * (int(batch.segment.max()) + 1) + batch.segment, stable=True)
    row, column = batch.mask[rows].nonzero(as_tuple=True)
    return rows[row] * batch.mask.shape[1] + column


def estimates(reward: Sequence[float], value: Sequence[float], *, boot: float, gamma: float, lam: float) -> list[float]:
    """Generalised advantages of the steps of one episode; `boot` is the value of the state after the last of them."""
    found, later, following = [0.0] * len(value), 0.0, boot
    for t in range(len(value) - 1, -1, -1):
        later = reward[t] + gamma * following - value[t] + gamma * lam * later
        found[t], following = later, value[t]
    return found


def gae(batch: Batch, *, gamma: float, lam: float, level: Level = "token", turn_gamma: float = 1.0) -> Tensor:
    """Generalised advantages (B, T), 0 off the trained tokens; `gamma` and `lam` are of a step of that level.

    turn: a turn earns what its tokens do, its state is that before its first token, and all its tokens share its
    advantage. both: turns are chained by `turn_gamma` from last token to last token, and what comes of a turn is the
    reward of the last token in a chain of its own (bi-level GAE of RAGEN, with turns told by their number).
    """
    if not batch.mask.any():
        return torch.zeros_like(batch.value)
    places = chained(batch)
    columns = [x.flatten()[places].tolist() for x in (batch.reward.double(), batch.value.double(), batch.turn)]
    boots = torch.zeros(int(batch.episode.max()) + 1, dtype=torch.float64).index_add_(
        0, batch.episode.cpu(), batch.boot.cpu().double()
    )
    episodes = batch.episode[places // batch.mask.shape[1]].tolist()
    found: list[float] = []
    for number, start, stop in _runs(episodes):
        reward, value, turn = (column[start:stop] for column in columns)
        boot = float(boots[number])
        if level == "token":
            found += estimates(reward, value, boot=boot, gamma=gamma, lam=lam)
        elif level == "turn":
            found += _by_turn(reward, value, turn, boot=boot, gamma=gamma, lam=lam)
        else:
            found += _by_both(reward, value, turn, boot=boot, gamma=gamma, lam=lam, turn_gamma=turn_gamma)
    advantage = torch.zeros(batch.mask.numel(), dtype=torch.float64)
    advantage[places.cpu()] = torch.tensor(found, dtype=torch.float64)
    return advantage.view(batch.mask.shape).to(batch.value)


def _by_turn(
    reward: Sequence[float], value: Sequence[float], turn: Sequence[int], *, boot: float, gamma: float, lam: float
) -> list[float]:
    """Advantages of the tokens of an episode, those of a turn the same."""
    turns = list(_runs(turn))
    earned = [sum(reward[start:stop]) for _, start, stop in turns]
    states = [value[start] for _, start, _ in turns]
    of_turns = estimates(earned, states, boot=boot, gamma=gamma, lam=lam)
    return [each for each, (_, start, stop) in zip(of_turns, turns, strict=True) for _ in range(start, stop)]


def _by_both(
    reward: Sequence[float],
    value: Sequence[float],
    turn: Sequence[int],
    *,
    boot: float,
    gamma: float,
    lam: float,
    turn_gamma: float,
) -> list[float]:
    """Advantages of the tokens of an episode: a turn's last token is paid what its turn is worth to the episode."""
    turns = list(_runs(turn))
    last = [stop - 1 for _, _, stop in turns]
    high = estimates([reward[t] for t in last], [value[t] for t in last], boot=boot, gamma=turn_gamma, lam=lam)
    found: list[float] = []
    for (_, start, stop), above in zip(turns, high, strict=True):
        paid = [*reward[start : stop - 1], above + value[stop - 1]]
        found += estimates(paid, value[start:stop], boot=0.0, gamma=gamma, lam=lam)
    return found


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Number, start and stop of each run of equal numbers."""
    start = 0
    for number, run in groupby(numbers):
        stop = start + sum(1 for _ in run)
        yield number, start, stop
        start = stop


def judged(batch: Batch, level: Level) -> Tensor:
    """The tokens before which a state is valued: all that are trained, or the first of each turn; (B, T) bool."""
    if level != "turn":
        return batch.mask
    new = torch.ones_like(batch.mask)
    new[:, 1:] = batch.turn[:, 1:] != batch.turn[:, :-1]
    return batch.mask & new


def whiten(advantage: Tensor, mask: Tensor, *, floor: float = 0.0) -> Tensor:
    """Advantages (B, T) with mean 0 and (sample) deviation 1 over the tokens of `mask`, and 0 elsewhere.

    A deviation below `floor` is taken for that: where all went alike, what is left is noise, and not blown up. A single
    token has no deviation; less its mean it is 0.
    """
    values = advantage[mask]
    if len(values) < 2:
        return torch.zeros_like(advantage)
    return ((advantage - values.mean()) / (values.std().clamp(min=floor) + 1e-8)) * mask


def beside_same_state(batch: Batch) -> Tensor:
    """What an answer's episode earned from there on, less the mean of its group's answers to the same words; (B, T).

    The state is what was shown since the answer before (Feng et al. 2025, GiGPO: the anchor states of a group), a row's
    first words whole. An answer that nobody else of its (group, seat) gave to these words gets 0.
    """
    found = torch.zeros_like(batch.reward, dtype=torch.float64)
    states: dict[tuple[int, int, tuple[int, ...]], list[tuple[int, slice, float]]] = defaultdict(list)
    earned: dict[int, float] = defaultdict(float)  # from an answer on, by episode
    order = torch.argsort(batch.episode * (int(batch.segment.max()) + 1) + batch.segment, descending=True)
    for row in order.tolist():
        answers = [(turn, start, stop) for turn, start, stop in _runs(batch.turn[row].tolist()) if turn >= 0]
        ids, episode = batch.ids[row].tolist(), int(batch.episode[row])
        for number in range(len(answers) - 1, -1, -1):
            _, start, stop = answers[number]
            earned[episode] += float(batch.reward[row, start:stop].sum())
            shown = ids[answers[number - 1][2] if number else 0 : start]
            if bool(batch.mask[row, start:stop].any()):
                key = int(batch.group[row]), int(batch.seat[row]), tuple(shown)
                states[key].append((row, slice(start, stop), earned[episode]))
    for members in states.values():
        mean = sum(later for _, _, later in members) / len(members)
        for row, place, later in members:
            found[row, place] = later - mean
    return found * batch.mask


def penalize_invalid(advantage: Tensor, batch: Batch, invalid_penalty: float) -> Tensor:
    """Advantages (B, T), where an answer was no action never above 0, and there less by `invalid_penalty`.

    An episode's return does not tell which of its turns went wrong: one that ends well would praise its slips as well,
    and a slip that can be tried again would grow frequent.
    """
    return torch.where(batch.invalid & batch.mask, advantage.clamp(max=0.0) - invalid_penalty, advantage)


def within_groups(credit: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Mark a credit as one that compares the tries of a group: it must not be whitened across groups afterwards.

    `partial` and `functools.wraps` keep the mark; any other function around a credit has to be marked anew.
    """
    vars(credit)["within_groups"] = True
    return credit


def compares_groups(credit: Credit) -> bool:
    """Whether a credit is marked so; one that wraps another is asked for it, whatever its arguments are bound to."""
    inner: Any = credit
    while hasattr(inner, "func"):
        inner = inner.func
    return getattr(inner, "within_groups", False)


def whitened(credit: Credit, *, floor: float = 0.0) -> Credit:
    """A credit, whitened over the batch. Refused where it is marked as one that has compared within groups."""
    if compares_groups(credit):
        raise RecipeError(
            "whitening after group normalisation mixes tasks: the tries of an easy task would change sign; "
            "leave one of the two out"
        )

    def white(batch: Batch) -> Tensor:
        return whiten(credit(batch), batch.mask, floor=floor)

    return white
