"""Entries of the players that every table is read against: nothing, chance, and one who knows everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path

from lmgym.board import entry as entries
from lmgym.board.entry import PolicyRecord
from lmgym.board.store import BoardStore
from lmgym.board.submit import Signature, build
from lmgym.errors import InstanceError, MissingExtra, PolicyError
from lmgym.evaluation.protocol import Protocol, protocol
from lmgym.policy.base import Policy
from lmgym.rollout.engine import Engine

TITLES = {"null": "Says nothing", "random": "Acts at random", "oracle": "Knows everything"}

Told = Callable[[str, str], object]  # which, and what became of it


def lacking(store: BoardStore, tasks: Sequence[str], told: Told) -> Iterator[tuple[Protocol, str]]:
    """References that the board has no entry of, task by task; tasks that cannot be played here are told."""
    for task in tasks:
        try:
            rules = protocol(task)
        except (InstanceError, MissingExtra) as error:
            told(task, str(error))
            continue
        for name in TITLES:
            if not store.path(rules.task, name).exists():
                yield rules, name


def play(store: BoardStore, rules: Protocol, name: str, policy: Policy) -> Path | None:
    """Play a reference by the protocol and write its entry; None where the task has no such player."""
    try:
        trajectories = list(Engine().run(policy, rules.jobs()))
    except (PolicyError, InstanceError) as error:
        if name == "oracle" and "no oracle" in str(error):
            return None
        raise
    signature = Signature(
        name=name,
        title=TITLES[name],
        authors=("lmgym",),
        date=date.today().isoformat(),
        policy=PolicyRecord(name=name, kind=name),  # type: ignore[arg-type]  # the names of TITLES are kinds
        settings={"seed": 0},
    )
    return entries.write(store.entries, *build(trajectories, signature))
