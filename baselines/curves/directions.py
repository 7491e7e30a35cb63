"""Directions of the literature: pairs of arms of which papers report that one is better, run under equal conditions.

The arms of a direction begin with the same imitated policy and end at the same number of action tokens, or of steps
where tokens are not comparable. The results are reported, not asserted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Literal
from zlib import crc32

import numpy as np

from lmgym.baselines.curves.comparison import Settings, call, in_parallel, interval, make, percent
from lmgym.baselines.curves.lmrl import METHODS
from lmgym.errors import LmgymError
from lmgym.train import algorithms
from lmgym.train.log import read_metrics

RL = ("--warmup", "0", "--steps", "1000000")  # `--tokens` ends a run
RATES = ("--lr", "3e-4", "--final-norm-lr", "0.045")  # what the trials of the curves chose for GRPO
SMALL_STEPS = ("--instances", "4")  # of groups of 8, where a prompt has thousands of tokens
SMALL_START = ("--episodes", "16")  # a step, for the same reason
PICTURES_START = ("--instances", "24", "--interject", "0", "--observation-weight", "0")
EPS = ("--adam-eps", "1e-5")  # with 1e-8 `tiny-vl` unlearns the format of answers
LMRL = {method.name: method.words for method in METHODS}  # the settings of LMRL-Gym's table
SOON = (*RL, "--critic-steps", "1")  # of about seven steps, the 5 of small models would be most
# bc with the optimiser and the loss of filtered BC, so that only the data differs
PLAIN = (
    *("--lr", "0.001", "--final-lr", "1", "--optimiser", "adamw", "--weight-decay", "0"),
    *("--observation-weight", "0", "--episodes", "128"),
)


@dataclass(frozen=True, kw_only=True)
class Arm:
    """One of the runs to compare."""

    name: str
    algorithm: str
    options: Sequence[str] = ()  # of the task
    words: Sequence[str] = RL  # of the algorithm
    start: Sequence[str] = ()  # further arguments of the start run, where arms cannot share one


def arm(name: str, algorithm: str, *words: str, options: Sequence[str] = (), start: Sequence[str] = ()) -> Arm:
    """Return an arm that trains from the start policy, at the rates of all arms unless `words` has others."""
    return Arm(name=name, algorithm=algorithm, words=(*RL, *RATES, *words), options=options, start=start)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """A data set made for a direction, by the demonstrator or by the start policy of the arms."""

    by: Literal["demonstrator", "start"]
    episodes: int
    tries: int = 1  # at each episode's instance
    words: Sequence[str] = ()  # further arguments of `lmgym record`


@dataclass(frozen=True, kw_only=True)
class Direction:
    """A claim and the arms that test it."""

    name: str
    claim: str
    task: str
    arms: Sequence[Arm]
    options: Sequence[str] = ()  # of the task, in all arms
    recorded_options: Sequence[str] = ()  # of the task, in the recordings; empty: `options`
    recordings: Sequence[Recording] = ()
    common: Sequence[str] = ()  # arguments of `lmgym train`, for the start run and all arms
    model: str = "tiny:1m"
    warmup: int  # steps of imitation in the start run, from the demonstrator's recordings if there are any
    start: Sequence[str] = ()  # further arguments of the start run
    tokens: int | None = None  # action tokens at which an arm ends
    every: int = 0  # tokens between evaluations
    episodes: int = 200  # per evaluation


@dataclass(frozen=True, kw_only=True)
class Line:
    """Evaluations of a run."""

    arm: str
    seed: int
    success: list[float] = field(default_factory=list)
    steps: list[float] = field(default_factory=list)  # environment steps
    seconds: float = 0.0  # without evaluations


STITCH = Direction(
    name="stitch",
    claim="ILQL puts together what filtered BC cannot: each recorded player is good in one part of an episode only",
    task="maze",
    options=("explained=false", "max_turns=25"),
    recorded_options=("explained=false", "max_turns=20"),
    recordings=(
        Recording(by="demonstrator", episodes=25, tries=25, words=("--wander", "5:")),
        Recording(by="demonstrator", episodes=25, tries=25, words=("--wander", "0:10")),
    ),
    arms=(
        Arm(name="ilql", algorithm="ilql", words=(*LMRL["ILQL"], "--steps", "1000")),
        Arm(name="filtered_bc", algorithm="filtered_bc", words=LMRL["%BC"]),
    ),
    common=("--context", "latest"),
    warmup=150,
    start=("--minibatches", "1", "--interject", "0", "--episodes", "8"),
)
DIRECTIONS = (
    Direction(
        name="reward",
        claim="PPO learns faster from a dense reward than from a sparse one",
        task="textworld",
        arms=(
            Arm(name="ppo, dense", algorithm="ppo", options=("rewards=dense",), words=SOON),
            Arm(name="ppo, sparse", algorithm="ppo", options=("rewards=sparse",), words=SOON),
        ),
        common=("--train-instances", "1500"),  # games are slow to make
        warmup=60,
        tokens=70_000,
        every=20_000,
        episodes=100,
    ),
    Direction(
        name="filter",
        claim="imitating the best of what was recorded is better than imitating all of it",
        task="guess_number",
        recordings=(Recording(by="start", episodes=2000),),
        arms=(
            Arm(name="filtered_bc", algorithm="filtered_bc", words=("--warmup", "0", "--steps", "30")),
            Arm(name="bc", algorithm="bc", words=(*PLAIN, "--steps", "30")),
        ),
        warmup=12,
    ),
    STITCH,
    Direction(
        name="steps",
        claim="ArCHer needs fewer environment steps to the same success than token-level REINFORCE",
        task="guess_number",
        arms=(
            Arm(name="archer", algorithm="archer", words=("--warmup", "0", "--fit", "5", "--steps", "15")),
            Arm(name="rloo (REINFORCE)", algorithm="rloo", words=("--warmup", "0", "--steps", "10")),
        ),
        warmup=12,
        every=10_000,
    ),
)


def make_all(
    directions: Sequence[Direction],
    seeds: Sequence[int],
    folder: Path,
    *,
    at_once: int,
    tell: Callable[[str], None],
    settings: Settings,
) -> dict[str, str]:
    """Make the missing runs of every direction and seed, several of these in parallel; return errors by direction.

    After an error the other directions go on. Raise RecipeError before the first run if a folder has a run with other
    arguments.
    """
    errors: dict[str, str] = {}

    def one(work: Callable[..., None], direction: Direction, seed: int) -> None:
        try:
            if direction.name not in errors:
                work(direction, seed, folder)
        except LmgymError as error:
            errors[direction.name] = str(error)

    pairs = list(product(directions, seeds))
    lines = [line for pair in pairs for line in runs(*pair, folder).items()]
    data = {data_of(*pair, folder): pair for pair in reversed(pairs)}  # a pair of each data set
    starts = {start_of(*pair, arm, folder): (pair, arm) for pair in reversed(pairs) for arm in reversed(pair[0].arms)}
    waves = [
        [partial(one, partial(_record, "demonstrator"), *pair) for pair in data.values()],
        [partial(one, partial(make_start, arm, tell), *pair) for pair, arm in starts.values()],
        [partial(one, partial(make_arms, tell), *pair) for pair in pairs],
    ]
    in_parallel(waves, lines, at_once=at_once, settings=settings)
    return errors


def make_start(arm: Arm, tell: Callable[[str], None], direction: Direction, seed: int, folder: Path) -> None:
    """Make the start run of an arm and a seed."""
    out = start_of(direction, seed, arm, folder)
    make(folder, start_words(direction, seed, arm, folder), out)
    tell(out.name)


def make_arms(tell: Callable[[str], None], direction: Direction, seed: int, folder: Path) -> None:
    """Make the start policy's recordings and the arms of one seed."""
    _record("start", direction, seed, folder)
    for arm in direction.arms:
        out = run_of(direction, arm, seed, folder)
        make(folder, words(direction, arm, seed, folder), out)
        tell(out.name)


def _record(by: Literal["demonstrator", "start"], direction: Direction, seed: int, folder: Path) -> None:
    for number, recording in enumerate(direction.recordings):
        out = data_of(direction, seed, folder) / f"{number}.jsonl"
        if recording.by == by and not out.exists():
            call(folder, record_words(direction, recording, seed, folder, out), f"{direction.name}-data-{seed}")


def start_of(direction: Direction, seed: int, arm: Arm, folder: Path) -> Path:
    """Return the folder of the start run, which arms and directions with the same start share."""
    own = data_of(direction, seed, folder).name if _demonstrated(direction) else ""
    parts = (own, direction.model, direction.warmup, direction.episodes)
    further = [*direction.options, *direction.common, *direction.start, *arm.start]
    return folder / f"{direction.task.rpartition('/')[2]}-start-{crc32(repr((parts, further)).encode()):08x}-{seed}"


def data_of(direction: Direction, seed: int, folder: Path) -> Path:
    """Return the folder of the data set, which directions with the same demonstrations share."""
    if any(recording.by == "start" for recording in direction.recordings):
        return folder / f"{direction.name}-data-{seed}"
    made = (direction.task, direction.recorded_options or direction.options, direction.recordings)
    return folder / f"{direction.task.rpartition('/')[2]}-data-{crc32(repr(made).encode()):08x}-{seed}"


def run_of(direction: Direction, arm: Arm, seed: int, folder: Path) -> Path:
    """Return the folder of an arm's run."""
    plain = "".join(c if c.isalnum() or c == "_" else "-" for c in arm.name)
    return folder / f"{direction.name}-{plain}-{seed}"


def runs(direction: Direction, seed: int, folder: Path) -> dict[Path, list[str]]:
    """Return the arguments of `lmgym train` for the start runs and the arms, by folder."""
    starts = {
        start_of(direction, seed, arm, folder): start_words(direction, seed, arm, folder) for arm in direction.arms
    }
    arms = {run_of(direction, arm, seed, folder): words(direction, arm, seed, folder) for arm in direction.arms}
    return {**starts, **arms}


def record_words(direction: Direction, recording: Recording, seed: int, folder: Path, out: Path) -> list[str]:
    """Return the arguments of `lmgym record`; each recording of each seed has its own environment seed."""
    who = (
        f"hf:{start_of(direction, seed, direction.arms[0], folder) / 'policy'}"
        if recording.by == "start"
        else recording.by
    )
    chance = 100 * (seed + 1) + direction.recordings.index(recording)
    return [
        *("record", direction.task, "--model", who, "--out", str(out), "--episodes", str(recording.episodes)),
        *("--tries", str(recording.tries), "--seed", str(chance), *recording.words),
        *_options(direction.recorded_options or direction.options),
    ]


def start_words(direction: Direction, seed: int, arm: Arm, folder: Path) -> list[str]:
    """Return the arguments of `lmgym train` for the start run of an arm."""
    return [
        *("train", "bc", direction.task, "--model", direction.model, "--seed", str(seed), "--threads", "1"),
        *("--out", str(start_of(direction, seed, arm, folder)), "--steps", str(direction.warmup)),
        *("--evaluate", str(direction.episodes), *_options(direction.options), *direction.common),
        *(["--recorded", str(data_of(direction, seed, folder))] if _demonstrated(direction) else []),
        *direction.start,
        *arm.start,
    ]


def _demonstrated(direction: Direction) -> bool:
    return any(recording.by == "demonstrator" for recording in direction.recordings)


def words(direction: Direction, arm: Arm, seed: int, folder: Path) -> list[str]:
    """Return the arguments of `lmgym train` for an arm; it learns from the recordings if its algorithm takes any."""
    start = start_of(direction, seed, arm, folder) / "policy"
    args = algorithms.load(arm.algorithm).Args
    offline = direction.recordings and any(each.name == "recorded" for each in fields(args))
    return [
        *("train", arm.algorithm, direction.task, "--model", f"hf:{start}", "--seed", str(seed), "--threads", "1"),
        *("--out", str(run_of(direction, arm, seed, folder)), "--evaluate", str(direction.episodes)),
        *(["--tokens", str(direction.tokens)] if direction.tokens else []),
        *("--evaluate-every", str(direction.every)),
        *(["--no-evaluate-before"] if arm.algorithm != "bc" else []),  # the start run has this evaluation
        *(["--recorded", str(data_of(direction, seed, folder))] if offline else []),
        *arm.words,
        *_options([*direction.options, *arm.options]),
        *direction.common,
    ]


def _options(pairs: Iterable[str]) -> list[str]:
    return [word for pair in pairs for word in ("--option", pair)]


def read(direction: Direction, arm: Arm, seed: int, folder: Path) -> Line:
    """Return the evaluations of a finished run; the first is that of the start run."""
    start = [row for row in read_metrics(start_of(direction, seed, arm, folder)) if "evaluated_success" in row]
    line = Line(arm=arm.name, seed=seed, success=[start[-1]["evaluated_success"]], steps=[0.0])
    seconds = 0.0
    for row in read_metrics(run_of(direction, arm, seed, folder)):
        if "evaluated_success" not in row:
            seconds += sum(value for name, value in row.items() if name.startswith("seconds_"))
        else:
            line.success.append(row["evaluated_success"])
            line.steps.append(row["environment_steps"])
    return replace(line, seconds=seconds)


def reached(line: Line, level: float) -> float | None:
    """Return the environment steps at which a run first reached a success, interpolated; None if never."""
    before = (line.steps[0], line.success[0])
    for steps, success in zip(line.steps, line.success, strict=True):
        if success >= level:
            share = 1.0 if success == before[1] else (level - before[1]) / (success - before[1])
            return before[0] + min(1.0, max(0.0, share)) * (steps - before[0])
        before = (steps, success)
    return None


def table(direction: Direction, lines: Sequence[Line]) -> str:
    """Return the claim and a Markdown table of each arm's success at start and end, over seeds.

    The column `to the level` has environment steps to the lower of the arms' mean final successes, for the seeds that
    reached it.
    """
    arms = [[line for line in lines if line.arm == arm.name] for arm in direction.arms]
    level = min(float(np.mean([line.success[-1] for line in members])) for members in arms)
    rows = [
        f"**{direction.name}**: {direction.claim}; {direction.task}"
        + (f" ({', '.join(direction.options)})" if direction.options else ""),
        "",
        "| arm | seeds | start | end | environment steps | to the level | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm, members in zip(direction.arms, arms, strict=True):
        start, end = (interval([100 * line.success[at] for line in members]) for at in (0, -1))
        steps = float(np.mean([line.steps[-1] for line in members]))
        reached_at = [at for line in members if steps and (at := reached(line, level)) is not None]
        rows.append(
            f"| {arm.name} | {len(members)} | {percent(start)} | {percent(end)} | "
            f"{f'{steps:,.0f}' if steps else 'none'} | "
            f"{f'{np.mean(reached_at):,.0f} ({len(reached_at)} of {len(members)})' if reached_at else '-'} | "
            f"{np.mean([line.seconds for line in members]):,.0f} |"
        )
    first, second = ({line.seed: 100 * line.success[-1] for line in members} for members in arms[:2])
    gap = interval([first[seed] - second[seed] for seed in first if seed in second])
    difference = f"{direction.arms[0].name} less {direction.arms[1].name} at the end, paired by seed: "
    rows += ["", f"{difference}{gap[0]:+.1f} [{gap[1]:+.1f}, {gap[2]:+.1f}]; level {100 * level:.1f} %."]
    return "\n".join(rows)
