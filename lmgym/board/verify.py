"""Verification: parse an entry, validate it, replay its actions, and judge the outcomes.

It proves that these actions earn this score on these instances. It does not prove who chose the actions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lmgym
from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.entry import Entry, RecordedEpisode
from lmgym.board.validate import valid_episodes, validate_entry
from lmgym.board.verdict import Level, Verdict, figures, outcomes, own_figures
from lmgym.board.workers import TIMEOUT, WorkerPool, can_isolate
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import Protocol, promise
from lmgym.types import FIRST_SEAT

if TYPE_CHECKING:
    from lmgym.env.spec import TaskSpec

OnProgress = Callable[[int, int], object]  # episodes done, and of how many


def verify(path: Path, *, workers: int | None = None, on_progress: OnProgress | None = None) -> Verdict:
    """Verify the entry whose JSON file is `path`.

    Raises SubmissionError at the first violation, and BackendError where an environment breaks: then nothing is proved.
    """
    entry = entries.read(path)
    rules = validate_entry(entry, path)
    rows, declared = summarise(valid_episodes(entry, rules, path))
    level, reason = replay_level(rules)
    if level != "none":
        names = list(rules.names())
        replayed: dict[int, dict[str, Any]] = {}
        with closing(replays(entry, rules.spec, path, workers=workers)) as answers:
            for number, answer in answers:
                if "refused" in answer:
                    raise SubmissionError(str(answer["refused"]))
                index, attempt = names[number]
                replayed[number] = {"index": index, "attempt": attempt, **answer["outcome"]}
                if on_progress is not None:
                    on_progress(len(replayed), len(names))
        rows = [replayed[number] for number in range(len(names))]
    return judge(entry, rows, declared, level=level, reason=reason)


def summarise(episodes: Iterable[RecordedEpisode]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the outcomes that the episodes of an entry state, and the fields of its verdict that replay cannot give.

    Costs and token counts are unknown as soon as one episode's is.
    """
    rows: list[dict[str, Any]] = []
    cut = 0
    declared: dict[str, list[float | None]] = {"cost": [], "tokens_in": [], "tokens_out": []}
    for episode in episodes:
        turns = [turn for turn in episode.turns if turn.seat == FIRST_SEAT]
        rows.append(
            {
                "index": episode.index,
                "attempt": episode.attempt,
                "score": episode.score,
                "success": episode.success,
                "turns": sum(turn.action is not None for turn in turns),
                "invalid": None,
                "tokens": sum(len(turn.ids) for turn in turns),
                "figures": episode.figures,
            }
        )
        cut += episode.stop == "context"
        for name, values in declared.items():
            values.append(getattr(episode, name))
    fields: dict[str, Any] = {"cut": cut}
    for name, values in declared.items():
        stated = [value for value in values if value is not None]
        total = math.fsum(stated)
        rounded = round(total, 6) if name == "cost" else round(total / len(rows), 3)
        fields[name] = rounded if len(stated) == len(rows) else None
    return rows, fields


def replay_level(rules: Protocol) -> tuple[Level, str]:
    """Return what replay can compare for a task on this machine, and the reason if that is nothing."""
    if not rules.spec.deterministic:
        return "none", "the same actions may lead elsewhere"
    if rules.spec.runs_code and not can_isolate():
        return "none", "actions are code, and this machine has no isolating sandbox (bubblewrap) to replay them in"
    return rules.spec.goldens, ""


def replays(
    entry: Entry, spec: TaskSpec, path: Path, *, workers: int | None = None
) -> Generator[tuple[int, dict[str, Any]], None, None]:
    """Replay the episodes of an entry on a task; yield their numbers and the answers of the workers as they come."""
    order = {"task": spec.id, "split": entry.split, "seats": list(entry.seats), "exact": spec.goldens == "exact"}
    pool = WorkerPool(order, workers=workers, isolated=spec.isolated, timeout=max(TIMEOUT, spec.replay_timeout))
    yield from pool.run(parsing.lines(entries.episodes_path(path)))


def judge(entry: Entry, rows: list[dict[str, Any]], declared: dict[str, Any], *, level: Level, reason: str) -> Verdict:
    """Hold an entry's claim against its outcomes and return the verdict, with the `declared` fields."""
    for name, claimed in (("score", entry.claim.score), ("success", entry.claim.success)):
        mean = math.fsum(row[name] for row in rows) / len(rows)
        if not math.isclose(claimed, mean, abs_tol=1e-6):
            raise SubmissionError(f"{entry.name} claims mean {name} {claimed}; its episodes have {mean:.6f}")
    return Verdict(
        task=entry.task,
        name=entry.name,
        entry=entries.digest(entry),
        promise=promise(entry.task) or "",
        lmgym=lmgym.__version__,
        level=level,
        mark="reported" if level == "none" else "verified",
        reason=reason,
        **declared,
        **figures(outcomes(rows)),
        figures=own_figures(rows),
    )
