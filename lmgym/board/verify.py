"""Verification: every action of an entry, played again, must earn what the entry says.

This proves that these actions earn this score on these instances. It proves nothing about who chose them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import lmgym
from lmgym.board import entry as entries
from lmgym.board.check import check_entry, check_name, checked_episodes
from lmgym.board.entry import Entry, RecordedEpisode
from lmgym.board.verdict import Level, Verdict, figures, outcomes
from lmgym.board.workers import WorkerPool, isolating
from lmgym.errors import InstanceError, SubmissionError
from lmgym.evaluation.protocol import Protocol, promise, protocol
from lmgym.types import FIRST_SEAT

Told = Callable[[int, int], object]  # episodes done, of how many


def verify(path: Path, *, workers: int | None = None, told: Told | None = None) -> Verdict:
    """Check and replay an entry.

    Raises SubmissionError at the first thing that is not as it should be, and BackendError where an environment
    breaks: then nothing is known.
    """
    found, rules = opened(path)
    level, reason = _level(rules)
    summary = _first_pass(found, rules, path)
    rows = summary["rows"] if level == "none" else _replayed(found, rules, path, level, workers=workers, told=told)
    state = figures(outcomes(rows))
    for name, claimed in (("score", found.claim.score), ("success", found.claim.success)):
        mean = math.fsum(row[name] for row in rows) / len(rows)
        if not math.isclose(claimed, mean, abs_tol=1e-6):
            raise SubmissionError(f"{found.name} claims a mean {name} of {claimed}; its episodes have {mean:.6f}")
    return Verdict(
        task=found.task,
        name=found.name,
        entry=entries.digest(found),
        promise=promise(found.task) or "",
        lmgym=lmgym.__version__,
        level=level,
        mark="reported" if level == "none" else "verified",
        reason=reason,
        cut=summary["cut"],
        cost=summary["cost"],
        tokens_in=summary["tokens_in"],
        tokens_out=summary["tokens_out"],
        **state,
    )


def opened(path: Path) -> tuple[Entry, Protocol]:
    """An entry that passes all checks of its JSON, with the protocol of its task."""
    check_name(path.name.removesuffix(".json"))
    found = entries.read(path)
    try:
        rules = protocol(found.task)
    except InstanceError as error:
        raise SubmissionError(f"no entry can be verified on {found.task[:60]!r}: {error}") from error
    if rules.task != found.task:
        raise SubmissionError(f"an entry names its task by the id {rules.task}; got {found.task!r}")
    if rules.spec.part_of:
        raise SubmissionError(f"{rules.task} is part of another task and has no table of its own")
    check_entry(found, rules, path)
    return found, rules


def _level(rules: Protocol) -> tuple[Level, str]:
    """What replaying can show of a task here, and why not more."""
    if not rules.spec.deterministic:
        return "none", "the same actions may lead elsewhere"
    if rules.spec.runs_code and not isolating():
        return "none", "actions are code, and this machine has no isolating sandbox (bubblewrap) to replay them in"
    return rules.spec.goldens, ""


def _first_pass(found: Entry, rules: Protocol, path: Path) -> dict[str, Any]:
    """Check the whole record before any action of it is played."""
    rows, costs, cut = [], [], 0
    tokens: dict[str, list[int | None]] = {"tokens_in": [], "tokens_out": []}
    for _, episode in checked_episodes(found, rules, path):
        rows.append(recorded(episode))
        costs.append(episode.cost)
        cut += episode.stop == "context"
        for name in tokens:
            tokens[name].append(getattr(episode, name))
    known = [cost for cost in costs if cost is not None]
    cost = round(math.fsum(known), 6) if len(known) == len(costs) else None
    return {"rows": rows, "cut": cut, "cost": cost, **{name: _mean(counts) for name, counts in tokens.items()}}


def _mean(counts: list[int | None]) -> float | None:
    """Of an episode; None as soon as that of one is not known."""
    known = [count for count in counts if count is not None]
    return round(sum(known) / len(known), 3) if known and len(known) == len(counts) else None


def recorded(episode: RecordedEpisode) -> dict[str, Any]:
    """What an episode says of itself."""
    mine = [ply for ply in episode.turns if ply.seat == FIRST_SEAT]
    return {
        "index": episode.index,
        "attempt": episode.attempt,
        "score": episode.score,
        "success": episode.success,
        "turns": sum(ply.action is not None for ply in mine),
        "invalid": None,
        "tokens": sum(len(ply.ids) for ply in mine),
    }


def _replayed(
    found: Entry, rules: Protocol, path: Path, level: Level, *, workers: int | None, told: Told | None
) -> list[dict[str, Any]]:
    """Outcomes of all episodes, played again, in the order of the protocol."""
    order = {"task": found.task, "split": found.split, "seats": list(found.seats), "exact": level == "exact"}
    names = list(rules.names())
    rows: dict[int, dict[str, Any]] = {}
    pool = WorkerPool(order, workers=workers, isolated=rules.spec.runs_code)
    with closing(pool.run(_lines(found, rules, path))) as answers:
        for place, answer in answers:
            if "refused" in answer:
                raise SubmissionError(str(answer["refused"]))
            index, attempt = names[place]
            rows[place] = {"index": index, "attempt": attempt, **answer["outcome"]}
            if told is not None:
                told(len(rows), len(names))
    return [rows[place] for place in range(len(names))]


def _lines(found: Entry, rules: Protocol, path: Path) -> Iterator[bytes]:
    return (line for line, _ in checked_episodes(found, rules, path))
