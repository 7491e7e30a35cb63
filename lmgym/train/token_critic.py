"""A critic of single tokens: it learns from the episodes of a batch, and can bend the logits of a policy.

The state that follows a sampled token is the one before the next sampled token of its episode: across the words of the
environment, which cost no discount, and across segments. Where an episode was cut, the state after its last observation
follows; where it was done, nothing does. Where it was cut and the observation is not there, or did not fit, what
followed the last token is unknown: it is left out, and the state before it is the one that follows the rest.
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
from lmgym.train.parts.credit import chained
from lmgym.train.ranks import added
from lmgym.train.schedule import StageProgress
from lmgym.train.services import Services
from lmgym.train.update import minibatches

LOGITS = 1 << 26  # values of a head over the vocabulary that are made at once
DONE = -1


@dataclass(frozen=True, kw_only=True)
class Chain:
    """The trained tokens of some episodes, N of them, in the order they were said; then the ends of those cut, E."""

    states: Tensor  # (N + E, H) before each token, and after the last observation, by the network that learns
    slow: Tensor  # (N + E, H) the same by its target
    behaviour: Tensor  # (E, V) what the policy would say at each end, as probabilities
    ids: Tensor  # (N,)
    reward: Tensor  # (N,)
    following: Tensor  # (N,) which of the states comes next; DONE where none does


def links(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
    """Where the trained tokens stand among B T places (N,), what follows each (N,) and which rows end cut (E,).

    What follows is the number of a trained token, N + e for the end of cut row e, or DONE.
    """
    places = chained(batch)
    row = places // batch.mask.shape[1]
    episode = batch.episode[row]
    cut = batch.cut.nonzero()[:, 0]
    end_of = torch.full((int(batch.episode.max()) + 1,), DONE, device=places.device)
    end_of[batch.episode[cut]] = torch.arange(len(cut), device=places.device) + len(places)
    following = torch.arange(1, len(places) + 1, device=places.device)
    last = torch.ones_like(places, dtype=torch.bool)
    last[:-1] = episode[1:] != episode[:-1]
    return places, torch.where(last, end_of[episode], following), cut


def foreseen(batch: Batch) -> Batch:
    """The batch without the last trained token of each episode that was cut at something it does not show.

    Its row ends before that token. The state behind it is none that a token was ever judged in, so its value would be
    what the heads began with; and the token's own target is not known without it.
    """
    rows = torch.arange(len(batch), device=batch.mask.device)
    unseen = batch.cut & (batch.turn[rows, batch.lengths - 1] >= 0)
    column = torch.arange(batch.mask.shape[1], device=batch.mask.device)
    trained = torch.where(batch.mask, column, -1).amax(1)
    end = torch.where(trained < 0, batch.lengths - 1, trained)
    out = unseen[:, None] & (column >= end[:, None])
    return replace(
        batch,
        ids=batch.ids.masked_fill(out, 0),
        attention=batch.attention & ~out,
        mask=batch.mask & ~out,
        turn=batch.turn.masked_fill(out, -1),
        reward=batch.reward.masked_fill(out, 0.0),
        weight=batch.weight.masked_fill(out, 0.0),
        media=None if batch.media is None else batch.media.before(torch.where(unseen, end, batch.lengths).tolist()),
    )


class TokenCritic(Critic):
    """Fits heads over the vocabulary to the tokens of a batch; the base of those that say by which loss."""

    def __init__(
        self,
        services: Services,
        net: Estimator[Any],
        trunk: Trunk,
        *,
        beta: float,
        steps: int = 1,
        centred: bool = False,
    ) -> None:
        """`beta` is how much Q weighs in logits; a batch is passed over once, in `steps` optimiser steps.

        Heads that are `centred` begin at the mean return of the first batch.
        """
        self.uncentred = centred  # and no batch was seen
        self.services, self.net, self.trunk = services, net, trunk
        self.beta, self.steps = beta, steps
        usual = 4096 if services.policy.device.type == "cpu" else 32_768
        self.tokens = max(256, min(usual, LOGITS // len(head_of(services.policy.model))))  # padded, of a pass

    @abstractmethod
    def losses(self, chain: Chain) -> tuple[Tensor, Mapping[str, Tensor]]:
        """The loss of each token and figures of it, all (N,)."""

    @abstractmethod
    def quality(self, states: Tensor) -> Tensor:
        """Q (R, V) of every token after states (R, H) of the target, as answers are guided by it."""

    def learn(self, batch: Batch, progress: StageProgress, *, seed: Sequence[int]) -> Mapping[str, float]:
        """Optimiser steps on the batch; the means of what was seen."""
        if self.uncentred:
            self.begin_at(float(batch.returns().mean()))
        before, batch = int(batch.mask.sum()), foreseen(batch)
        tokens = int(batch.mask.sum())
        counts = {"critic_tokens": float(tokens), "unseen_cuts": float(before - tokens)}
        if not tokens:
            return counts
        ranks, sums, norms = self.services.ranks, dict[str, float](), list[float]()
        for part in minibatches(batch, self.steps, seed=[*seed, 0]):
            for rows in ranks.share(micro_batches(part.lengths, self.tokens // ranks.size, part.episode)):
                loss, figures = self.losses(self.chain(part.rows(rows).to(self.trunk.device)))
                torch.autograd.backward(loss.sum() / part.mask.sum().to(loss))
                for name, values in {"critic_loss": loss, **figures}.items():
                    sums[name] = sums.get(name, 0.0) + float(values.detach().double().sum())
            norms.append(self.net.step(ranks))
        means = {name: total / tokens for name, total in added(ranks.gathered([sums])).items()}
        return {**means, "critic_gradient_norm": sum(norms) / len(norms), **counts}

    def begin_at(self, value: float) -> None:
        """Have all values begin at `value`."""
        for net in (self.net.online, self.net.slow):
            for head in net.heads():
                nn.init.constant_(head[-1].bias, value)
        self.uncentred = False

    def chain(self, batch: Batch) -> Chain:
        """The tokens of a batch with their states."""
        places, following, cut = links(batch)
        ends = cut * batch.mask.shape[1] + batch.lengths[cut] - 1
        at = torch.cat([places - 1, ends])  # the state before a token is the one after the token before it
        states = self.trunk(batch.ids, batch.attention, batch.media).flatten(0, 1)[at]
        with torch.no_grad():
            slow = states if self.trunk.model is None else self.slow(batch)[at]
        return Chain(
            states=states,
            slow=slow,
            behaviour=self.behaviour(batch, cut),
            ids=batch.ids.flatten()[places],
            reward=batch.reward.flatten()[places],
            following=following,
        )

    def slow(self, batch: Batch) -> Tensor:
        """States (B T, H) by the target."""
        found: Tensor = self.net.slow.trunk(batch.ids, batch.attention, batch.media)
        return found.flatten(0, 1)

    def behaviour(self, batch: Batch, cut: Tensor) -> Tensor:
        """The policy's probabilities (E, V) after the last token of the rows `cut`; only some losses want them."""
        return torch.empty(len(cut), 0, device=cut.device)

    def guide(self, policy: LocalPolicy) -> AbstractContextManager[None]:
        """Have the policy answer by its log-probabilities plus beta Q."""
        return policy.adjusted(self.adjust, second=self.net.slow.trunk.model)

    def guide_on(self, policy: LocalPolicy) -> None:
        """The same for good."""
        policy.adjust_by(self.adjust, second=self.net.slow.trunk.model)

    def adjust(self, hidden: Tensor, logits: Tensor) -> Tensor:
        """Log-probabilities plus beta Q (R, V), where the last of `hidden` (R, H) are states of the target."""
        own = hidden[:, -self.trunk.width :].float()
        return torch.log_softmax(logits.float(), -1) + self.beta * self.quality(own)

    def state_dict(self) -> dict[str, Any]:
        """Weights, targets and optimiser."""
        return {**self.net.state_dict(), "uncentred": self.uncentred}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.net.load_state_dict(state)
        self.uncentred = state["uncentred"]
