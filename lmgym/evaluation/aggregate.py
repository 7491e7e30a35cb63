"""Aggregates over tasks (Agarwal et al. 2021): interquartile mean, probability of improvement, performance profiles.

Intervals come from the bootstrap stratified by task. It resamples the runs of a task if every task has several
(training seeds), else the instances of its single run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from lmgym.evaluation.stats import TAIL, Array, Interval, resamples

DRAWS = 2000

Sample = Sequence[Array]  # the runs on a task; each is the mean score of every instance


def interquartile_mean(scores: Array) -> npt.NDArray[np.float64]:
    """Return the mean of the middle half of the last axis: scipy's trimmed mean at 25 %."""
    from scipy.stats import trim_mean

    return np.asarray(trim_mean(scores, 0.25, axis=-1))


def aggregate(
    samples: Sequence[Sample], statistic: Callable[[Array], npt.NDArray[np.float64]], *, seed: int = 0
) -> Interval:
    """Return `statistic` over the last axis of the mean scores (…, runs x tasks), with its stratified interval."""
    if len({len(runs) for runs in samples}) != 1:
        raise ValueError(f"all tasks must have the same number of runs; got {[len(runs) for runs in samples]}")
    estimate = float(statistic(np.concatenate([_means(runs) for runs in samples])))
    return _interval(estimate, statistic(np.concatenate(_resampled(samples, seed), axis=1)))


def improvement(before: Sequence[Sample], after: Sequence[Sample], *, seed: int = 0) -> Interval:
    """Return the probability that a run of `after` beats one of `before` on a random task; a tie is half a win."""
    if len(before) != len(after):
        raise ValueError(f"{len(before)} tasks and {len(after)} do not pair up")
    estimate = np.mean([_beats(_means(new), _means(old)) for old, new in zip(before, after, strict=True)])
    pairs = zip(_resampled(before, seed), _resampled(after, seed), strict=True)
    return _interval(float(estimate), np.mean([_beats(new, old) for old, new in pairs], axis=0))


def profile(samples: Sequence[Sample], thresholds: Sequence[float], *, seed: int = 0) -> list[Interval]:
    """Return the share of runs and tasks with a mean score above each threshold."""

    def above(scores: Array, threshold: float) -> npt.NDArray[np.float64]:
        return np.asarray((scores > threshold).mean(-1))

    return [aggregate(samples, partial(above, threshold=each), seed=seed) for each in thresholds]


def _means(runs: Sample) -> Array:
    return np.array([float(np.mean(run)) for run in runs])


def _resampled(samples: Sequence[Sample], seed: int) -> list[Array]:
    """Return resampled mean scores of each task, (draws, runs); samples of equal sizes share the draws."""
    several = all(len(runs) > 1 for runs in samples)
    resampled = []
    for task, runs in enumerate(samples):
        if several:
            picks = np.random.default_rng([seed, task]).integers(len(runs), size=(DRAWS, len(runs)))
            resampled.append(_means(runs)[picks])
        else:
            weights = resamples(len(runs[0]), seed=seed + task, draws=DRAWS)
            resampled.append(np.concatenate([block @ np.stack(runs, axis=1) for block in weights]))
    return resampled


def _beats(new: Array, old: Array) -> npt.NDArray[np.float64]:
    """Return the share of pairs of runs, over the last axes, in which the new one is better; a tie counts half."""
    lead = new[..., :, None] - old[..., None, :]
    return np.asarray(((lead > 0) + 0.5 * (lead == 0)).mean((-2, -1)))


def _interval(estimate: float, resampled: Array) -> Interval:
    low, high = np.quantile(resampled, [TAIL, 1 - TAIL])
    return Interval(estimate, min(estimate, float(low)), max(estimate, float(high)), "stratified bootstrap")
