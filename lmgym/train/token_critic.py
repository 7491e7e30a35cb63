"""A critic of single tokens: it learns from the episodes of a batch and can shift the logits of a policy.

The successor of a sampled token is the next sampled token of its episode; tokens of the environment and segment
boundaries in between are skipped without discount. At the end of a truncated episode the successor is the state after
the final observation; a terminated episode has none. If the final observation is missing or did not fit, the successor
of the last token is unknown: that token is dropped, and the state before it becomes the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from lmgym.policy.local.forward import head_of
from lmgym.policy.local.policy import LocalPolicy
from lmgym.train.batch import Batch, micro_batches
from lmgym.train.critics import Estimator, Trunk
from lmgym.train.interfaces import Critic
from lmgym.train.parts.credit import token_order
from lmgym.train.ranks import added
from lmgym.train.schedule import Schedule, StageProgress
from lmgym.train.services import Services
from lmgym.train.update import fitting_tokens, minibatches

LOGITS = 1 << 26  # maximum number of logits of a head computed at once
DONE = -1


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The N trained tokens of some episodes in the order sampled, then the E ends of truncated episodes.

    Tokens of equal rows share a state, so that heads read each of the S states once.
    """

    states: Tensor  # (S, H) by the online network
    slow: Tensor  # (S, H) the same by the target network
    place: Tensor  # (N + E,) of the state before each token and at each end
    behaviour: Tensor  # (E, V) next-token probabilities of the policy at each end
    ids: Tensor  # (N,)
    reward: Tensor  # (N,)
    following: Tensor  # (N,) index of the successor state; DONE if there is none


def links(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Return flat positions of the trained tokens (N,), their successors (N,) and the rows that end truncated (E,).

    A successor is the index of a trained token, N + e for the end of truncated row e, or DONE.
    """
    positions = token_order(batch)
    row = positions // batch.mask.shape[1]
    episode = batch.episode[row]
    cut = batch.cut.nonzero()[:, 0]
    end_of = torch.full((int(batch.episode.max()) + 1,), DONE, device=positions.device)
    end_of[batch.episode[cut]] = torch.arange(len(cut), device=positions.device) + len(positions)
    following = torch.arange(1, len(positions) + 1, device=positions.device)
    last = torch.ones_like(positions, dtype=torch.bool)
    last[:-1] = episode[1:] != episode[:-1]
    return positions, torch.where(last, end_of[episode], following), cut


def distinct(batch: Batch) -> tuple[Tensor, Tensor]:
    """Return the first of each set of equal rows (D,), and for every row its place among them (B,).

    Where a policy sees the newest observation alone, most rows of a batch are equal. Rows with pictures all differ.
    """
    every = torch.arange(len(batch), device=batch.ids.device)
    if batch.media is not None:
        return every, every
    texts = torch.where(batch.attention, batch.ids, -1)
    _, copy_of = torch.unique(texts, dim=0, return_inverse=True)
    first = torch.full((int(copy_of.max()) + 1,), len(batch), device=every.device)
    return first.scatter_reduce(0, copy_of, every, "amin"), copy_of


def with_known_ends(batch: Batch) -> Batch:
    """Drop the last trained token of truncated episodes whose final observation is missing, and all after it.

    The state after that token is never trained, so its value would be the initial one, and without it the token has
    no target.
    """
    rows = torch.arange(len(batch), device=batch.mask.device)
    unknown_end = batch.cut & (batch.turn[rows, batch.lengths - 1] >= 0)
    column = torch.arange(batch.mask.shape[1], device=batch.mask.device)
    trained = torch.where(batch.mask, column, -1).amax(1)
    end = torch.where(trained < 0, batch.lengths - 1, trained)
    out = unknown_end[:, None] & (column >= end[:, None])
    return replace(
        batch,
        ids=batch.ids.masked_fill(out, 0),
        attention=batch.attention & ~out,
        mask=batch.mask & ~out,
        turn=batch.turn.masked_fill(out, -1),
        reward=batch.reward.masked_fill(out, 0.0),
        weight=batch.weight.masked_fill(out, 0.0),
        media=None
        if batch.media is None
        else batch.media.before(torch.where(unknown_end, end, batch.lengths).tolist()),
    )


class TokenCritic(Critic):
    """Base of critics with heads over the vocabulary; subclasses define the loss."""

    def __init__(
        self,
        services: Services,
        net: Estimator[Any],
        trunk: Trunk,
        *,
        beta: float,
        steps: int = 1,
        schedule: Schedule,
        centred: bool = False,
    ) -> None:
        """`beta` is the weight of Q in the logits; each batch is used once, in `steps` optimiser steps.

        `schedule` gives the learning rate as a share of the network's own. With `centred` the heads start at the mean
        return of the first batch.
        """
        self.uncentred = centred  # until the first batch
        self.services, self.net, self.trunk = services, net, trunk
        self.beta, self.steps, self.schedule = beta, steps, schedule
        usual = fitting_tokens(services.policy.model, services.policy.device)
        self.tokens = max(256, min(usual, LOGITS // len(head_of(services.policy.model))))  # padded tokens of a pass

    @abstractmethod
    def losses(self, chain: Chain) -> tuple[Tensor, Mapping[str, Tensor]]:
        """Return the loss of each token and its figures, all (N,)."""

    @abstractmethod
    def quality(self, states: Tensor) -> Tensor:
        """Return Q (R, V) of every token in target states (R, H), for guidance."""

    def learn(self, batch: Batch, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Take optimiser steps on the batch and return mean figures."""
        if self.uncentred:
            self.begin_at(float(batch.returns().mean()))
        before, batch = int(batch.mask.sum()), with_known_ends(batch)
        tokens = int(batch.mask.sum())
        counts = {"critic_tokens": float(tokens), "unseen_cuts": float(before - tokens)}
        if not tokens:
            return counts
        self.net.scale_lr(self.schedule(progress))
        ranks, sums, norms = self.services.ranks, dict[str, float](), list[float]()
        for part in minibatches(batch, self.steps, seed=[*seed, 0]):
            budget = self.tokens * len(part) // len(distinct(part)[0])  # equal rows are computed once
            for rows in ranks.share(micro_batches(part.lengths, budget // ranks.size, part.episode)):
                loss, figures = self.losses(self.chain(part.rows(rows).to(self.trunk.device)))
                torch.autograd.backward(loss.sum() / part.mask.sum().to(loss))
                for name, values in {"critic_loss": loss, **figures}.items():
                    sums[name] = sums.get(name, 0.0) + float(values.detach().double().sum())
            norms.append(self.net.step(ranks))
        means = {name: total / tokens for name, total in added(ranks.gathered([sums])).items()}
        return {**means, "critic_gradient_norm": sum(norms) / len(norms), **counts}

    def begin_at(self, value: float) -> None:
        """Set the output biases of all heads to `value`."""
        for net in (self.net.online, self.net.slow):
            for head in net.heads():
                nn.init.constant_(head[-1].bias, value)
        self.uncentred = False

    def chain(self, batch: Batch) -> Chain:
        """Return the tokens of a batch with their states."""
        positions, following, cut = links(batch)
        width = batch.mask.shape[1]
        ends = cut * width + batch.lengths[cut] - 1
        at = torch.cat([positions - 1, ends])  # the state before a token is the one after the token before it
        rows, copy_of = distinct(batch)
        read = batch.rows(rows)
        at, place = torch.unique(copy_of[at // width] * read.ids.shape[1] + at % width, return_inverse=True)
        states = self.trunk(read.ids, read.attention, read.media).flatten(0, 1)[at]
        with torch.no_grad():
            slow = states if self.trunk.model is None else self.slow(read)[at]
        return Chain(
            states=states,
            slow=slow,
            place=place,
            behaviour=self.behaviour(batch, cut),
            ids=batch.ids.flatten()[positions],
            reward=batch.reward.flatten()[positions],
            following=following,
        )

    def slow(self, batch: Batch) -> Tensor:
        """Return states (B T, H) of the target network."""
        states: Tensor = self.net.slow.trunk(batch.ids, batch.attention, batch.media)
        return states.flatten(0, 1)

    def behaviour(self, batch: Batch, cut: Tensor) -> Tensor:
        """Return the policy's next-token probabilities (E, V) at the ends `cut`; empty unless a loss uses them."""
        return torch.empty(len(cut), 0, device=cut.device)

    def guide(self, policy: LocalPolicy) -> AbstractContextManager[None]:
        """Return a context in which the policy samples from its log-probabilities plus beta Q."""
        return policy.adjusted(self.adjust, second=self.net.slow.trunk.model)

    def guide_on(self, policy: LocalPolicy) -> None:
        """Make the policy sample from its log-probabilities plus beta Q from here on."""
        policy.adjust_by(self.adjust, second=self.net.slow.trunk.model)

    def adjust(self, hidden: Tensor, logits: Tensor) -> Tensor:
        """Return log-probabilities plus beta Q (R, V); the last columns of `hidden` are states of the target."""
        own = hidden[:, -self.trunk.width :].float()
        return torch.log_softmax(logits.float(), -1) + self.beta * self.quality(own)

    def state_dict(self) -> dict[str, Any]:
        """Return weights, targets and optimiser."""
        return {**self.net.state_dict(), "uncentred": self.uncentred}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Restore a checkpoint."""
        self.net.load_state_dict(state)
        self.uncentred = state["uncentred"]
