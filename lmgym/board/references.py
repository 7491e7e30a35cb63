"""Reference entries, against which every table is read: null, random and oracle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path

from lmgym.board import entry as entries
from lmgym.board.entry import REFERENCES, PolicyRecord
from lmgym.board.store import BoardStore
from lmgym.board.submit import Signature, build
from lmgym.env.registry import find, specs
from lmgym.errors import InstanceError, MissingExtra, PolicyError
from lmgym.evaluation.protocol import Protocol, protocol, ranked
from lmgym.policy.base import Policy
from lmgym.rollout.engine import Engine

OnSkipped = Callable[[str, str], object]  # called with a task or reference, and the reason


def select_tasks(names: Sequence[str]) -> list[str]:
    """Return the ids of the named tasks, a folder's name standing for all its tasks; all ranked tasks if none is."""
    if not names:
        return [spec.id for spec in ranked()]
    named = [find(name) for name in names]
    folders = {spec.package for spec, name in zip(named, names, strict=True) if name == spec.name}
    return [spec.id for spec in specs().values() if spec in named or (spec.package in folders and not spec.part_of)]


def play_missing(
    store: BoardStore, tasks: Sequence[str], load: Callable[[str], Policy], on_skipped: OnSkipped
) -> Iterator[Path]:
    """Play the references that the board lacks on `tasks` by the protocol, and yield their entries."""
    for task in tasks:
        try:
            rules = protocol(task)
        except (InstanceError, MissingExtra) as error:
            on_skipped(task, str(error))
            continue
        for name in REFERENCES:
            if store.path(rules.task, name).exists():
                continue
            path = play(store, rules, name, load(name))
            if path is None:
                on_skipped(f"{name} on {rules.task}", "the task has none")
            else:
                yield path


def play(store: BoardStore, rules: Protocol, name: str, policy: Policy) -> Path | None:
    """Play a reference by the protocol and write its entry; return None where the task has no oracle."""
    try:
        trajectories = list(Engine().run(policy, rules.jobs()))
    except (PolicyError, InstanceError) as error:
        if name == "oracle" and "no oracle" in str(error):
            return None
        raise
    signature = Signature(
        name=name,
        title=REFERENCES[name],
        authors=("lmgym",),
        date=date.today().isoformat(),
        policy=PolicyRecord(name=name, kind=name),  # type: ignore[arg-type]  # the names of REFERENCES are kinds
        settings={"seed": 0},
    )
    return entries.write(store.entries, *build(trajectories, signature))


def markdown_table(store: BoardStore, tasks: Iterable[str]) -> str:
    """Return the Markdown table of the references' verified scores with 95 % intervals; a dash where there is none."""
    rows = [f"| id | {' | '.join(REFERENCES)} |", "|---" * (1 + len(REFERENCES)) + "|"]
    for task in tasks:
        scores = [_score(store, task, name) for name in REFERENCES]
        if any(scores):
            rows.append(f"| `{task}` | {' | '.join(score or '–' for score in scores)} |")
    return "\n".join(rows)


def _score(store: BoardStore, task: str, name: str) -> str:
    path = store.path(task, name)
    verdict = store.verdict(entries.read(path)) if path.exists() else None
    return f"{verdict.score.mean:.3f} [{verdict.score.low:.3f}, {verdict.score.high:.3f}]" if verdict else ""
