"""Instances that nobody could prepare for: drawn from a seed whose digest was published before it was told."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from lmgym.board.history import Event, committed
from lmgym.board.verdict import Verdict
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol
from lmgym.evaluation.stats import Array, by_instance, unit
from lmgym.types import Job, Trajectory

SHORTEST = 16  # characters of a secret: shorter ones are found by trying
ALPHA = 0.01


def digest(task: str, secret: str) -> str:
    """What is published of a secret beforehand. Raises SubmissionError for one that could be guessed."""
    if len(secret) < SHORTEST:
        raise SubmissionError(f"a hidden seed has at least {SHORTEST} characters; this one has {len(secret)}")
    return hashlib.sha256(f"lmgym fresh split of {task}: {secret}".encode()).hexdigest()


def jobs(rules: Protocol, secret: str, count: int, events: Sequence[Event]) -> list[Job]:
    """Episodes on instances drawn from the secret out of the task's largest split.

    Raises SubmissionError where its digest was not published, or the split is too small to draw from.
    """
    if committed(events, rules.task, digest(rules.task, secret)) is None:
        raise SubmissionError(f"no digest of this seed was published for {rules.task}: lmgym board commit comes first")
    split, size = max(rules.spec.splits.items(), key=lambda item: item[1])
    if size < 10 * count or split == rules.split:
        raise SubmissionError(f"{rules.task} has no split to draw {count} fresh instances from")
    chance = np.random.default_rng(int(hashlib.sha256(secret.encode()).hexdigest(), 16))
    indices = np.sort(chance.choice(size, count, replace=False))
    seeds = chance.integers(1 << 31, size=count)
    return [
        Job(task=rules.task, split=split, index=int(index), seed=int(seed), id=f"fresh-{index}", group=f"fresh-{index}")
        for index, seed in zip(indices, seeds, strict=True)
    ]


def compare(verdict: Verdict, played: Sequence[Trajectory]) -> dict[str, Any]:
    """The fresh mean beside the entry's, over instances. Raises SubmissionError where it is lower beyond chance."""
    old, _ = by_instance(verdict.outcomes.score, verdict.outcomes.index)
    new, _ = by_instance([each.score for each in played], [each.index for each in played])
    found = unit(new, range(len(new)))
    p = _p_lower(new, old)
    if p < ALPHA:
        raise SubmissionError(
            f"on {len(new)} fresh instances the policy scores {found.mean:.3f} [{found.low:.3f}, {found.high:.3f}], "
            f"below the entry's {verdict.score.mean:.3f} (p = {p:.2g})"
        )
    return {"instances": len(new), "score": found.mean, "low": found.low, "high": found.high, "p": p}


def _p_lower(new: Array, old: Array) -> float:
    """One-sided p that new scores are no lower: Fisher's exact test for 0 and 1, else that of Mann and Whitney."""
    from scipy.stats import fisher_exact, mannwhitneyu

    if np.isin(np.concatenate([new, old]), (0.0, 1.0)).all():
        table = [[int((each == 1).sum()), int((each == 0).sum())] for each in (new, old)]
        return float(fisher_exact(table, alternative="less").pvalue)
    return float(mannwhitneyu(new, old, alternative="less").pvalue)
