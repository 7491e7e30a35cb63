"""Whether figures of ids under a policy are those of its own words: log-probs, surprise, and what the noise drew.

Two computations of one policy differ a little: in float32 by the sums that batches of another make-up round, in 16 bits
by whole steps of logits, which move a log-probability by tenths and change the order of what is nearly as likely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lmgym.errors import SubmissionError

Array = npt.NDArray[np.float64]

LARGEST_Z = 4.0  # of the surprisal over all tokens; a true policy exceeds it once in 16,000 entries
ENOUGH = 10.0  # variance, nats squared, from which the sum counts as normal
ALPHA = 1e-4  # chance of refusing a true policy by its episodes
MISSED = 0.01  # of a true policy's tokens, at most, that the board's noise does not draw on other hardware
LEVELS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8)  # at which episodes are counted whose tokens were not drawn


@dataclass(frozen=True, kw_only=True)
class Precision:
    """How far two computations of one policy may be apart, in nats."""

    mean: float  # of log-probabilities, over all tokens
    most: float  # of any
    tie: float  # of the likeliest token and another that may come before it


FULL = Precision(mean=1e-3, most=1e-3, tie=1e-3)  # float32; six digits are written
HALF = Precision(mean=3e-2, most=1.0, tie=0.25)  # weights in 16 bits


class ScoredTokens(Protocol):
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


def judged(
    stated: Array, found: Sequence[ScoredTokens], owner: Sequence[int], *, heat: float, precision: Precision
) -> dict[str, Any]:
    """Hold figures of segments, each of an episode `owner`, and the `stated` log-probabilities against a policy."""
    if not len(stated):
        raise SubmissionError("this entry has no token ids: there is nothing to score again")
    if heat == 0:
        return _greedy(stated, found, owner, precision)
    _compare(stated, np.concatenate([each.logprobs for each in found]), precision)
    surprise = _surprise(found, owner)
    return {"tolerance": precision.mean, **surprise, "drawn": drawn(found, owner)}


def drawn(found: Sequence[ScoredTokens], owner: Sequence[int]) -> float:
    """Share of the tokens that the board's noise draws: then there were no other tries to choose from."""
    missed = [each.drawn == 0 for each in found]
    share = 1 - float(np.concatenate(missed).mean())
    strange, where = _too_many(missed, owner)
    if strange:
        raise SubmissionError(
            f"the board's noise draws {share:.1%} of these tokens, and in {where} too few: they are of another try "
            "than that which the protocol has (seed 0, lmgym eval --standard)"
        )
    return round(share, 6)


def _too_many(missed: Sequence[npt.NDArray[np.bool_]], owner: Sequence[int]) -> tuple[bool, str]:
    """Whether more tokens are missed than by a true policy on other hardware; and in how many episodes at 0.01.

    Each episode's misses have a binomial p of their own, since a short one would not be seen among the tokens of long
    ones; then at each level there may not be more episodes of so small a p than chance has.
    """
    from scipy.stats import binom

    drawn = np.zeros((max(owner) + 1, 2))  # tokens, and of them missed, by episode
    np.add.at(drawn, owner, [(len(each), float(each.sum())) for each in missed])
    tokens, count = drawn[drawn[:, 0] > 0].T
    chances = binom.sf(count - 1, tokens, MISSED)
    strange = [int((chances <= level * (1 + 1e-9)).sum()) for level in LEVELS]
    rare = [float(binom.sf(number - 1, len(tokens), level)) for number, level in zip(strange, LEVELS, strict=True)]
    rare.append(float(binom.sf(count.sum() - 1, tokens.sum(), MISSED)))
    return min(rare) < ALPHA / len(rare), f"{strange[1]} of {len(tokens)} episodes"


def _compare(stated: Array, found: Array, precision: Precision) -> None:
    apart = np.abs(stated - found)
    if not np.isfinite(found).all():
        raise SubmissionError(f"{int((~np.isfinite(found)).sum())} tokens are cut off by this sampling (top-k, top-p)")
    for value, limit, words in (
        (apart.max(), precision.most, "by up to"),
        (apart.mean(), precision.mean, "on average by"),
    ):
        if float(value) > limit:
            raise SubmissionError(
                f"{int((apart > limit).sum())} of {len(apart)} log-probs are not this policy's: "
                f"they differ {words} {value:.3g}, over the tolerance of {limit:g}"
            )


def _surprise(found: Sequence[ScoredTokens], owner: Sequence[int]) -> dict[str, Any]:
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


def _greedy(stated: Array, found: Sequence[ScoredTokens], owner: Sequence[int], precision: Precision) -> dict[str, Any]:
    """Each token is the likeliest, and certain: the distribution that it was drawn from has no other."""
    missed = [each.gap > precision.mean for each in found]
    gap = np.concatenate([each.gap for each in found])
    strange, _ = _too_many(missed, owner)
    if strange or float(gap.max()) > precision.tie:
        raise SubmissionError(
            f"{int(np.concatenate(missed).sum())} of {len(gap)} tokens are not the policy's likeliest, as "
            "temperature 0 asks"
        )
    if wrong := int((stated != 0).sum()):
        raise SubmissionError(
            f"{wrong} of {len(stated)} log-probs are not 0, which they are at temperature 0; got {stated.min():.3g}"
        )
    return {"tolerance": precision.mean, "tokens": len(gap), "greedy": True}
