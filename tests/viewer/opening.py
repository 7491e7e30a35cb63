"""Seconds to open 10,000 episodes; `python -m tests.viewer.opening` prints seconds, of a run of some 290 MB."""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

from lmgym.evaluation import runner
from lmgym.policy.load import load_policy
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.types import Trajectory
from lmgym.viewer.index import listing, open_runs
from lmgym.viewer.local_server import as_json
from lmgym.viewer.search import search

EPISODES = 10_000


def played(count: int) -> list[Trajectory]:
    """Episodes of ALFWorld, with ids and figures as those of a model's answers would have."""
    kept: list[Trajectory] = []
    jobs = runner.episodes("alfworld", split="test", size=100, count=count, options={})
    runner.evaluate(load_policy("demonstrator"), jobs, engine=Engine(), keep=kept.append)
    figures = tuple(n / 7 for n in range(30))
    said = {"ids": tuple(range(30)), "logprobs": figures, "entropy": figures, "prompt_ids": tuple(range(200))}
    return [
        replace(one, turns=tuple(replace(turn, completion=replace(turn.completion, **said)) for turn in one.turns))
        for one in kept
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "episodes.jsonl"
        some = played(8)
        with path.open("w") as file:
            for number in range(EPISODES):
                file.write(episodes.dump(replace(some[number % len(some)], id=f"{number}", index=number)) + "\n")
        begun = time.perf_counter()
        runs = open_runs([path])
        as_json(listing(runs, runs[0].rows))
        opened, start = time.perf_counter(), 0
        while start is not None:
            start = search(runs, runs[0].rows, "nothing of the kind", start=start).next
        searched = time.perf_counter()
        size = path.stat().st_size / 1e6
        runs[0].close()
    sys.stdout.write(f"{EPISODES} episodes, {size:.0f} MB: opened {opened - begun:.2f} s, ")
    sys.stdout.write(f"searched {searched - opened:.2f} s\n")


if __name__ == "__main__":
    main()
