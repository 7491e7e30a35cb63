"""pass@k and pass^k: whether any, and whether every, of k tries of an instance succeeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmgym.evaluation.stats import Array, Interval, bootstraps


def any_of(successes: Array, tries: Array, k: int) -> Array:
    """Chance that k of an instance's tries, drawn without replacement, hold a success: 1 - C(n - c, k) / C(n, k).

    Unbiased for the chance that any of k fresh tries succeeds (Chen et al. 2021); all arrays are (instances,).
    """
    return 1.0 - all_of(tries - successes, tries, k)


def all_of(successes: Array, tries: Array, k: int) -> Array:
    """Chance that k of an instance's tries, drawn without replacement, all succeed: C(c, k) / C(n, k).

    Unbiased for the chance that all of k fresh tries succeed (tau-bench's pass^k); all arrays are (instances,).
    Raises ValueError where an instance has fewer than k tries: no estimate of it is unbiased.
    """
    if k < 1 or (len(tries) and k > tries.min()):
        raise ValueError(f"k must be from 1 to the number of tries, {int(min(tries, default=0))}; got {k}")
    product = np.ones(len(tries))
    for n in range(k):
        product *= np.maximum(successes - n, 0.0) / (tries - n)
    return product


def passes(successes: Array, tries: Array, ks: Sequence[int]) -> list[tuple[Interval, Interval]]:
    """pass@k and pass^k for each of `ks`, with intervals of the bootstrap over instances."""
    columns = [kind(successes, tries, k) for k in ks for kind in (any_of, all_of)]
    if not columns:
        return []
    found = bootstraps(np.stack(columns, axis=1), bounds=(0.0, 1.0))
    return list(zip(found[::2], found[1::2], strict=True))
