"""Instances that nobody could pick: drawn from a seed whose digest was published before it was told.

They are of a split that everybody can train on, so that they are not unseen: the draw shows that a score is not of
chosen instances, tries or actions. Of a policy that declares training on that split they would show nothing.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lmgym.board.history import Event, committed
from lmgym.board.verdict import Verdict
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol, trains_on
from lmgym.evaluation.stats import Array, by_instance, unit
from lmgym.types import Job, Trajectory

MOST = 10_000  # fresh instances that are thought of
LEAST = 10  # of them: with fewer a score of 0 says little, and with these one of 0.27 is found out at POWER
SHORTEST = 16  # characters of a secret: shorter ones are found by trying
ALPHA = 0.01
POWER = 0.8  # with which a policy must be found out that earns HALF of what the entry does
HALF = 0.5


def digest(task: str, secret: str) -> str:
    """What is published of a secret beforehand. Raises SubmissionError for one that could be guessed."""
    if len(secret) < SHORTEST:
        raise SubmissionError(f"a hidden seed has at least {SHORTEST} characters; this one has {len(secret)}")
    return hashlib.sha256(f"lmgym fresh split of {task}: {secret}".encode()).hexdigest()


def jobs(
    rules: Protocol, secret: str, count: int, events: Sequence[Event], *, trained_on: Sequence[str] = ()
) -> list[Job]:
    """Episodes on instances drawn from the secret out of the task's largest split.

    Raises SubmissionError where its digest was not published, the split is too small to draw from, or the entry
    declares that its policy was trained on it.
    """
    if committed(events, rules.task, digest(rules.task, secret)) is None:
        raise SubmissionError(f"no digest of this seed was published for {rules.task}: lmgym board commit comes first")
    split, size = max(rules.spec.splits.items(), key=lambda item: item[1])
    if size < 10 * count or split == rules.split:
        raise SubmissionError(f"{rules.task} has no split to draw {count} fresh instances from")
    if (rules.spec, split) in [trains_on(stated) for stated in trained_on]:
        raise SubmissionError(
            f"fresh instances of {rules.task} are of its split {split}, on which this policy was trained: "
            "score the ids again"
        )
    chance = np.random.default_rng(int(hashlib.sha256(secret.encode()).hexdigest(), 16))
    indices = np.sort(chance.choice(size, count, replace=False))
    seeds = chance.integers(1 << 31, size=count)
    return [
        Job(task=rules.task, split=split, index=int(index), seed=int(seed), id=f"fresh-{index}", group=f"fresh-{index}")
        for index, seed in zip(indices, seeds, strict=True)
    ]


def needed(verdict: Verdict) -> int:
    """Fresh instances from which a policy is found out that earns half the entry's score, with POWER, tested at ALPHA.

    Fewer show nothing by not differing. By normal approximation, the variance of a score in [0, 1] being at most
    mean x (1 - mean). Raises SubmissionError where the entry itself is too small for any number to be enough.
    """
    from scipy.stats import norm

    mean, count = verdict.score.mean, len(set(verdict.outcomes.index))
    if mean == 0:
        return LEAST  # nothing is lower, and what is higher is soon seen
    low = HALF * mean
    reach, found = float(norm.isf(ALPHA / 2)), float(norm.ppf(POWER))
    for fresh in range(LEAST, MOST + 1):
        null = math.sqrt(mean * (1 - mean) * (1 / count + 1 / fresh))
        other = math.sqrt(mean * (1 - mean) / count + low * (1 - low) / fresh)
        if reach * null + found * other <= mean - low:
            return fresh
    raise SubmissionError(
        f"a score of {mean:.3f} on {count} instances cannot be told from half of it by fresh ones: score the ids again"
    )


def check_count(verdict: Verdict, count: int) -> None:
    """Raise SubmissionError where `count` fresh instances would show nothing by not differing."""
    if count < (least := needed(verdict)):
        raise SubmissionError(
            f"{count} fresh instances tell a score of {verdict.score.mean:.3f} from half of it too rarely: "
            f"at least {least} are needed (power {POWER:g} at {ALPHA:g})"
        )


def compare(verdict: Verdict, played: Sequence[Trajectory], **told: Any) -> dict[str, Any]:
    """The fresh mean beside the entry's, over instances, after what is to be `told` of who played.

    Raises SubmissionError where it is another beyond chance, lower or higher: then another policy played.
    """
    old, _ = by_instance(verdict.outcomes.score, verdict.outcomes.index)
    new, _ = by_instance([each.score for each in played], [each.index for each in played])
    check_count(verdict, len(new))
    found = unit(new, range(len(new)))
    p = _p(new, old)
    if p < ALPHA:
        side = "below" if found.mean < verdict.score.mean else "above"
        raise SubmissionError(
            f"on {len(new)} fresh instances the policy scores {found.mean:.3f} [{found.low:.3f}, {found.high:.3f}], "
            f"{side} the entry's {verdict.score.mean:.3f} (p = {p:.2g})"
        )
    return {**told, "instances": len(new), "score": found.mean, "low": found.low, "high": found.high, "p": p}


def _p(new: Array, old: Array) -> float:
    """Two-sided p that new scores are as the old: Fisher's exact test for 0 and 1, else that of Mann and Whitney."""
    from scipy.stats import fisher_exact, mannwhitneyu

    both = np.concatenate([new, old])
    if np.ptp(both) == 0:
        return 1.0
    if np.isin(both, (0.0, 1.0)).all():
        table = [[int((each == 1).sum()), int((each == 0).sum())] for each in (new, old)]
        return float(fisher_exact(table).pvalue)
    return float(mannwhitneyu(new, old, alternative="two-sided").pvalue)
