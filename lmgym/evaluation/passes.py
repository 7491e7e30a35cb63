"""pass@k and pass^k: the probabilities that any, and that all, of k tries of an instance succeed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmgym.evaluation.stats import Array, Interval, bootstraps


def any_of(successes: Array, tries: Array, k: int) -> Array:
    """Return the probability that any of k of an instance's n tries succeeds: 1 - C(n - c, k) / C(n, k), c successes.

    Unbiased for k fresh tries (Chen et al. 2021); all arrays are (instances,).
    """
    return 1.0 - all_of(tries - successes, tries, k)


def all_of(successes: Array, tries: Array, k: int) -> Array:
    """Return the probability that all of k of an instance's n tries succeed: C(c, k) / C(n, k), c successes.

    Unbiased for k fresh tries (tau-bench's pass^k); all arrays are (instances,). Raises ValueError if an instance has
    fewer than k tries, for which no unbiased estimate exists.
    """
    if k < 1 or (len(tries) and k > tries.min()):
        raise ValueError(f"k must be from 1 to the number of tries, {int(min(tries, default=0))}; got {k}")
    product = np.ones(len(tries))
    for n in range(k):
        product *= np.maximum(successes - n, 0.0) / (tries - n)
    return product


def passes(successes: Array, tries: Array, ks: Sequence[int]) -> list[tuple[Interval, Interval]]:
    """Return pass@k and pass^k for each of `ks`, with bootstrap intervals over instances."""
    columns = [kind(successes, tries, k) for k in ks for kind in (any_of, all_of)]
    if not columns:
        return []
    intervals = bootstraps(np.stack(columns, axis=1), bounds=(0.0, 1.0))
    return list(zip(intervals[::2], intervals[1::2], strict=True))
