"""Seconds and memory of verifying 1,000 ALFWorld and 1,000 Wordle episodes: `python -m tests.board.speed`."""

from __future__ import annotations

import os
import resource
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lmgym.board import submit
from lmgym.board import verify as board
from lmgym.board.entry import write
from lmgym.evaluation.protocol import Protocol, protocol
from lmgym.policy.load import load_policy
from lmgym.rollout.engine import Engine
from tests.board.forge import signature

CASES = (("alfworld", "random", 1000, 1), ("alfworld", "oracle", 1000, 1), ("wordle", "random", 91, 11))


def measure(rules: Protocol, policy: str) -> tuple[int, int, float]:
    """Episodes, turns and seconds of one verification."""
    submit.protocol = board.protocol = lambda task: rules  # type: ignore[assignment]
    entry, episodes = submit.build(Engine().run(load_policy(policy), rules.jobs()), signature())
    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), entry, episodes)
        begun = time.perf_counter()
        verdict = board.verify(path)
        seconds = time.perf_counter() - begun
    assert verdict.mark == "verified"
    return len(episodes), sum(verdict.outcomes.turns), seconds


def main() -> None:
    table = Table("task", "played by", "episodes", "turns", "seconds")
    for task, policy, instances, tries in CASES:
        rules = replace(protocol(task), instances=instances, tries=tries)
        episodes, turns, seconds = measure(rules, policy)
        table.add_row(task, policy, f"{episodes:,}", f"{turns:,}", f"{seconds:.1f}")
    cores = len(os.sched_getaffinity(0))
    mine, child = (resource.getrusage(who).ru_maxrss / 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    console = Console()
    console.print(table)
    console.print(
        f"{cores} cores, load {os.getloadavg()[0]:.1f}; peak memory {mine:.0f} MB, of a worker {child:.0f} MB"
    )


if __name__ == "__main__":
    main()
