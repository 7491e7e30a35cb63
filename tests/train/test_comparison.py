"""Curves: which runs are made, when they are made again, and the table that they come to."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from lmgym.cli.curves import END, START, between, report
from lmgym.errors import RecipeError
from lmgym.train import comparison
from lmgym.train.comparison import Cell, Course, best_rates, interval, make, read, start_words, table, words

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


def test_a_rate_is_a_factor_of_the_algorithms_own(tmp_path):
    said = words(Cell(course=COURSE, algorithm="grpo", seed=0, rate=3.0), tmp_path, 1e-3)
    assert float(said[said.index("--lr") + 1]) == pytest.approx(3e-3)


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
    with pytest.raises(RecipeError, match=r"wrong ended with 2: lmgym: unknown baseline 'gpro'"):
        make(tmp_path, ["train", "gpro", "guess_number"], tmp_path / "wrong")


def test_the_picture_is_drawn(tmp_path):
    comparison.draw(runs(tmp_path, 0.5, 0.7), tmp_path / "curves.png")
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_text_goes_between_the_markers():
    assert between(f"a{START}old{END}b", "new") == f"a{START}\nnew\n{END}b"
    with pytest.raises(RecipeError, match="no markers"):
        between("nothing", "new")


@pytest.mark.slow
def test_curves_of_two_algorithms_are_made_from_one_command(tmp_path, monkeypatch):
    from lmgym.cli import curves, main

    monkeypatch.setattr(curves, "_plan", lambda size: ([COURSE], range(2)))
    readme = tmp_path / "README.md"
    readme.write_text(f"{START}{END}")
    out = str(tmp_path / "runs")
    monkeypatch.setattr(sys, "argv", ["lmgym", "curves", "--out", out, "--write", str(readme), "--at-once", "1"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert readme.read_text().count("| guess_number |") == 2
    assert (tmp_path / "curves.png").exists()
    readme.write_text(f"{readme.read_text()}<!-- curves of one: made by `make curves` -->\n<!-- /curves of one -->\n")
    monkeypatch.setattr(sys, "argv", [*sys.argv, "--part", "one", "--algorithm", "grpo"])
    with pytest.raises(SystemExit):
        main()
    text = readme.read_text()
    assert text.count("| guess_number | grpo |") == 2
    assert text.endswith("![success over tokens, steps and seconds](curves-one.png)\n<!-- /curves of one -->\n")


def test_trials_stop_at_half_the_tokens_and_are_judged_on_the_training_split(tmp_path):
    said = words(Cell(course=COURSE, algorithm="grpo", seed=comparison.TRIAL_SEED), tmp_path, 1e-3)
    assert said[said.index("--tokens") + 1] == "30"
    assert said[said.index("--evaluate-split") + 1] == "train"


def test_a_course_on_part_of_the_split_begins_and_goes_on_with_that_part(tmp_path):
    cell = Cell(course=replace(COURSE, train_instances=8), algorithm="grpo", seed=0)
    for said in (start_words(cell, tmp_path), words(cell, tmp_path, 1e-3)):
        assert said[said.index("--train-instances") + 1] == "8"


def test_the_report_says_which_arms_were_tuned(tmp_path):
    curves = runs(tmp_path, 0.5)
    assert "on another seed: 3 learning rates at half the tokens;" in report(curves, "small", tuned=["guess_number"])
    assert "on another seed: guess_number: none;" in report(curves, "small", tuned=[])
