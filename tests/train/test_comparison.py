"""Curves: which runs are made, when they are made again, and the table that they come to."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from dataclasses import replace

import pytest

from lmgym.baselines.curves import comparison
from lmgym.baselines.curves.comparison import (
    ALL,
    Cell,
    Course,
    best_rates,
    check,
    interval,
    make,
    make_all,
    own_rates,
    read,
    start_words,
    table,
    words,
)
from lmgym.cli import curves
from lmgym.cli.curves import END, START, beside, report
from lmgym.cli.options import between
from lmgym.cli.train import settings
from lmgym.errors import RecipeError
from lmgym.train import folder
from tests.command import command

COURSE = Course(task="guess_number", algorithms=("bc", "grpo"), warmup=2, tokens=60, evaluations=2, episodes=4)


def finished(folder, name, *rows):
    (folder / name).mkdir(parents=True)
    (folder / name / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / name / "reports.json").write_text("{}")


def step(**seconds):
    return {"sampled_tokens": 30, "turns": 5.0, "episodes": 4, **seconds}


def evaluated(success, tokens, steps, **more):
    return {"evaluated_success": success, "action_tokens": tokens, "environment_steps": steps, **more}


def runs(folder, *ends, rate=1.0, algorithm="grpo"):
    """A finished cell for each final success, with its start."""
    cells = []
    for seed, end in enumerate(ends):
        cell = Cell(course=COURSE, algorithm=algorithm, seed=seed, rate=rate)
        if not (folder / cell.start).exists():
            finished(folder, cell.start, step(), evaluated(0.25, 9, 9))
        rows = (
            evaluated(0.25, 0, 0),  # of the start, once more
            step(seconds_play=1.0, seconds_update=0.5),
            evaluated(0.5, 30, 20, seconds_evaluate=9.0),
            step(seconds_play=1.0),
            evaluated(end, 70, 40),
        )
        finished(folder, cell.name, *rows)
        cells.append(cell)
    return [read(cell, folder) for cell in cells]


def test_a_curve_counts_what_was_played_and_no_evaluation(tmp_path):
    (curve,) = runs(tmp_path, 0.75)
    assert curve.success == [0.25, 0.5, 0.75]
    assert curve.tokens == [0, 30, 70]
    assert curve.steps == [0, 20, 40]
    assert curve.seconds == [0, 1.5, 2.5]


def test_all_algorithms_of_a_seed_begin_with_one_policy(tmp_path):
    first, second = (Cell(course=COURSE, algorithm=name, seed=1) for name in COURSE.algorithms)
    assert first.start == second.start
    for cell in (first, second):
        said = words(cell, tmp_path, 1e-3)
        assert f"hf:{tmp_path / cell.start / 'policy'}" in said
        assert said[said.index("--tokens") + 1] == "60"
        assert said[said.index("--steps") + 1] == "1000000"  # the tokens end it
    assert "--warmup" not in words(first, tmp_path, 1e-3)  # BC is imitation throughout
    assert start_words(first, tmp_path)[1:3] == ["bc", "guess_number"]


def test_no_cell_begins_before_its_start_is_made_though_a_thread_is_free(tmp_path, monkeypatch):
    made = []

    def make(folder, said, out):
        if "start" in out.name:
            begun.wait(0.2)  # the time that the other thread has for a cell
        made.append(out.name)
        begun.set()

    begun = threading.Event()
    monkeypatch.setattr(comparison, "make", make)
    cells = [Cell(course=COURSE, algorithm="grpo", seed=0, rate=rate) for rate in (1.0, 3.0)]
    make_all(cells, tmp_path, rates={"grpo": 1e-3}, at_once=2, tell=str, settings=settings)
    assert made[0] == cells[0].start
    assert set(made[1:]) == {cell.name for cell in cells}


def test_factors_are_of_the_rates_of_small_models():
    assert set(own_rates()) == set(ALL)
    assert min(own_rates().values()) == 1e-4  # the papers' reach down to 3e-7
    assert own_rates()["ppo"] == 3e-4


def test_a_rate_is_a_factor_of_the_algorithms_own(tmp_path):
    said = words(Cell(course=COURSE, algorithm="grpo", seed=0, rate=3.0), tmp_path, 1e-3)
    assert float(said[said.index("--lr") + 1]) == pytest.approx(3e-3)
    assert float(said[said.index("--final-norm-lr") + 1]) == pytest.approx(0.45)  # 150 times as much


@pytest.mark.parametrize("name", comparison.ALL)
def test_lmgym_train_knows_the_words_of_every_algorithm(name, tmp_path):
    asked = settings(words(Cell(course=COURSE, algorithm=name, seed=0), tmp_path, 1e-3)).arguments
    learns_by_play = name not in ("bc", "mc", "ilql")
    assert asked.get("final_norm_lr") == (pytest.approx(0.15) if learns_by_play else None)


def test_the_table_has_the_interval_over_seeds(tmp_path):
    (row,) = table(runs(tmp_path, 0.5, 0.5, 0.5)).splitlines()[2:]
    assert row == "| guess_number | grpo | 3 | 1 | 25.0 % [25.0, 25.0] | 50.0 % [50.0, 50.0] | 70 | 40 | 2 |"
    mean, low, high = interval([0.0, 1.0])
    assert (mean, low, high) == (0.5, 0.0, 1.0)  # of four equally likely resamples one is all 0, one all 1


def test_the_best_trial_wins_and_the_middle_rate_where_they_tie(tmp_path):
    trials = [
        *runs(tmp_path, 0.6, rate=0.3),
        *runs(tmp_path, 0.6, rate=1.0),
        *runs(tmp_path, 0.4, rate=3.0),
        *runs(tmp_path, 0.1, rate=1.0, algorithm="bc"),
        *runs(tmp_path, 0.9, rate=3.0, algorithm="bc"),
    ]
    assert best_rates(trials) == {"guess_number-grpo": 1.0, "guess_number-bc": 3.0}


def test_a_finished_run_is_not_made_again_and_an_interrupted_one_goes_on(tmp_path, monkeypatch):
    called = []

    def run(command, **_):
        called.append(command)
        return type("Done", (), {"returncode": 0})

    monkeypatch.setattr(comparison.subprocess, "run", run)
    finished(tmp_path, "done")
    make(tmp_path, ["train"], tmp_path / "done")
    assert called == []
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "run.json").write_text("{}")  # it may have been killed before its first checkpoint
    make(tmp_path, ["train"], tmp_path / "half")
    make(tmp_path, ["train"], tmp_path / "new")
    assert [command[3:] for command in called] == [["train", "--resume"], ["train"]]


def test_a_run_that_fails_says_why(tmp_path):
    with pytest.raises(RecipeError, match=r"wrong ended with 2: lmgym: unknown algorithm 'gpro'"):
        make(tmp_path, ["train", "gpro", "guess_number"], tmp_path / "wrong")


def test_the_picture_is_drawn(tmp_path):
    comparison.draw(runs(tmp_path, 0.5, 0.7), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_text_goes_between_the_markers():
    assert between(f"a{START}old{END}b", "new", START, END) == f"a{START}\nnew\n{END}b"
    with pytest.raises(RecipeError, match="no markers"):
        between("nothing", "new", START, END)


def test_a_report_replaces_that_of_its_command_and_no_other():
    of = "Command: `make curves ARGS='--task {}'`, commit {}.\n\n| t |"
    first, second, changed = of.format("maze", 1), of.format("coin", 2), of.format("maze", 3)
    both = beside(beside("\n", first), second)
    assert both == f"{first}\n\n{second}"
    assert beside(f"\n{both}\n", changed) == f"{changed}\n\n{second}"
    whole = "Command: `make curves ARGS='--seeds 3'`, commit 4."
    assert beside(f"\n{both}\n", whole) == whole


@pytest.mark.slow
def test_curves_of_two_algorithms_are_made_from_one_command(tmp_path, monkeypatch):
    monkeypatch.setattr(curves, "_courses", lambda: [COURSE])
    monkeypatch.setattr(curves, "SEEDS", range(2))
    readme = tmp_path / "README.md"
    readme.write_text(f"{START}{END}")
    said = ("curves", "--out", str(tmp_path / "runs"), "--write", str(readme), "--at-once", "1")
    assert command(*said) == 0
    assert readme.read_text().count("| guess_number |") == 2
    assert (tmp_path / "curves.png").exists()
    readme.write_text(f"{readme.read_text()}<!-- curves of one: made by `make curves` -->\n<!-- /curves of one -->\n")
    assert command(*said, "--part", "one", "--algorithm", "grpo") == 0
    text = readme.read_text()
    assert text.count("| guess_number | grpo |") == 2
    assert text.endswith("![success over tokens, steps and seconds](curves-one.png)\n<!-- /curves of one -->\n")


def test_a_cell_plays_its_part_of_its_split(tmp_path):
    said = words(Cell(course=COURSE, algorithm="grpo", seed=comparison.TRIAL_SEED), tmp_path, 1e-3)
    assert said[said.index("--tokens") + 1] == "60"
    assert said[said.index("--evaluate-split") + 1] == "train"
    assert "--evaluate-split" not in words(Cell(course=COURSE, algorithm="grpo", seed=0), tmp_path, 1e-3)
    cell = Cell(course=replace(COURSE, train_instances=8), algorithm="grpo", seed=0)
    for said in (start_words(cell, tmp_path), words(cell, tmp_path, 1e-3)):
        assert said[said.index("--train-instances") + 1] == "8"


def test_the_report_says_which_arms_were_tuned(tmp_path):
    curves = runs(tmp_path, 0.5)
    for tuned, told in (
        ({"guess_number": "guess_number"}, "3 learning rates with as many tokens"),
        ({"guess_number": "wordle"}, "as chosen for wordle"),
        ({}, "none"),
    ):
        assert f"on another seed: guess_number: {told};" in report(curves, "So.", tuned=tuned)


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """The folder and the words of a run that was really made, and of one that goes on from it."""
    folder = tmp_path_factory.mktemp("curves")
    first = ["train", "bc", "guess_number", "--model", "tiny:1m", "--out", str(folder / "a-start-0"), *LITTLE]
    then = [
        *first,
        "--lr",
        "0.001",
        "--model",
        f"hf:{folder / 'a-start-0' / 'policy'}",
        "--out",
        str(folder / "a-bc-0"),
    ]
    assert [command(*said) for said in (first, then)] == [0, 0]
    return folder, first, then


LITTLE = ("--steps", "1", "--episodes", "2", "--evaluate", "2", "--threads", "1", "--option", "highest=8")


def test_a_finished_run_is_that_of_its_words_wherever_it_lies(begun, tmp_path):
    folder, first, then = begun
    check(folder / "a-start-0", first, settings)
    check(folder / "a-bc-0", then, settings)
    shutil.copytree(folder, tmp_path / "moved")
    check(
        tmp_path / "moved" / "a-bc-0", [word.replace(str(folder), str(tmp_path / "moved")) for word in then], settings
    )


@pytest.mark.parametrize(
    ("other", "differs"),
    [
        (["--tokens", "7"], "tokens=None, not 7"),
        (["--model", "tiny"], "policy='tiny:1m', not 'tiny'"),
        (["--steps", "2"], "steps=1, not 2"),
        (["--seed", "3"], "seed=0, not 3"),
        (["--train-instances", "5"], "train_instances=None, not 5"),
        (["--option", "max_turns=3"], "options={'highest': 8}, not {'highest': 8, 'max_turns': 3}"),
    ],
)
def test_a_run_of_other_arguments_is_refused_and_stays(other, differs, begun):
    folder, first, _ = begun
    with pytest.raises(RecipeError) as caught:
        check(folder / "a-start-0", [*first, *other], settings)
    assert str(caught.value).startswith(f"{folder / 'a-start-0'} has a run with {differs}: ")
    assert (folder / "a-start-0" / "reports.json").exists()


def test_an_older_run_lacks_arguments_that_have_their_default(begun, tmp_path):
    folder, first, _ = begun
    facts = json.loads((folder / "a-start-0" / "run.json").read_text())
    del facts["arguments"]["muon_lr"], facts["arguments"]["train_instances"]
    (tmp_path / "run.json").write_text(json.dumps(facts))
    check(tmp_path, first, settings)
    with pytest.raises(RecipeError, match="muon_lr=0.02, not 0.5"):
        check(tmp_path, [*first, "--muon-lr", "0.5"], settings)


def test_nothing_is_made_beside_runs_of_a_smaller_budget(tmp_path, monkeypatch):
    monkeypatch.setattr(comparison, "make", lambda *_: pytest.fail("made"))
    cell = Cell(course=COURSE, algorithm="grpo", seed=0)
    said = words(cell, tmp_path, 1e-3)
    (tmp_path / cell.name).mkdir()
    (tmp_path / cell.name / "run.json").write_text(json.dumps({"arguments": dict(settings(said).arguments)}))
    check(tmp_path / cell.name, said, settings)
    larger = replace(cell, course=replace(COURSE, tokens=1000))
    with pytest.raises(RecipeError, match=f"{cell.name} has a run with tokens=60, not 1000"):
        make_all([larger], tmp_path, rates={"grpo": 1e-3}, at_once=1, tell=print, settings=settings)


def test_the_commits_are_those_of_the_runs(tmp_path):
    for name, commit in (
        ("a", "c15d123" + "0" * 33),
        ("b", "c15d123" + "0" * 33),
        ("c", "abcdef0" * 5 + "+"),
        ("d", None),
    ):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"commit": commit}))
    assert comparison.commits([tmp_path / name for name in "ab"]) == "commit c15d123"
    assert comparison.commits([tmp_path / name for name in "abcd"]) == "commits c15d123, abcdef0+, unknown"


def test_a_table_in_a_readme_does_not_mark_later_runs_as_changed(monkeypatch, tmp_path):
    git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x"]
    (tmp_path / "deep").mkdir()
    for name in ("README.md", "deep/README.md", "deep/prompt.md"):
        (tmp_path / name).write_text("before")
    for line in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *line], check=True)
    monkeypatch.setattr(folder, "__file__", str(tmp_path / "deep/code.py"))
    head = folder.commit()
    for name in ("README.md", "deep/README.md"):
        (tmp_path / name).write_text("after")
    assert folder.commit() == head
    (tmp_path / "deep/prompt.md").write_text("after")
    assert folder.commit() == f"{head}+"


def test_the_command_has_the_words_that_chose_what_is_in_the_table(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(curves, "_courses", lambda: [COURSE])
    monkeypatch.setattr(curves, "SEEDS", range(2))
    monkeypatch.setattr(comparison, "make_all", lambda cells, folder, **_: runs(folder, 0.5, 0.75))
    monkeypatch.setattr(comparison, "commits", lambda runs: f"commit of {len(list(runs))}")
    chosen = ["--task", "guess_number", "--algorithm", "grpo", "--part", "one"]
    assert command("curves", "--out", str(tmp_path), *chosen) == 0
    said = "Command: `make curves SIZE=small ARGS='--task guess_number --algorithm grpo --part one'`, commit of 4. "
    assert said in capsys.readouterr().out
