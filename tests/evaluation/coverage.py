"""Coverage of intervals in simulated evaluations; `python -m tests.evaluation.coverage` prints the table.

An instance's chance of success is drawn from a beta distribution whose spread gives the share of variance that lies
between instances (the intraclass correlation), its tries from that chance.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np

from lmgym.evaluation.stats import Interval, bootstraps, student, unit, wilson

EVALUATIONS = 2000
ICC = 0.35
TRIES = 4


def solved(instances: int, success: float, *, tries: int = TRIES, icc: float = ICC, seed: int = 0):
    """Outcomes 0 or 1 of simulated evaluations; (evaluations, instances, tries)."""
    noise = np.random.default_rng([seed, instances, round(1000 * success), tries])
    whole = 1 / icc - 1
    chance = noise.beta(success * whole, (1 - success) * whole, size=(EVALUATIONS, instances, 1))
    return (noise.random((EVALUATIONS, instances, tries)) < chance).astype(np.float64)


def share(intervals: list[Interval], truth: float) -> float:
    """Return the share of intervals that contain the true value."""
    return float(np.mean([interval.low <= truth <= interval.high for interval in intervals]))


def coverage(instances: int, success: float, **more) -> dict[str, float]:
    """Return the share of evaluations in which each kind of interval contains the true success."""
    outcomes = solved(instances, success, **more)
    tries = outcomes.shape[2]
    names = np.repeat(np.arange(instances), tries).tolist()
    kinds = {
        "unclustered": [wilson(one.sum(), one.size) for one in outcomes],
        "stated": [unit(one.ravel(), names) for one in outcomes],
        "t": [student(one.mean(1), bounds=(0.0, 1.0)) for one in outcomes],
        "bootstrap": bootstraps(outcomes.mean(2).T, bounds=(0.0, 1.0)),
    }
    return {name: share(intervals, success) for name, intervals in kinds.items()}


def main() -> None:
    kinds = ("unclustered", "stated", "t", "bootstrap")
    lines = [f"| instances | tries | between | success | {' | '.join(kinds)} |", f"|{'---|' * 8}"]
    settings = [
        *product((50, 200), [(4, 0.35)], (0.02, 0.05, 0.2, 0.5, 0.8)),
        *product((50, 200), [(8, 0.6)], (0.02, 0.05, 0.2)),
    ]
    for instances, (tries, icc), success in settings:
        shares = coverage(instances, success, tries=tries, icc=icc)
        figures = " | ".join(f"{100 * shares[name]:.1f}" for name in kinds)
        lines.append(f"| {instances} | {tries} | {icc} | {success} | {figures} |")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
