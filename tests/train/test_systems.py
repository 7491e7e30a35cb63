"""Experiments of systems: what is run, and what a row says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lmgym.baselines.curves import directions, systems
from lmgym.cli.systems import MARKERS
from lmgym.cli.train import settings
from lmgym.env import registry
from lmgym.errors import RecipeError
from lmgym.evaluation.stats import student
from tests.command import command

RECIPE = '''
"""A system in one file."""
from lmgym.baselines import grpo
from lmgym.baselines.curves.directions import Direction, arm
from lmgym.baselines.grpo import Args, recipe

SMALL = ("--instances", "2", "--group", "2", "--budget", "2", "--evaluate", "2")
EXPERIMENT = Direction(
    name="mine",
    claim="six is a crowd",
    task="guess_number",
    options=("highest=6", "max_turns=2"),
    arms=(arm("two", {path!r}, *SMALL), arm("three", {path!r}, *SMALL, "--group", "3")),
    model="tiny:1m",
    warmup=7,
    tokens=70_000,
)
'''


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """The path of a recipe with an experiment; its runs are made in this process, one at a time, and counted."""
    path = tmp_path / "mine.py"
    path.write_text(RECIPE.replace("{path!r}", repr(str(path))))
    made = []

    def make(folder, arguments, out):
        if (out / "reports.json").exists():
            return
        made.append(out.name)
        command(*arguments)

    monkeypatch.setattr(directions, "make", make)
    return path, made


def test_an_experiment_is_run_once_and_its_row_written(mine, tmp_path, capsys):
    path, made = mine
    words = ("systems", str(path), "--trial", "--at-once", "1", "--seeds", "1", "--out", str(tmp_path / "runs"))
    assert command(*words) == 0
    assert made[0].startswith("guess_number-start-")
    assert made[1:] == ["mine-two-0", "mine-three-0"]
    assert command(*words) == 0
    assert len(made) == 3
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| mine | six is a crowd |")]
    assert len(rows) == 2
    assert rows[0] == rows[1]
    cells = [cell.strip() for cell in rows[0].split("|")[1:-1]]
    assert len(cells) == len(systems.COLUMNS)
    assert cells[2:5] == ["two against three", "guess_number (highest=6, max_turns=2)", "1"]
    assert cells[9:11] == ["not told apart", "100"]


def test_a_failing_system_is_named_and_the_others_go_on(mine, tmp_path, monkeypatch, capsys):
    path, made = mine
    other = tmp_path / "other.py"
    text = path.read_text().replace('"mine"', '"other"').replace(str(path), str(other))
    other.write_text(text.replace('task="guess_number"', 'task="guess_number"').replace("highest=6", "highest=none"))
    words = ("systems", str(other), str(path), "--trial", "--at-once", "1", "--seeds", "1")
    words += ("--out", str(tmp_path / "runs"))

    def make(folder, arguments, out, before=directions.make):
        if "highest=none" in arguments:
            raise RecipeError("the start ended with 1: highest")
        before(folder, arguments, out)

    monkeypatch.setattr(directions, "make", make)
    assert command(*words) == 1
    printed = capsys.readouterr().out
    assert "other: the start ended with 1: highest" in printed
    assert "| other | six is a crowd | two against three | guess_number (highest=none, max_turns=2) |  |" in printed
    assert made[1:] == ["mine-two-0", "mine-three-0"]


def test_systems_with_the_same_imitation_share_its_run(mine, tmp_path):
    path, made = mine
    other = tmp_path / "other.py"
    other.write_text(path.read_text().replace('"mine"', '"other"').replace(str(path), str(other)))
    words = ("systems", str(other), str(path), "--trial", "--seeds", "2", "--at-once", "1")
    assert command(*words, "--out", str(tmp_path / "runs")) == 0
    starts = [name for name in made if "start" in name]
    assert len(starts) == len(set(starts)) == 2
    assert len(made) == 2 + 8
    first, second = (systems.experiments([str(each)]).popitem()[1] for each in (path, other))
    longer = replace(second, warmup=second.warmup + 1)
    assert directions.start_of(first, 0, first.arms[0], tmp_path) == directions.start_of(
        second, 0, second.arms[0], tmp_path
    )
    assert directions.start_of(first, 0, first.arms[0], tmp_path) != directions.start_of(
        longer, 0, longer.arms[0], tmp_path
    )


def test_an_arm_with_arguments_for_its_start_has_a_start_of_its_own(mine, tmp_path):
    (shared,) = systems.experiments([str(mine[0])]).values()
    first, second = shared.arms
    own = replace(shared, arms=(replace(first, start=("--context", "stub:1")), second))
    with_stubs, plain, *arms = directions.runs(own, 0, tmp_path).items()
    assert with_stubs[1][-2:] == ["--context", "stub:1"]
    assert plain[0] in directions.runs(shared, 0, tmp_path)
    starts = [f"hf:{path / 'policy'}" for path, _ in (with_stubs, plain)]
    assert [words[words.index("--model") + 1] for _, words in arms] == starts
    for seed in range(2):
        for path, success in zip(directions.runs(own, seed, tmp_path), (0.2, 0.4, 0.6, 0.5 - seed / 10), strict=True):
            done(path, success)
    assert "| 2 | 20.0 % and 40.0 % | 60.0 % | 45.0 % | +15.0 [" in systems.row(own, range(2), tmp_path)


def finished(direction, seeds: dict[int, tuple[float, float]], folder: Path) -> None:
    """Write what `row` reads of finished runs: the success of both arms at the end, by seed."""
    for seed, ends in seeds.items():
        for path, success in zip(directions.runs(direction, seed, folder), (0.4, *ends), strict=True):
            done(path, success)


def done(path: Path, success: float) -> None:
    """Write what `row` reads of a finished run: its success at the end."""
    path.mkdir(parents=True)
    (path / "reports.json").write_text("{}")
    (path / "run.json").write_text(json.dumps({"commit": "0123456789", "arguments": {}}))
    line = {"stage": "after RL", "evaluated_success": success, "environment_steps": 5, "seconds_evaluate": 2.0}
    (path / "metrics.jsonl").write_text(json.dumps(line) + "\n")


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        (((0.6, 0.5), (0.7, 0.6), (0.62, 0.5)), "as the paper says"),
        (((0.5, 0.6), (0.6, 0.7), (0.5, 0.62)), "against"),
        (((0.6, 0.5), (0.5, 0.6), (0.6, 0.5)), "not told apart"),
    ],
)
def test_the_verdict_is_that_of_the_interval_over_seeds(mine, tmp_path, ends, verdict):
    (direction,) = systems.experiments([str(mine[0])]).values()
    finished(direction, dict(enumerate(ends)), tmp_path / "runs")
    cells = [cell.strip() for cell in systems.row(direction, range(3), tmp_path / "runs").split("|")[1:-1]]
    gap = student([100 * (a - b) for a, b in ends])
    assert cells[5] == "40.0 %"
    assert cells[8] == f"{gap.mean:+.1f} [{gap.low:+.1f}, {gap.high:+.1f}]"
    assert cells[9] == verdict
    assert cells[11:] == ["18", "`make systems ARGS=mine`", "0123456"]  # nine runs of two seconds
    assert systems.row(direction, range(4), tmp_path / "runs") is None  # a seed is missing


def test_rows_of_systems_that_were_not_run_again_stay(mine, tmp_path):
    (direction,) = systems.experiments([str(mine[0])]).values()
    finished(direction, {0: (0.6, 0.5)}, tmp_path / "runs")
    line = systems.row(direction, range(1), tmp_path / "runs")
    empty = systems.table({"mine": direction}, {})
    assert empty.splitlines()[-1].split("|")[10].strip() == systems.NOT_RUN
    full = systems.table({"mine": direction}, {"mine": line}, empty)
    assert systems.table({"mine": direction}, {}, full) == full
    assert systems.table({}, {}, full).splitlines() == full.splitlines()[:2]  # a system that is gone


def test_the_rows_of_the_repository_are_of_the_experiments_as_they_are():
    text = (Path(systems.__file__).parents[1] / "recipes" / "README.md").read_text()
    block = text.partition(MARKERS[0])[2].partition(MARKERS[1])[0]
    rows = [line for line in block.splitlines() if line.startswith("|")]
    assert len(rows) > 2
    everything = systems.experiments()
    for row in rows[2:]:
        cells = tuple(cell.strip() for cell in row.split("|")[1:5])
        assert cells == systems.described(everything[cells[0]]), "run `make systems` for it again"
    assert systems.seeds_needed(rows) in block


def test_write_keeps_old_rows_and_puts_the_seeds_that_would_do_below_them(tmp_path, monkeypatch):
    text = (Path(systems.__file__).parents[1] / "recipes" / "README.md").read_text()
    copy = tmp_path / "README.md"
    copy.write_text("".join(line for line in text.splitlines(True) if not line.startswith("Seeds that would")))
    monkeypatch.setattr(directions, "make_all", lambda *_, **__: {})
    assert command("systems", "arpo", "--out", str(tmp_path / "runs"), "--write", str(copy)) == 0
    assert copy.read_text() == text


def test_the_seeds_that_would_do_are_those_at_which_the_interval_of_the_same_spread_leaves_out_zero():
    row = "| {} | c | a against b | t | 3 | 9 % | 9 % | 9 % | {:+.1f} [{:+.1f}, {:+.1f}] | {} | 9 | 9 | c | c |"
    rows = [
        row.format("near", 3.0, -1.303, 7.303, systems.UNDECIDED),  # deviation sqrt(3): 3.182 / 2 is below 3 / sqrt(3)
        row.format("even", 0.0, -1.0, 1.0, systems.UNDECIDED),
        row.format("clear", 3.0, 1.0, 5.0, "as the paper says"),
    ]
    assert systems.seeds_needed(rows).endswith(": 4 for near; more than 20 for even.")


@pytest.mark.parametrize("name", systems.experiments())
def test_every_arm_has_words_of_its_algorithm_and_options_of_its_task(name, tmp_path):
    direction = systems.experiments([name])[name]
    spec = registry.find(direction.task)
    for words in directions.runs(direction, 0, tmp_path).values():
        options = settings(words).arguments["options"]
        registry.check_options(spec, {option: options[option] for option in options if option != "max_turns"})


def test_an_algorithm_without_an_experiment_is_refused():
    with pytest.raises(RecipeError, match="bc has no EXPERIMENT"):
        systems.experiments(["bc"])
