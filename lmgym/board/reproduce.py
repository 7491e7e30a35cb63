"""Reproduction: the recorded ids of a verified entry are scored again under its own weights."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from lmgym.board import entry as entries
from lmgym.board.audit import audit
from lmgym.board.entry import settings_of
from lmgym.board.evidence import FULL, HALF, Precision
from lmgym.board.verdict import Verdict
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import protocol

if TYPE_CHECKING:
    from lmgym.policy.local.policy import LocalPolicy  # imports torch


def reproduce(path: Path, verdict: Verdict, policy: LocalPolicy, *, tolerance: float | None = None) -> Verdict:
    """Score the ids of a verified entry again, and return its verdict with the result and mark. See `score_again`."""
    result = score_again(path, policy, tolerance=tolerance)
    mark = "reproduced" if verdict.mark == "verified" else verdict.mark
    return msgspec.structs.replace(verdict, audit=result, mark=mark)


def score_again(path: Path, policy: LocalPolicy, *, tolerance: float | None = None) -> dict[str, Any]:
    """Score the ids of the entry at `path` under its own policy.

    `tolerance` replaces the default for differences of log-probs, in nats. Raises SubmissionError where the weights
    are not the entry's, or the policy cannot have sampled the ids.
    """
    from lmgym.policy.local.audit import Auditor, in_fp32, weights_digest

    entry = entries.read(path)
    settings = settings_of(entry)
    if settings.tools == "native":
        raise SubmissionError("the entry states native tools, which only endpoints have; a local policy cannot match")
    check_weights_alone(policy)
    if entry.policy.weights is None:
        raise SubmissionError(f"the entry states no weights, so that {policy.name} cannot be shown to have them")
    if (digest := weights_digest(policy)) != entry.policy.weights:
        raise SubmissionError(
            f"the entry's weights are {entry.policy.weights[:16]}, those of {policy.name} are {digest[:16]}"
        )
    if in_fp32(policy):
        precision = FULL if tolerance is None else Precision(mean=tolerance, most=tolerance, tie=tolerance)
    else:
        precision = HALF if tolerance is None else replace(HALF, mean=tolerance)
    return audit(
        entry,
        list(entries.read_episodes(path)),
        Auditor(
            policy,
            temperature=settings.temperature,
            top_p=settings.top_p,
            top_k=settings.top_k,
            seed=settings.seed,
        ),
        protocol(entry.task),
        precision=precision,
    )


def check_weights_alone(policy: LocalPolicy) -> None:
    """Raise SubmissionError for a policy guided by a critic, which an entry cannot state."""
    if policy.adjust is not None:
        raise SubmissionError(f"{policy.name} is guided by a critic besides its weights, which an entry cannot state")
