"""LMRL-Gym's returns on mazes, Text-Nav, Wordle and endgames, made anew: record, imitate, learn, play its protocol.

In mazes the player of the data takes the shortest way in 15 % of its moves and a random one in the others, as the paper
says; episodes are cut after 20 moves, near the paper's mean length of 19.7. In Text-Nav half of its commands are the
best ones, which gives the paper's success of 0.26; in Wordle a third of the guesses are drawn among the words that fit
what is known and the others among all, as in the release; in endgames 39 % of the moves are random, near the paper's
success of 0.59. The mazes and Text-Nav are evaluated 32 times from each start, each of the 372 training words of Wordle
11 times (4,092 games; the paper does not split its words), endgames from 645 positions, all at temperature 1 as in the
paper and once from each start at 0. All learners begin with the policy that imitates all of the data.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgym.baselines.curves.comparison import REPORT, Settings, by_instance, call, evaluate, in_parallel, interval, make
from lmgym.env.registry import find

TEMPERATURES = (1, 0)  # of the evaluations
VALUES = (
    *("--warmup", "0", "--episodes", "64", "--minibatches", "1", "--base", "small", "--norm"),
    *("--lr", "0.001", "--final-lr", "0.05", "--beta", "16", "--evaluate", "25"),
)


@dataclass(frozen=True, kw_only=True)
class Method:
    """A row of the table."""

    name: str  # as the paper has it
    algorithm: str
    words: Sequence[str]  # arguments of the algorithm
    recorded: bool = True  # learns from the data
    guided: bool = False  # answers are those of the policy guided by values


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """A table: a task, what a policy sees of it, and the paper's returns."""

    name: str
    task: str
    context: str
    published: Mapping[str, float]
    data: Sequence[str]  # arguments of `lmgym record`
    options: Sequence[str] = ()  # of the task, as arguments
    starts: int = 25
    tries: int = 32  # at each start, in the evaluation
    turns: int = 100  # in PPO's play
    batch: int = 8  # episodes of a step of BC
    imitation: Sequence[str] = ()  # further arguments of BC
    values: Sequence[str] = ()  # further arguments of MC and ILQL
    split: str = "test"  # of the evaluation
    digits: int = 1  # of the table's returns
    ilql: Sequence[str] = ("--tau", "0.7")  # further arguments of ILQL
    model: str = "tiny:1m"


IMITATION = Method(
    name="BC",
    algorithm="bc",
    words=("--steps", "150", "--minibatches", "1", "--interject", "0", "--evaluate", "25"),
)
METHODS = (
    Method(
        name="%BC",
        algorithm="filtered_bc",
        words=(
            *("--warmup", "0", "--steps", "60", "--instances", "8", "--group", "1", "--minibatches", "1"),
            *("--share", "0.1", "--within", "all", "--evaluate", "25"),
        ),
    ),
    Method(name="MC", algorithm="mc", guided=True, words=(*VALUES, "--cql", "0.5", "--steps", "600")),
    Method(
        name="ILQL",
        algorithm="ilql",
        guided=True,
        words=(*VALUES, "--cql", "0.03", "--steps", "2000", "--tau-target", "0.1"),
    ),
    Method(
        name="PPO",
        algorithm="ppo",
        recorded=False,
        words=(
            *("--warmup", "0", "--steps", "40", "--instances", "25", "--tries", "4"),
            *("--kl-reward", "0.1", "--evaluate", "25"),
        ),
    ),
)
UNEXPLAINED = ("--option", "explained=false")  # the release's mazes say nothing of the task
RANDOM = ("--episodes", "25", "--tries", "50", "--wander", "0:", "--wander-share", "0.85", "--option", "max_turns=20")
TEXT_NAV = Benchmark(
    name="text-nav",
    task="text_nav",
    context="latest",
    published={"BC": 0.39, "%BC": 0.54, "MC": 0.63, "ILQL": 0.88, "PPO": 0.81},
    data=("--episodes", "8", "--tries", "312", "--wander", "0:", "--wander-share", "0.5", "--option", "max_turns=15"),
    starts=8,
    turns=20,
    ilql=("--tau", "0.8"),
    digits=2,
)
BENCHMARKS = (
    Benchmark(
        name="maze",
        task="maze",
        context="latest",
        published={"BC": -72.1, "%BC": -56.4, "MC": -48.1, "ILQL": -6.97, "PPO": -37.7},
        data=RANDOM,
        options=UNEXPLAINED,
    ),
    Benchmark(
        name="maze-partial",
        task="lmgym/MazePartial-v0",
        context="window:10:5",
        published={"BC": -79.5, "%BC": -82.9, "MC": -80.3, "ILQL": -52.9, "PPO": -91.7},
        data=RANDOM,
        options=UNEXPLAINED,
    ),
    TEXT_NAV,
    replace(
        TEXT_NAV,
        name="text-nav-partial",
        task="lmgym/TextNavPartial-v0",
        context="full",
        published={"BC": 0.25, "%BC": 0.49, "MC": 0.58, "ILQL": 0.76, "PPO": 0.80},
    ),
    Benchmark(
        name="wordle",
        task="wordle",
        context="full",
        published={"BC": -2.81, "%BC": -2.85, "MC": -2.16, "ILQL": -2.04, "PPO": -2.63},
        # a token for each letter and three layers: with other tokens or two layers BC learned the words, not which fit
        model="tiny?words=wordle",
        data=("--episodes", "372", "--tries", "100", "--model", "python:lmgym.baselines.curves.players:spaced_word"),
        split="train",
        starts=372,
        tries=11,
        turns=6,
        batch=64,
        imitation=("--steps", "6000", "--observation-weight", "0"),
        values=("--base", "own"),
        digits=2,
    ),
    Benchmark(
        name="endgames",
        task="lmgym/ChessEndgames-v0",
        context="latest",
        published={"BC": 0.112, "%BC": -0.439, "MC": 0.588, "ILQL": 0.452, "PPO": 0.814},
        model="tiny:1m?words=chess",  # a token for each symbol of a position
        data=("--episodes", "10000", "--wander", "0:", "--wander-share", "0.39"),
        starts=645,
        tries=1,
        turns=40,
        batch=32,
        imitation=("--steps", "2000", "--observation-weight", "0"),
        # CQL is the release's; at the release's beta of 8, MC repeats illegal moves
        values=("--base", "own", "--episodes", "32", "--beta", "2", "--cql", "1"),
        ilql=("--tau", "0.7", "--steps", "1000"),
        digits=2,
    ),
)


def make_all(
    benchmarks: Sequence[Benchmark],
    seeds: Sequence[int],
    folder: Path,
    *,
    at_once: int,
    tell: Callable[[str], None],
    settings: Settings,
) -> None:
    """Make what is missing of every benchmark and seed, several of these in parallel.

    Raise RecipeError before the first run if a folder has a run with other arguments.
    """
    pairs = list(product(benchmarks, seeds))
    lines = [line for pair in pairs for line in runs(*pair, folder).items()]
    work = [partial(make_seed, *pair, folder, tell) for pair in pairs]
    in_parallel([work], lines, at_once=at_once, settings=settings)


def make_seed(benchmark: Benchmark, seed: int, folder: Path, tell: Callable[[str], None]) -> None:
    """Make the data, the runs and the evaluations of one seed."""
    data = data_of(benchmark, seed, folder)
    if not data.exists():
        call(folder, record_words(benchmark, seed, folder), data.stem)
    for method, (run, line) in zip((IMITATION, *METHODS), runs(benchmark, seed, folder).items(), strict=True):
        make(folder, line, run)
        for temperature in TEMPERATURES:
            evaluation = evaluation_words(benchmark, method, seed, folder, temperature)
            evaluate(folder, evaluation, report_of(run, temperature))
        tell(run.name)


def data_of(benchmark: Benchmark, seed: int, folder: Path) -> Path:
    """Return the file of the data."""
    return folder / f"{benchmark.name}-data-{seed}.jsonl"


def run_of(benchmark: Benchmark, method: Method, seed: int, folder: Path) -> Path:
    """Return the folder of a run."""
    return folder / f"{benchmark.name}-{method.algorithm}-{seed}"


def report_of(run: Path, temperature: int) -> Path:
    """Return the file of the report on a run."""
    return run.with_name(f"{run.name}-eval-{temperature}") / REPORT


def record_words(benchmark: Benchmark, seed: int, folder: Path) -> list[str]:
    """Return the arguments of `lmgym record`."""
    out = data_of(benchmark, seed, folder)
    return ["record", benchmark.task, "--out", str(out), "--seed", str(seed), *benchmark.options, *benchmark.data]


def words(benchmark: Benchmark, method: Method, seed: int, folder: Path) -> list[str]:
    """Return the arguments of `lmgym train`."""
    own = {
        "bc": ("--episodes", str(benchmark.batch), *benchmark.imitation),
        "mc": benchmark.values,
        "ilql": (*benchmark.ilql, *benchmark.values),
        "ppo": ("--budget", str(benchmark.turns)),
    }
    start = benchmark.model if method is IMITATION else f"hf:{run_of(benchmark, IMITATION, seed, folder) / 'policy'}"
    return [
        *("train", method.algorithm, benchmark.task, "--model", start, "--seed", str(seed), "--threads", "1"),
        *("--out", str(run_of(benchmark, method, seed, folder)), "--context", benchmark.context, *benchmark.options),
        *method.words,
        *own.get(method.algorithm, ()),
        *(["--recorded", str(data_of(benchmark, seed, folder))] if method.recorded else []),
    ]


def evaluation_words(benchmark: Benchmark, method: Method, seed: int, folder: Path, temperature: int) -> list[str]:
    """Return the arguments of `lmgym eval`."""
    run = run_of(benchmark, method, seed, folder)
    tries = benchmark.tries if temperature else 1
    return [
        *("eval", benchmark.task, "--model", f"run:{run}" if method.guided else f"hf:{run / 'policy'}"),
        *("--split", benchmark.split, "--episodes", str(benchmark.starts), "--tries", str(tries)),
        *("--seed", str(seed), "--context", benchmark.context, "--temperature", str(temperature)),
        *benchmark.options,
        *("--out", str(report_of(run, temperature).parent)),
    ]


def returns(benchmark: Benchmark, method: Method, seed: int, folder: Path, temperature: int) -> list[float]:
    """Return the mean return from each start, in the order of the starts."""
    report = report_of(run_of(benchmark, method, seed, folder), temperature)
    return list(by_instance(report, "reward").values())


def table(benchmark: Benchmark, seeds: Sequence[int], folder: Path) -> str:
    """Return a Markdown table of mean returns; intervals resample the starts, each as the mean over seeds.

    The differences from BC at temperature 0 are paired by start: sharper sampling alone makes none.
    """
    rows = [
        f"**{benchmark.name}** ({find(benchmark.task).id}, `--context {benchmark.context}`)",
        "",
        "| algorithm | seeds | mean return | each seed | at temperature 0 | at 0, less BC | LMRL-Gym |",
        "|---|---|---|---|---|---|---|",
    ]
    imitated = _means(benchmark, IMITATION, seeds, folder, 0)
    for method in (IMITATION, *METHODS):
        sampled, greedy = (_means(benchmark, method, seeds, folder, at) for at in TEMPERATURES)
        each = ", ".join(f"{mean:.{benchmark.digits}f}" for mean in sampled.mean(1))
        beyond = "" if method is IMITATION else _cell(greedy - imitated, f"+.{benchmark.digits}f")
        cells = [_cell(means, f".{benchmark.digits}f") for means in (sampled, greedy)]
        published = benchmark.published[method.name]
        rows.append(f"| {method.name} | {len(seeds)} | {cells[0]} | {each} | {cells[1]} | {beyond} | {published} |")
    return "\n".join(rows)


def _means(benchmark: Benchmark, method: Method, seeds: Sequence[int], folder: Path, temperature: int) -> NDArray[Any]:
    """Return the mean return of each seed and start, (seeds, starts)."""
    return np.array([returns(benchmark, method, seed, folder, temperature) for seed in seeds])


def _cell(means: NDArray[Any], form: str) -> str:
    """Return the mean over seeds and starts with its interval."""
    mean, low, high = (format(value, form) for value in interval(means.mean(0)))
    return f"{mean} [{low}, {high}]"


def runs(benchmark: Benchmark, seed: int, folder: Path) -> dict[Path, list[str]]:
    """Return the arguments of `lmgym train` for all runs of a seed, by folder."""
    methods = (IMITATION, *METHODS)
    return {run_of(benchmark, each, seed, folder): words(benchmark, each, seed, folder) for each in methods}
