"""Gains of the reinforcement-learning baselines over starts that leave room, at temperatures 1 and 0.

The player of a start's data is weak: it plays random moves in the maze, at half of the turns also in TextWorld's coin
collector, in guess_number any number that the answers allow, and in three of four games of Twenty Questions it only
names objects. Imitation ends at a policy that has moves to learn, which greedy decoding alone does not find. ALFWorld's
starts imitate the demonstrator for as short a time as the main job does. From these policies the baselines train with
AdamW at one rate a task, two in guess_number, Twenty Questions and the coin collector, and every policy plays the same
test games before and after. Causes of flat curves are told apart by learners with one thing changed, beside the
unchanged ones.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.baselines.curves.comparison import REPORT, Settings, by_instance, call, evaluate, in_parallel, make
from lmgym.baselines.curves.players import OBJECTS
from lmgym.evaluation.stats import Interval, paired
from lmgym.train.log import read_metrics

TEMPERATURES = (1, 0)
RISE = 0.15  # of success over the start, which `table_of_episodes` counts episodes to
LATEST = 256  # episodes whose mean success is compared with it, or the last step's if those are more
RL = (
    *("--warmup", "0", "--steps", "1000000", "--no-evaluate-before", "--evaluate", "1"),  # `--tokens` ends a run
    *("--adam-eps", "1e-5"),
)
LEARNERS = {
    "ppo": ("--critic-steps", "1"),
    "grpo": (),
    "rloo": (),
    "archer": ("--fit", "5"),
    "refuel": (),
}
ARCHER = (  # of short games: a critic as large as the policy, and an actor slow enough to stay behind it
    *("--lr", "5e-4", "--minibatches", "2", "--encoder", "own", "--critic-lr", "3e-4", "--critic-whole"),
    *("--critic-epochs", "4"),
)
BATCHES = {  # of the maze and the coin collector
    "grpo": ("--instances", "12", "--group", "4"),
    "rloo": ("--instances", "12", "--group", "4"),
    "archer": ("--rollouts", "16"),
    "refuel": ("--pairs", "64"),
}


@dataclass(frozen=True, kw_only=True)
class NightTask:
    """A task, the data of its starts, and the length of its runs."""

    name: str
    task: str
    data: Sequence[str]  # arguments of `lmgym record`
    start: Sequence[str]  # arguments of `lmgym train bc`
    model: str = "tiny:1m"
    tokens: Mapping[str, int]  # by learner: action tokens at which a run ends, ArCHer's fresh answers included
    episodes: int  # test games
    tries: int = 1  # at each game
    options: Sequence[str] = ()  # of the task, as arguments
    history: Sequence[str] = ()  # arguments of the policy's context, in all runs
    learning: Sequence[str] = ("--lr", "3e-4")  # arguments of every learner
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by learner: further arguments
    changes: Mapping[str, Sequence[str]] = field(default_factory=dict)  # by LEARNER-WORD: arguments in place of its own


def lost_at_the_limit(*, value_bias: str, **more: Sequence[str]) -> dict[str, Sequence[str]]:
    """Return the arguments of learners of a short game that is lost at its turn limit, with `more` by learner.

    Without a discount, a value learned from itself after the last turn would make losing as good as winning.
    """
    arguments = {
        "ppo": ("--instances", "512", "--gamma", "1", "--limit-ends", "--value-bias", value_bias),
        "grpo": ("--instances", "64", "--group", "8"),
        "archer": ("--truncated-is-done",),
    }
    return {name: (*arguments.get(name, ()), *more.get(name, ())) for name in LEARNERS}


GUESS = NightTask(
    name="guess_number",
    task="guess_number",
    options=("--option", "highest=16", "--option", "max_turns=4"),
    data=("--model", "python:lmgym.baselines.curves.players:guess_that_fits", "--episodes", "4000"),
    start=("--steps", "40"),
    tokens={"ppo": 200_000, "grpo": 200_000, "rloo": 200_000, "archer": 1_500_000, "refuel": 400_000},
    episodes=1_000,
    learning=("--lr", "1e-3"),
    extra=lost_at_the_limit(
        value_bias="0.5",
        archer=(
            *(*ARCHER, "--fit", "6", "--rollouts", "1024", "--actor-draws", "2048"),
            *("--critic-draws", "2048", "--gamma", "1"),
        ),
    ),
    changes={
        "grpo-eps": ("--adam-eps", "1e-8"),
        "grpo-positive": ("--negative-advantage-weight", "0"),
        "grpo-rate": ("--lr", "1e-4"),
        "grpo-batch": ("--instances", "16"),
        "ppo-unlimited": ("--no-limit-ends",),
        "ppo-discounted": ("--no-limit-ends", "--gamma", "0.99"),
    },
)
TASKS = (
    GUESS,
    *(
        replace(GUESS, name=f"guess_number-{size}", model=model, changes=changes)
        for size, model, changes in (  # sizes in parameters, 1.2 million elsewhere
            ("2.5m", "tiny", {}),
            ("10m", "tiny:10m", {"grpo-rate": ("--lr", "3e-4")}),
        )
    ),
    NightTask(
        name="maze",
        task="maze",
        data=("--episodes", "25", "--tries", "8", "--wander", "0:"),
        start=("--steps", "40", "--episodes", "4"),
        tokens={"ppo": 200_000, "grpo": 200_000, "rloo": 200_000, "archer": 800_000, "refuel": 400_000},
        episodes=25,
        tries=8,
        history=("--context", "latest"),
        learning=("--lr", "5e-4", "--budget", "50"),
        extra={
            **BATCHES,
            # a discount by the token would reward longer answers, which put off the cost of the next move
            "ppo": ("--instances", "48", "--gamma", "1", "--value-bias", "-45"),
        },
    ),
    NightTask(
        name="coin",
        task="lmgym/TextWorldCoin-v0",
        options=("--option", "level=5"),
        data=("--episodes", "100", "--tries", "8", "--wander", "0:", "--wander-share", "0.5"),
        start=("--steps", "60", "--episodes", "12"),
        tokens={"ppo": 100_000, "grpo": 100_000, "rloo": 100_000, "archer": 500_000, "refuel": 200_000},
        episodes=50,
        tries=4,
        learning=("--lr", "3e-4", "--budget", "30", "--train-instances", "100"),
        extra={
            **BATCHES,
            "ppo": ("--instances", "48", "--gamma", "1", "--limit-ends", "--value-bias", "0.5", "--lam", "1"),
            "refuel": (*BATCHES["refuel"], "--lr", "1e-4"),  # at 3e-4 it falls
            "archer": (
                *("--truncated-is-done", "--minibatches", "2", "--encoder", "own", "--critic-lr", "5e-4", "--fit", "4"),
                *("--critic-whole", "--critic-draws", "1024", "--critic-batch", "32", "--critic-epochs", "3"),
                *("--rollouts", "64", "--actor-draws", "1024"),
            ),
        },
    ),
    NightTask(
        name="twenty_questions",
        task="twenty_questions",
        options=("--option", f"only={json.dumps(OBJECTS)}", "--option", "max_turns=8"),
        data=(
            *("--model", "python:lmgym.baselines.curves.players:mixed_question", "--split", "train"),
            *("--episodes", str(len(OBJECTS)), "--tries", "160"),
        ),
        start=("--steps", "100"),
        tokens={"ppo": 400_000, "grpo": 400_000, "rloo": 400_000, "archer": 1_000_000, "refuel": 800_000},
        episodes=len(OBJECTS),
        tries=20,
        learning=("--lr", "1e-3"),
        # the first question decides a game, some seventy tokens before a lost one ends; and a mean over each game's
        # tokens would weigh the turns of quick wins, which are lucky names, above all others; and at 1e-3
        # REFUEL fell, which trains on one answer of an episode
        extra=lost_at_the_limit(
            value_bias="-6",
            ppo=("--lam", "1"),
            grpo=("--aggregation", "token_mean"),
            archer=(*ARCHER, "--fit", "8", "--rollouts", "128", "--actor-draws", "1024", "--critic-draws", "1024"),
            refuel=("--lr", "5e-4"),
        ),
        changes={
            "grpo-sequence": ("--aggregation", "seq_mean"),
            "ppo-lambda": ("--lam", "0.95"),
            "refuel-last": ("--rewind", "last"),
        },
    ),
    NightTask(
        name="alfworld",
        task="alfworld",
        data=("--episodes", "6400", "--stumble", "0.1"),  # the imitation of the main job
        start=("--steps", "100"),
        tokens={"ppo": 400_000, "grpo": 400_000, "rloo": 400_000, "archer": 1_000_000, "refuel": 800_000},
        episodes=256,
        learning=("--lr", "3e-4", "--budget", "16"),
        # an end pays for all of its game's tokens, some eighty, of which a lambda of 0.95 reaches the last twenty
        extra={
            **BATCHES,
            "ppo": ("--instances", "128", "--gamma", "1", "--limit-ends", "--lam", "1"),
            "grpo": (),
            "archer": (
                *(*ARCHER, "--lr", "3e-4", "--fit", "8", "--rollouts", "128", "--actor-draws", "1024"),
                *("--critic-draws", "1024", "--gamma", "1", "--truncated-is-done"),
            ),
        },
        changes={
            "grpo-cost": ("--invalid-cost", "0.05"),
            "grpo-state": ("--state-advantage-weight", "1"),
            "rloo-turns": ("--budget", "30"),  # as many as in evaluations
            "ppo-lambda": ("--lam", "0.95"),
        },
    ),
)


def make_all(
    tasks: Sequence[NightTask],
    learners: Sequence[str],
    seeds: Sequence[int],
    folder: Path,
    *,
    at_once: int,
    tell: Callable[[str], None],
    settings: Settings,
) -> None:
    """Make the missing starts, runs and evaluations, several in parallel.

    Raise RecipeError before the first run if a folder has a run with other arguments.
    """
    starts = [(*each, start_of(*each, folder), start_words(*each, folder)) for each in product(tasks, seeds)]
    arms = [
        (task, seed, run_of(task, seed, learner, folder), words(task, seed, learner, folder))
        for task, seed, learner in product(tasks, seeds, learners)
    ]
    waves = [
        [partial(record, *each, folder) for each in product(tasks, seeds)],
        [partial(train, *each, tell) for each in starts],
        [partial(train, *each, tell) for each in arms],
    ]
    lines = [(out, line) for _, _, out, line in (*starts, *arms)]
    in_parallel(waves, lines, at_once=at_once, settings=settings)


def record(task: NightTask, seed: int, folder: Path) -> None:
    """Record the data of a start unless it is there."""
    data = data_of(task, seed, folder)
    if not data.exists():
        words = ["record", task.task, "--out", str(data), "--seed", str(seed), *task.options, *task.data]
        call(folder, words, data.stem)


def train(task: NightTask, seed: int, out: Path, line: Sequence[str], tell: Callable[[str], None]) -> None:
    """Make a run and evaluate its policy at each temperature."""
    make(out.parent, line, out)
    for temperature in TEMPERATURES:
        evaluate(out.parent, evaluation_words(task, seed, out, temperature), report_of(out, temperature))
    tell(out.name)


def data_of(task: NightTask, seed: int, folder: Path) -> Path:
    """Return the file of a start's data."""
    return folder / f"{task.name}-data-{seed}.jsonl"


def start_of(task: NightTask, seed: int, folder: Path) -> Path:
    """Return the folder of a start run."""
    return folder / f"{task.name}-start-{seed}"


def run_of(task: NightTask, seed: int, learner: str, folder: Path) -> Path:
    """Return the folder of a run."""
    return folder / f"{task.name}-{learner}-{seed}"


def report_of(run: Path, temperature: int) -> Path:
    """Return the file of the report on a run."""
    return run.with_name(f"{run.name}-eval-{temperature}") / REPORT


def start_words(task: NightTask, seed: int, folder: Path) -> list[str]:
    """Return the arguments of `lmgym train` for a start run."""
    return [
        *("train", "bc", task.task, "--model", task.model, "--seed", str(seed), "--threads", "1"),
        *("--out", str(start_of(task, seed, folder)), "--recorded", str(data_of(task, seed, folder))),
        *("--interject", "0", "--evaluate", "1", *task.options, *task.start, *task.history),
    ]


def words(task: NightTask, seed: int, learner: str, folder: Path) -> list[str]:
    """Return the arguments of `lmgym train` for a run of a learner or of one of the task's changes."""
    name = unchanged(learner)
    return [
        *("train", name, task.task, "--model", f"hf:{start_of(task, seed, folder) / 'policy'}"),
        *("--seed", str(seed), "--threads", "1", "--out", str(run_of(task, seed, learner, folder))),
        *("--tokens", str(task.tokens[name]), *RL, *LEARNERS[name], *task.options),
        *(*task.history, *task.learning, *task.extra.get(name, ()), *task.changes.get(learner, ())),
    ]


def unchanged(learner: str) -> str:
    """Return the learner that a change is of; a learner itself."""
    return learner.partition("-")[0]


def evaluation_words(task: NightTask, seed: int, run: Path, temperature: int) -> list[str]:
    """Return the arguments of `lmgym eval`."""
    return [
        *("eval", task.task, "--model", f"hf:{run / 'policy'}", "--temperature", str(temperature)),
        *("--episodes", str(task.episodes), "--tries", str(task.tries), "--seed", str(seed)),
        *(*task.options, *task.history, "--out", str(report_of(run, temperature).parent)),
    ]


def gain_cells(before_runs: Sequence[Path], after_runs: Sequence[Path], temperature: int) -> str:
    """Return the cells of a table for runs of the same seeds in order: both levels, the gain, each seed's gain.

    Intervals are paired by game and clustered by it; where seeds play different games, by seed and game.
    """
    starts = [by_instance(report_of(run, temperature), "success") for run in before_runs]
    ends = [by_instance(report_of(run, temperature), "success") for run in after_runs]
    each = [
        paired([start[game] for game in start], [end[game] for game in start], list(start))
        for start, end in zip(starts, ends, strict=True)
    ]
    before, after = ([value for run in runs for value in run.values()] for runs in (starts, ends))
    same = all(run.keys() == starts[0].keys() for run in starts)
    gain = paired(before, after, [game if same else (seed, game) for seed, run in enumerate(starts) for game in run])
    by_seed = ", ".join(_points(one) for one in each)
    level = f"{100 * np.mean(before):.1f} to {100 * np.mean(after):.1f} %"
    return f"{level} | {_points(gain)} | {by_seed}"


def _points(gain: Interval) -> str:
    return f"{100 * gain.mean:+.1f} [{100 * gain.low:+.1f}, {100 * gain.high:+.1f}]"


def table(tasks: Sequence[NightTask], learners: Sequence[str], seeds: Sequence[int], folder: Path) -> str:
    """Return a Markdown table of the gains in points, of each task and learner, at both temperatures."""
    rows = [
        "| task | algorithm | tokens | seeds | temperature | success | gain | each seed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for task, learner, temperature in product(tasks, learners, TEMPERATURES):
        starts = [start_of(task, seed, folder) for seed in seeds]
        cells = gain_cells(starts, [run_of(task, seed, learner, folder) for seed in seeds], temperature)
        tokens = f"{task.tokens[learner]:,}"
        rows.append(f"| {task.name} | {learner} | {tokens} | {len(seeds)} | {temperature} | {cells} |")
    return "\n".join(rows)


def table_of_changes(tasks: Sequence[NightTask], seeds: Sequence[int], folder: Path) -> str:
    """Return a Markdown table of success without and with each change, and the paired difference in points."""
    rows = [
        "| task | change | of | temperature | success | difference | each seed |",
        "|---|---|---|---|---|---|---|",
    ]
    for task in tasks:
        for (change, arguments), temperature in product(task.changes.items(), TEMPERATURES):
            own, changed = (
                [run_of(task, seed, name, folder) for seed in seeds] for name in (unchanged(change), change)
            )
            cells = gain_cells(own, changed, temperature)
            rows.append(f"| {task.name} | `{' '.join(arguments)}` | {unchanged(change)} | {temperature} | {cells} |")
    return "\n".join(rows)


def runs(tasks: Sequence[NightTask], learners: Sequence[str], seeds: Sequence[int], folder: Path) -> list[Path]:
    """Return the folders of all runs, those of starts first."""
    starts = [start_of(*each, folder) for each in product(tasks, seeds)]
    return starts + [run_of(*each, folder) for each in product(tasks, seeds, learners)]


def table_of_episodes(tasks: Sequence[NightTask], learners: Sequence[str], seeds: Sequence[int], folder: Path) -> str:
    """Return a Markdown table of the episodes and turns played until success is `RISE` above the start, by seed."""
    rows = ["| task | algorithm | episodes of a step | episodes | turns |", "|---|---|---|---|---|"]
    for task, learner in product(tasks, learners):
        counts, sizes = [], set()
        for seed in seeds:
            start = by_instance(report_of(start_of(task, seed, folder), 1), "success")
            steps = [each for each in read_metrics(run_of(task, seed, learner, folder)) if "episodes" in each]
            counts.append(played_to(steps, float(np.mean(list(start.values()))) + RISE))
            sizes.add(steps[0]["episodes"])
        cells = [", ".join("-" if each is None else f"{each[part]:,}" for each in counts) for part in (0, 1)]
        rows.append(f"| {task.name} | {learner} | {max(sizes)} | {' | '.join(cells)} |")
    return "\n".join(rows)


def played_to(steps: Sequence[Mapping[str, Any]], level: float) -> tuple[int, int] | None:
    """Return the episodes and turns played until the latest `LATEST` episodes reach a mean success; None if never."""
    latest: list[tuple[int, float]] = []  # episodes of a step, and how many were won
    played = 0
    for step in steps:
        latest.append((step["episodes"], step["episodes"] * step["success"]))
        played += step["episodes"]
        while sum(count for count, _ in latest[1:]) >= LATEST:
            latest.pop(0)
        counts, wins = zip(*latest, strict=True)
        if sum(counts) >= LATEST and sum(wins) >= level * sum(counts):
            return played, step["environment_steps"]
    return None
