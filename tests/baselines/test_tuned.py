"""baselines/tuned.toml: every line of it can be run, and it holds for the model that it names alone."""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys

import pytest

from lmgym.baselines import grpo
from lmgym.cli import main
from lmgym.cli.options import read_args
from lmgym.env.registry import find
from lmgym.train.algorithms import algorithms
from lmgym.train.presets import PLAIN, Tuned, table, tuned

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
def test_a_run_says_what_it_takes(tmp_path, monkeypatch, capsys, untuned: bool) -> None:
    few = ["--warmup", "0", "--steps", "1", "--instances", "2", "--group", "2", "--evaluate", "2", "--threads", "1"]
    words = ["train", "grpo", "click_target", *few, "--out", str(tmp_path / "run")]
    words += ["--untuned", "--model", "tiny-vl"] if untuned else []
    monkeypatch.setattr(sys, "argv", ["lmgym", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    kept = json.loads((tmp_path / "run" / "run.json").read_text())
    args = vars(grpo.Args()) if untuned else table()["ClickTarget-v0"]["grpo"].args
    assert kept["arguments"]["adam_eps"] == args["adam_eps"]
    assert ("tuned for this task: --model tiny-vl" in capsys.readouterr().out) is not untuned
