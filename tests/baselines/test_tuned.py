"""baselines/tuned.toml: every line of it can be run, and it holds for the model that it names alone."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re

import pytest

from lmgym.baselines import bc, grpo
from lmgym.baselines.recipes import supo
from lmgym.cli.options import read_args
from lmgym.env.registry import find
from lmgym.errors import RecipeError
from lmgym.train import loop
from lmgym.train.algorithms import algorithms
from lmgym.train.presets import PLAIN, Tuned, table, time_limits, tuned
from tests.command import command

TUNED = [(task, algorithm) for task, algorithms in table().items() for algorithm in algorithms]


@pytest.mark.parametrize(("task", "algorithm"), TUNED)
def test_what_is_tuned_are_arguments_of_the_baseline(task: str, algorithm: str) -> None:
    assert find(task).id == f"lmgym/{task}"
    assert algorithm in algorithms()
    module = importlib.import_module(f"lmgym.baselines.{algorithm}")
    own, plain = table()[task][algorithm], module.Args()
    words = [part for name, value in own.args.items() for part in (f"--{name.replace('_', '-')}", str(value))]
    assert read_args(module.Args, words) == dataclasses.replace(plain, **own.args)  # of the right types, too
    module.recipe(dataclasses.replace(plain, **own.args))
    same = [name for name, value in own.args.items() if getattr(plain, name) == value]
    assert not same, f"{same} are the baseline's own"


def test_it_holds_for_its_task_algorithm_and_model() -> None:
    spec = find("click_target")
    own = tuned("grpo", spec.id, None)
    assert own.model == "tiny-vl"
    assert own.args
    assert tuned("grpo", spec.id, "tiny-vl") == own
    assert tuned("grpo", spec.id, "tiny-vl:4m") == Tuned("tiny-vl:4m")
    assert tuned("rloo", spec.id, None) == Tuned(PLAIN)
    assert tuned("grpo", find("wordle").id, None) == Tuned("tiny")


def test_words_win_over_what_is_tuned() -> None:
    args = read_args(grpo.Args, ["--steps", "7"], {"steps": 9, "lr": 0.5})
    assert (args.steps, args.lr) == (7, 0.5)


@pytest.mark.parametrize("untuned", [True, False])
def test_a_run_says_what_it_takes(tmp_path, capsys, untuned: bool) -> None:
    few = ["--warmup", "0", "--steps", "1", "--instances", "2", "--group", "2", "--evaluate", "2", "--threads", "1"]
    words = ["train", "grpo", "click_target", *few, "--out", str(tmp_path / "run")]
    words += ["--untuned", "--model", "tiny-vl"] if untuned else []
    assert command(*words) == 0
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    args = vars(grpo.Args()) if untuned else table()["ClickTarget-v0"]["grpo"].args
    assert kept["arguments"]["adam_eps"] == args["adam_eps"]
    assert ("tuned for this task: --model tiny-vl" in capsys.readouterr().out) is not untuned


def test_minutes_are_shared_between_imitation_and_learning() -> None:
    assert time_limits(grpo.Args, 15) == {"warmup_seconds": 324.0, "seconds": 486.0}  # and 90 s for evaluations
    assert time_limits(bc.Args, 15) == {"seconds": 810}
    assert time_limits(supo.Args, 15) == {}
    with pytest.raises(RecipeError, match="above 0; got -1"):
        time_limits(grpo.Args, -1)


@pytest.mark.parametrize("steps", [[], ["--steps", "2"]])
def test_minutes_limit_a_run_without_steps(tmp_path, monkeypatch, capsys, steps: list[str]) -> None:
    few = ["--warmup", "0", "--instances", "2", "--group", "2", "--evaluate", "2", "--threads", "1", "--budget", "2"]
    words = ["train", "grpo", "guess_number", "--model", "tiny:1m", *few, "--out", str(tmp_path / "run")]
    monkeypatch.setattr(loop, "MEASURED", 0.0)
    assert command(*words, *steps, "--minutes", "60", "--tokens", "10") == 0
    kept, printed = json.loads((tmp_path / "run" / "run.json").read_text())["arguments"], "".join(capsys.readouterr())
    assert (kept["steps"], kept["seconds"]) == ((2, None) if steps else (60, 1944))
    assert ("time limit 60 min: --warmup-seconds 1296, --seconds 1944;" in printed) is (not steps)
    assert (re.search(r"rl: [0-9.]+ s a step, so \d+ of 60 steps in its time limit", printed) is None) is bool(steps)
