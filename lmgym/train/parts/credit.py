"""Credit assignment: turn the rewards and values of sampled tokens into advantages.

The successor of a sampled token is the next sampled token of its episode, separately for each seat. Tokens that the
environment wrote in between are skipped: they neither discount nor earn. Segment boundaries are skipped as well.
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

Level = Literal["token", "turn", "both"]  # the steps of the estimate; both: first over turns, then within each turn
Decay = float | Callable[[int], float]  # lambda, or its function of the number of an episode's trained tokens


def token_order(batch: Batch) -> Tensor:
    """Return the flat positions (in B x T) of the trained tokens, episode by episode in the order sampled; (N,)."""
    rows = torch.argsort(batch.episode * (int(batch.segment.max()) + 1) + batch.segment, stable=True)
    row, column = batch.mask[rows].nonzero(as_tuple=True)
    return rows[row] * batch.mask.shape[1] + column


def estimates(reward: Sequence[float], value: Sequence[float], *, boot: float, gamma: float, lam: float) -> list[float]:
    """Return the generalised advantages of one episode's steps; `boot` is the value of the state after the last."""
    advantages, later, following = [0.0] * len(value), 0.0, boot
    for t in range(len(value) - 1, -1, -1):
        later = reward[t] + gamma * following - value[t] + gamma * lam * later
        advantages[t], following = later, value[t]
    return advantages


def length_adaptive(tokens: int, *, alpha: float) -> float:
    """Return lambda = 1 - 1 / (alpha `tokens`), and at least 0, for an episode of that many tokens (VAPO)."""
    return max(0.0, 1.0 - 1.0 / (alpha * tokens))


def gae(
    batch: Batch,
    *,
    gamma: float,
    lam: Decay,
    level: Level = "token",
    turn_gamma: float = 1.0,
) -> Tensor:
    """Return generalised advantages (B, T), 0 on untrained tokens; `gamma` and `lam` apply per step of `level`.

    turn: the reward of a turn is the sum over its tokens, its state is the one before its first token, and all its
    tokens get the same advantage. both: bi-level GAE (RAGEN). Turns are discounted by `turn_gamma` from last token to
    last token; the advantage of a turn is then the reward of its last token in an estimate within the turn.
    """
    if not batch.mask.any():
        return torch.zeros_like(batch.value)
    positions = token_order(batch)
    columns = [x.flatten()[positions].tolist() for x in (batch.reward.double(), batch.value.double(), batch.turn)]
    boots = torch.zeros(int(batch.episode.max()) + 1, dtype=torch.float64).index_add_(
        0, batch.episode.cpu(), batch.boot.cpu().double()
    )
    episodes = batch.episode[positions // batch.mask.shape[1]].tolist()
    advantages: list[float] = []
    for number, start, stop in _runs(episodes):
        reward, value, turn = (column[start:stop] for column in columns)
        boot, decay = float(boots[number]), lam(stop - start) if callable(lam) else lam
        if level == "token":
            advantages += estimates(reward, value, boot=boot, gamma=gamma, lam=decay)
        elif level == "turn":
            advantages += _by_turn(reward, value, turn, boot=boot, gamma=gamma, lam=decay)
        else:
            advantages += _by_both(reward, value, turn, boot=boot, gamma=gamma, lam=decay, turn_gamma=turn_gamma)
    advantage = torch.zeros(batch.mask.numel(), dtype=torch.float64)
    advantage[positions.cpu()] = torch.tensor(advantages, dtype=torch.float64)
    return advantage.view(batch.mask.shape).to(batch.value)


def _by_turn(
    reward: Sequence[float], value: Sequence[float], turn: Sequence[int], *, boot: float, gamma: float, lam: float
) -> list[float]:
    """Return the advantages of an episode's tokens, equal within each turn."""
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
    """Return the advantages of an episode's tokens; the last token of a turn is rewarded with the turn's advantage."""
    turns = list(_runs(turn))
    last = [stop - 1 for _, _, stop in turns]
    high = estimates([reward[t] for t in last], [value[t] for t in last], boot=boot, gamma=turn_gamma, lam=lam)
    advantages: list[float] = []
    for (_, start, stop), above in zip(turns, high, strict=True):
        paid = [*reward[start : stop - 1], above + value[stop - 1]]
        advantages += estimates(paid, value[start:stop], boot=0.0, gamma=gamma, lam=lam)
    return advantages


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Yield number, start and stop of each run of equal numbers."""
    start = 0
    for number, run in groupby(numbers):
        stop = start + sum(1 for _ in run)
        yield number, start, stop
        start = stop


def valued_tokens(batch: Batch, level: Level) -> Tensor:
    """Mark the tokens whose preceding state gets a value: all trained ones, or the first of each turn; (B, T) bool."""
    if level != "turn":
        return batch.mask
    new = torch.ones_like(batch.mask)
    new[:, 1:] = batch.turn[:, 1:] != batch.turn[:, :-1]
    return batch.mask & new


def whiten(advantage: Tensor, mask: Tensor, *, floor: float = 0.0) -> Tensor:
    """Return advantages (B, T) with mean 0 and sample deviation 1 over the tokens of `mask`, and 0 elsewhere.

    Deviations below `floor` are replaced by `floor`, so that noise is not amplified when all returns are alike. A
    single token has no deviation and becomes 0.
    """
    values = advantage[mask]
    if len(values) < 2:
        return torch.zeros_like(advantage)
    return ((advantage - values.mean()) / (values.std().clamp(min=floor) + 1e-8)) * mask


def beside_same_state(batch: Batch) -> Tensor:
    """Return each answer's reward to go, minus the mean of its group's answers in the same state; (B, T).

    The state is the tokens since the previous answer, or since the start of the row (Feng et al. 2025, GiGPO: the
    anchor states of a group). Answers in a state that no other answer of the same (group, seat) shares get 0.
    """
    advantage = torch.zeros_like(batch.reward, dtype=torch.float64)
    states: dict[tuple[int, int, tuple[int, ...]], list[tuple[int, slice, float]]] = defaultdict(list)
    earned: dict[int, float] = defaultdict(float)  # from an answer on, by episode
    order = torch.argsort(batch.episode * (int(batch.segment.max()) + 1) + batch.segment, descending=True)
    for row in order.tolist():
        answers = [(turn, start, stop) for turn, start, stop in _runs(batch.turn[row].tolist()) if turn >= 0]
        ids, episode = batch.ids[row].tolist(), int(batch.episode[row])
        for number in range(len(answers) - 1, -1, -1):
            _, start, stop = answers[number]
            earned[episode] += float(batch.reward[row, start:stop].sum())
            observation = ids[answers[number - 1][2] if number else 0 : start]
            if bool(batch.mask[row, start:stop].any()):
                key = int(batch.group[row]), int(batch.seat[row]), tuple(observation)
                states[key].append((row, slice(start, stop), earned[episode]))
    for members in states.values():
        mean = sum(later for _, _, later in members) / len(members)
        for row, tokens, later in members:
            advantage[row, tokens] = later - mean
    return advantage * batch.mask


def penalize_invalid(advantage: Tensor, batch: Batch, invalid_penalty: float) -> Tensor:
    """Return advantages (B, T), capped at 0 on invalid actions and lowered there by `invalid_penalty`.

    The return of an episode does not say which turn went wrong. Without the cap, a successful episode reinforces its
    invalid actions as well, and those that can be retried become more frequent.
    """
    return torch.where(batch.invalid & batch.mask, advantage.clamp(max=0.0) - invalid_penalty, advantage)


def within_groups(credit: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Mark a credit function that compares the attempts of a group: it must not be whitened across groups.

    `partial` and `functools.wraps` keep the mark; any other wrapper has to set it again.
    """
    vars(credit)["within_groups"] = True
    return credit


def compares_groups(credit: Credit) -> bool:
    """Return True if a credit function, or the one inside its `partial`s, is marked by `within_groups`."""
    inner: Any = credit
    while hasattr(inner, "func"):
        inner = inner.func
    return getattr(inner, "within_groups", False)


def whitened(credit: Credit, *, floor: float = 0.0) -> Credit:
    """Return the credit function with whitening over the batch; raise RecipeError if it compares within groups."""
    if compares_groups(credit):
        raise RecipeError(
            "whitening after group normalisation mixes tasks: attempts at an easy instance would change sign; "
            "leave one of the two out"
        )

    def white(batch: Batch) -> Tensor:
        return whiten(credit(batch), batch.mask, floor=floor)

    return white


def own_returns(batch: Batch) -> Tensor:
    """Return each episode's return on all its tokens, for episodes whose return is an advantage already; (B, T)."""
    return (batch.returns()[batch.episode][:, None] * batch.mask).to(batch.reward)


def covariance_clipped(credit: Credit, *, share: float, low: float, high: float) -> Credit:
    """Return the credit function without the advantage of some tokens that move with their log-probs (Clip-Cov).

    Of the tokens whose (log-prob - mean) (advantage - mean) is between `low` and `high`, a random `share` of all
    trained tokens gets 0 and thereby no gradient (Cui et al. 2025). The log-probs are those before the update; the draw
    depends on the version of the weights.
    """

    def clipped(batch: Batch) -> Tensor:
        advantage, mask = credit(batch), batch.mask
        logprobs, values = batch.logprobs[mask].double(), advantage[mask].double()
        covariance = (logprobs - logprobs.mean()) * (values - values.mean())
        within = ((covariance >= low) & (covariance <= high)).nonzero()[:, 0].cpu()
        chance = torch.Generator().manual_seed(int(batch.version.max()))
        chosen = within[torch.randperm(len(within), generator=chance)[: round(share * len(values))]]
        kept = torch.ones(len(values), dtype=torch.bool).index_fill(0, chosen, value=False)
        return advantage.masked_scatter(mask, torch.where(kept.to(values.device), values, 0.0).to(advantage))

    return within_groups(clipped) if compares_groups(credit) else clipped
