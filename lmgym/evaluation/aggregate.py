"""Figures over several tasks (Agarwal et al. 2021): interquartile mean, probability of improvement, profiles.

Their intervals come from the bootstrap stratified by task: runs of a task are drawn again where each task has several
(training seeds), else the instances of its single run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from lmgym.evaluation.stats import TAIL, Array, Interval, resamples

DRAWS = 2000

Run = Array  # mean score of each instance
Sample = Sequence[Run]  # the runs on a task


def interquartile_mean(scores: Array) -> npt.NDArray[np.float64]:
    """Mean of the middle half of the last axis: scipy's trimmed mean at 25 %."""
    from scipy.stats import trim_mean

    return np.asarray(trim_mean(scores, 0.25, axis=-1))


def aggregate(
    samples: Sequence[Sample], statistic: Callable[[Array], npt.NDArray[np.float64]], *, seed: int = 0
) -> Interval:
    """`statistic` over the last axis of all runs' mean scores (…, runs x tasks), with its stratified interval."""
    if len({len(runs) for runs in samples}) != 1:
        raise ValueError(f"each task must have as many runs; got {[len(runs) for runs in samples]}")
    found = float(statistic(np.concatenate([_means(runs) for runs in samples])))
    drawn = statistic(np.concatenate(_drawn(samples, seed), axis=1))
    return _interval(found, drawn)


def improvement(before: Sequence[Sample], after: Sequence[Sample], *, seed: int = 0) -> Interval:
    """Chance that a run of `after` beats one of `before` on a task drawn from all; a tie is half a win."""
    if len(before) != len(after):
        raise ValueError(f"{len(before)} tasks and {len(after)} do not pair up")
    found = np.mean([_beats(_means(new), _means(old)) for old, new in zip(before, after, strict=True)])
    pairs = zip(_drawn(before, seed), _drawn(after, seed), strict=True)
    return _interval(float(found), np.mean([_beats(new, old) for old, new in pairs], axis=0))


def profile(samples: Sequence[Sample], thresholds: Sequence[float], *, seed: int = 0) -> list[Interval]:
    """Share of runs and tasks with a mean score above each threshold."""
    return [aggregate(samples, partial(_above, low), seed=seed) for low in thresholds]


def _above(low: float, scores: Array) -> npt.NDArray[np.float64]:
    return np.asarray((scores > low).mean(-1))


def _means(runs: Sample) -> Array:
    return np.array([float(np.mean(run)) for run in runs])


def _drawn(samples: Sequence[Sample], seed: int) -> list[Array]:
    """Resampled mean scores of each task, (draws, runs); the same draws for samples of the same sizes."""
    several = all(len(runs) > 1 for runs in samples)
    drawn = []
    for task, runs in enumerate(samples):
        if several:
            picks = np.random.default_rng([seed, task]).integers(len(runs), size=(DRAWS, len(runs)))
            drawn.append(_means(runs)[picks])
        else:
            weights = resamples(len(runs[0]), seed=seed + task, draws=DRAWS)
            drawn.append(np.concatenate([block @ np.stack(runs, axis=1) for block in weights]))
    return drawn


def _beats(new: Array, old: Array) -> npt.NDArray[np.float64]:
    """Share of pairs of runs, over the last axes, in which the new one is better."""
    ahead = new[..., :, None] - old[..., None, :]
    return np.asarray(((ahead > 0) + 0.5 * (ahead == 0)).mean((-2, -1)))


def _interval(found: float, drawn: Array) -> Interval:
    low, high = np.quantile(drawn, [TAIL, 1 - TAIL])
    return Interval(found, min(found, float(low)), max(found, float(high)), "stratified bootstrap")
