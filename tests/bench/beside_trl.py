"""`make bench-trl`: steps of GRPO here and by TRL's trainer: the same model, game and number of sampled tokens.

The two take turns, each in a process of its own, round by round; a row shows medians over all timed steps. Answers
have a fixed number of tokens (the model is untrained and would not end them alike), so both sample exactly as many.
Seconds of the processor leave out what else runs on the machine; with several threads they are not those of the wall.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from tests.interop.venvs import python

HERE = Path(__file__).parent
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}
Steps = list[dict[str, Any]]


def side(script: str, interpreter: str, job: dict[str, Any]) -> Steps:
    """Return the timed steps of one run of one side."""
    done = subprocess.run(
        [interpreter, HERE / script], input=json.dumps(job), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{script} failed:\n{done.stderr[-2000:]}")
    steps: Steps = json.loads(done.stdout.splitlines()[-1])
    return steps


def rounds(job: dict[str, Any], count: int) -> tuple[Steps, Steps]:
    """Return all steps of both sides, run in turn; the side that starts a round alternates."""
    sides = [("grpo_ours.py", sys.executable), ("grpo_trl.py", str(python("trl")))]
    found: dict[str, Steps] = {name: [] for name, _ in sides}
    for turn in range(count):
        for name, interpreter in sides[:: (-1) ** turn]:
            found[name] += side(name, interpreter, job)
    ours, theirs = found["grpo_ours.py"], found["grpo_trl.py"]
    sampled = {int(step["tokens"]) for step in [*ours, *theirs]}
    expected = job["groups"] * job["group"] * job["turns"] * job["tokens"]
    if sampled != {expected}:
        raise SystemExit(f"a step must sample {expected} tokens on both sides; it sampled {sorted(sampled)}")
    return ours, theirs


def lines(ours: Steps, theirs: Steps) -> Iterator[list[str]]:
    """Return a row for the step, its rollout and its update, by wall clock and by processor time."""
    tokens = ours[0]["tokens"]
    for clock in ("processor", "wall"):
        for part in ("step", "rollout", "update"):
            mine, other = (statistics.median(step[clock][part] for step in steps) for steps in (ours, theirs))
            rates = [f"{tokens / value:,.0f}" for value in (mine, other)]
            yield [clock, part, f"{mine:.2f}", f"{other:.2f}", *rates, f"{other / mine:.2f}"]


def saved_model(name: str, folder: str) -> str:
    """Write the model that both sides load."""
    from lmgym.policy.load import load_local

    load_local(name, device="cpu").save(folder)
    return folder


def arguments() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="tiny", help="any that lmgym loads; its template must be tiny's")
    parser.add_argument("--turns", type=int, nargs="+", default=[6, 1], help="of an episode, at most Wordle's six")
    parser.add_argument("--tokens", type=int, default=16, help="of an answer")
    parser.add_argument("--groups", type=int, default=8, help="instances of a step")
    parser.add_argument("--group", type=int, default=8, help="tries of each")
    parser.add_argument("--micro", type=int, default=32, help="rows of TRL's forward pass")
    parser.add_argument("--steps", type=int, default=3, help="timed in a round, after one that warms up")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--precision", nargs="+", choices=sorted(PRECISIONS), default=["fp32"])
    return parser.parse_args()


def main() -> None:
    """Print a table for each number of turns and precision."""
    asked = arguments()
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        job = {name: getattr(asked, name) for name in ("tokens", "groups", "group", "micro", "steps", "threads")}
        job["model"] = saved_model(asked.model, folder)
        for precision in asked.precision:
            for turns in asked.turns:
                job |= {"turns": turns, "precision": PRECISIONS[precision]}
                title = f"GRPO on Wordle, {turns} turn{'s' * (turns > 1)}, {asked.model} in {precision}"
                title += f", {asked.groups} x {asked.group} episodes, {asked.threads} thread{'s' * (asked.threads > 1)}"
                columns = ("clock", "", "lmgym (s)", "TRL (s)", "lmgym (tokens/s)", "TRL (tokens/s)", "ratio")
                table = Table(*columns, title=title)
                for line in lines(*rounds(job, asked.rounds)):
                    table.add_row(*line)
                console.print(table)


if __name__ == "__main__":
    main()
