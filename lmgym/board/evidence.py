"""Statistical evidence that a policy sampled token ids itself: log-probs, surprise, and the draws of the noise.

Two computations of one policy differ a little: in float32 by rounding in batches of another composition, in 16 bits by
whole steps of logits, which move a log-probability by tenths and reorder tokens that are nearly equally likely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lmgym.errors import SubmissionError

if TYPE_CHECKING:
    from lmgym.policy.local.audit import Rescored  # imports torch

Array = npt.NDArray[np.float64]

LARGEST_Z = 4.0  # of the surprisal over all tokens; a true policy exceeds it once in 16,000 entries
ENOUGH = 10.0  # nats squared of variance, from which the sum is treated as normal
ALPHA = 1e-4  # chance of refusing a true policy by its episodes
MISSED = 0.01  # largest share of a true policy's tokens that other hardware draws differently


@dataclass(frozen=True, kw_only=True)
class Precision:
    """Largest differences between two computations of one policy, in nats."""

    mean: float  # of log-probabilities, on average over all tokens
    most: float  # of any log-probability
    tie: float  # between the likeliest token and another that may come before it


FULL = Precision(mean=1e-3, most=1e-3, tie=1e-3)  # float32; entries state six digits
HALF = Precision(mean=3e-2, most=1.0, tie=0.25)  # 16-bit weights


def weigh(
    stated: Array, segments: Sequence[Rescored], owner: Sequence[int], *, temperature: float, precision: Precision
) -> dict[str, Any]:
    """Hold rescored segments, and the log-probs `stated` for their tokens, against the policy that rescored them.

    `owner` is the episode of each segment. Raises SubmissionError where the policy cannot have sampled them.
    """
    if not len(stated):
        raise SubmissionError("this entry has no token ids to score")
    if temperature == 0:
        return _check_greedy(stated, segments, owner, precision)
    rescored = np.concatenate([each.logprobs for each in segments])
    if not np.isfinite(rescored).all():
        raise SubmissionError(f"this sampling (top-k, top-p) excludes {int((~np.isfinite(rescored)).sum())} tokens")
    distance = np.abs(stated - rescored)
    for value, limit, words in (
        (distance.max(), precision.most, "by up to"),
        (distance.mean(), precision.mean, "on average by"),
    ):
        if float(value) > limit:
            raise SubmissionError(
                f"{int((distance > limit).sum())} of {len(distance)} log-probs are not this policy's: they differ "
                f"{words} {value:.3g}; the tolerance is {limit:g}"
            )
    surprise = _check_surprise(segments, owner)
    return {"tolerance": precision.mean, **surprise, "drawn": check_draws(segments, owner)}


def check_draws(segments: Sequence[Rescored], owner: Sequence[int]) -> float:
    """Return the share of tokens that the board's noise draws. Raises SubmissionError where it draws too few.

    The noise is fixed, so that an author has no further tries to choose from.
    """
    missed = [each.drawn == 0 for each in segments]
    share = 1 - float(np.concatenate(missed).mean())
    chances = _chances(missed, owner)
    if _too_many_misses(chances):
        raise SubmissionError(
            f"the board's noise draws {share:.1%} of these tokens, and too few in {int((chances <= 0.01).sum())} of "
            f"{len(chances)} episodes: they were sampled with another seed than that of lmgym eval --standard"
        )
    return round(share, 6)


def _chances(missed: Sequence[npt.NDArray[np.bool_]], owner: Sequence[int]) -> Array:
    """Return each episode's chance that a true policy misses as many of its tokens, at a rate of MISSED."""
    from scipy.stats import binom

    counts = np.zeros((max(owner) + 1, 2))  # tokens and misses by episode
    np.add.at(counts, owner, [(len(each), float(each.sum())) for each in missed])
    tokens, misses = counts[counts[:, 0] > 0].T
    return np.asarray(binom.sf(misses - 1, tokens, MISSED), np.float64)


def _too_many_misses(chances: Array) -> bool:
    """Return True if episodes miss too many tokens, be it many episodes a few or a single one nearly all.

    The k-th smallest of n chances is at most p with probability P(Binomial(n, p) >= k) (Wilkinson, 1951). Weights
    1 / (k (k + 1)), whose sum is below 1, make one test at level ALPHA of all k.
    """
    from scipy.stats import binom

    k = np.arange(1, len(chances) + 1)
    p = np.sort(chances) * (1 + 1e-9)  # equal chances may differ in their last bits
    return bool((k * (k + 1) * binom.sf(k - 1, len(chances), np.minimum(p, 1.0))).min() < ALPHA)


def _check_surprise(segments: Sequence[Rescored], owner: Sequence[int]) -> dict[str, Any]:
    """Hold surprisals against entropies: over all tokens by a z-test, and in each episode by an exact bound.

    Along what a policy samples, the product of p(x)^(-1/2) / sum_v p(v)^(1/2) has mean 1, so that it exceeds n / a in
    any of n episodes with a chance of at most a (Markov).
    """
    surprisal = np.concatenate([-each.logprobs for each in segments])
    excess = float((surprisal - np.concatenate([each.entropy for each in segments])).sum())
    variance = float(sum(each.variance.sum() for each in segments))
    z = excess / math.sqrt(variance) if variance > 0 else math.copysign(math.inf, excess) if abs(excess) > 1e-3 else 0.0
    if variance >= ENOUGH and abs(z) > LARGEST_Z:
        raise SubmissionError(
            f"the policy did not sample these ids: they surprise it by {surprisal.mean():.3f} nats per token, its own "
            f"would by {surprisal.mean() - excess / len(surprisal):.3f} (z = {z:.1f})"
        )
    episodes = len(set(owner))
    weight = np.zeros(max(owner) + 1)
    np.add.at(weight, owner, [float((-each.logprobs / 2 - each.root).sum()) for each in segments])
    bound = math.log(2 * episodes / ALPHA)
    if (worst := float(weight.max())) > bound or float(weight.sum()) > math.log(2 / ALPHA):
        raise SubmissionError(
            f"the ids of an episode are too surprising for this policy (log-weight {worst:.1f}, bound {bound:.1f} "
            f"over {episodes} episodes): it did not sample them"
        )
    return {"tokens": len(surprisal), "z": round(z, 3), "worst": round(worst, 3), "bound": round(bound, 3)}


def _check_greedy(
    stated: Array, segments: Sequence[Rescored], owner: Sequence[int], precision: Precision
) -> dict[str, Any]:
    """Check that each token is the likeliest one and certain, as temperature 0 has it."""
    missed = [each.gap > precision.mean for each in segments]
    gap = np.concatenate([each.gap for each in segments])
    if _too_many_misses(_chances(missed, owner)) or float(gap.max()) > precision.tie:
        raise SubmissionError(
            f"{int(np.concatenate(missed).sum())} of {len(gap)} tokens are not the policy's likeliest, as "
            "temperature 0 requires"
        )
    if wrong := int((stated != 0).sum()):
        raise SubmissionError(
            f"{wrong} of {len(stated)} log-probs are not 0, as temperature 0 requires; the lowest is {stated.min():.3g}"
        )
    return {"tolerance": precision.mean, "tokens": len(gap), "greedy": True}
