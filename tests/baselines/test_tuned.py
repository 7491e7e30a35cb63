"""baselines/tuned.toml: every line of it can be run, and it holds for small models, or for the one that it names."""

from __future__ import annotations

import dataclasses
import importlib
import json
import re

import pytest

from lmgym.baselines import archer, bc, filtered_bc, grpo, ilql, mc, ppo, refuel, rloo
from lmgym.baselines.curves import exact_archer
from lmgym.baselines.recipes import refuel_user, supo
from lmgym.cli.options import read_args
from lmgym.env.registry import find
from lmgym.errors import RecipeError
from lmgym.train import loop
from lmgym.train.algorithms import algorithms
from lmgym.train.presets import PLAIN, SMALL, Tuned, is_small, table, time_limits, tuned
from tests.command import command

TUNED = [(task, algorithm) for task, algorithms in table().items() for algorithm in algorithms]


@pytest.mark.parametrize(("task", "algorithm"), TUNED)
def test_what_is_tuned_are_arguments_of_the_baseline(task: str, algorithm: str) -> None:
    assert task == SMALL or find(task).id == f"lmgym/{task}"
    assert algorithm in algorithms()
    module = importlib.import_module(f"lmgym.baselines.{algorithm}")
    own, plain = table()[task][algorithm], module.Args()
    flags = {name: f"--{'no-' * (value is False)}{name.replace('_', '-')}" for name, value in own.args.items()}
    words = [
        w for name, value in own.args.items() for w in [flags[name], *[str(value)] * (not isinstance(value, bool))]
    ]
    assert read_args(module.Args, words) == dataclasses.replace(plain, **own.args)  # of the right types, too
    module.recipe(dataclasses.replace(plain, **own.args))
    below = {} if task == SMALL else table()[SMALL][algorithm].args  # what the preset replaces
    same = [name for name, value in own.args.items() if below.get(name, getattr(plain, name)) == value]
    assert not same, f"{same} are the baseline's own"


def test_it_holds_for_its_task_algorithm_and_model() -> None:
    spec = find("click_target")
    own = tuned("grpo", spec.id, None)
    assert own.model == "tiny-vl"
    assert own.args
    assert tuned("grpo", spec.id, "tiny-vl") == own
    assert table()[SMALL]["grpo"].args | own.args == own.args
    assert tuned("grpo", spec.id, "tiny-vl:4m") == Tuned("tiny-vl:4m", table()[SMALL]["grpo"].args)
    assert tuned("grpo", spec.id, None, own=False) == Tuned(PLAIN, table()[SMALL]["grpo"].args)
    assert tuned("rloo", spec.id, None) == Tuned(PLAIN, table()[SMALL]["rloo"].args)
    assert tuned("grpo", spec.id, "smollm2") == Tuned("smollm2")
    assert tuned("dart", spec.id, None) == Tuned(PLAIN)


@pytest.mark.parametrize("first", ["tiny", "tiny:1m", "tiny-vl", "tiny?words=wordle", "smollm2", "hf:somewhere"])
def test_models_that_runs_made_of_small_ones_are_small(tmp_path, first: str) -> None:
    model = first
    for name in ("start", "run"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(json.dumps({"arguments": {"policy": model}}))
        model = f"hf:{tmp_path / name}/policy"
    assert is_small(model) is is_small(first) is first.startswith("tiny")


@pytest.mark.parametrize(
    ("algorithm", "recipe_args"),
    [("grpo", grpo.Weighted), ("ppo", ppo.Shared), ("refuel", refuel_user.Args), ("archer", exact_archer.Args)],
)
def test_recipes_begin_with_the_values_of_small_models(algorithm: str, recipe_args) -> None:
    args = dataclasses.asdict(recipe_args())
    for name, value in table()[SMALL][algorithm].args.items():
        assert args[name] == value, name


def test_small_models_imitate_before_rl_as_by_bc_alone() -> None:
    alone, before = table()[SMALL]["bc"].args, table()[SMALL]["grpo"].args
    for name, value in alone.items():
        assert before[name if name in ("interject", "observation_weight") else f"warmup_{name}"] == value


def test_runs_that_name_each_other_end_the_search(tmp_path) -> None:
    for name, other in (("one", "two"), ("two", "one")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").write_text(
            json.dumps({"arguments": {"policy": f"hf:{tmp_path / other}/policy"}})
        )
    assert not is_small(f"hf:{tmp_path}/one/policy")


def test_defaults_are_those_of_the_papers() -> None:
    """Sizes of batches and buffers are not the papers'."""
    args = grpo.Args()
    assert (args.clip, args.clip_high, args.dual, args.drop_flat) == (0.2, 0.2, None, False)
    assert (args.kl, args.kl_kind, args.minibatches, args.epochs) == (0.04, "k3", 1, 1)
    assert (args.std, args.negative_advantage_weight, args.aggregation) == (True, 1.0, "seq_mean")
    assert (rloo.Args().kl_reward, rloo.Args().minibatches) == (0.05, 1)
    clipped = ppo.Args()
    assert (clipped.epochs, clipped.kl_reward, clipped.whiten_floor) == (1, 1e-3, 0.0)
    assert (clipped.gamma, clipped.lam, clipped.limit_ends) == (1.0, 0.95, True)
    assert (clipped.critic, clipped.critic_steps) == ("joint", 0)
    assert (clipped.value_coef, clipped.value_clip) == (1.0, 0.2)
    assert (archer.Args().tries, archer.Args().gamma, archer.Args().tau) == (1, 0.95, 0.1)
    assert (archer.Args().encoder, archer.Args().adam_eps) == ("own", 1e-8)
    assert (refuel.Args().eta, refuel.Args().scale) == (1_000.0, "none")
    modules = (grpo, rloo, ppo, archer, refuel, bc, filtered_bc, mc, ilql)
    assert [each.Args().lr for each in modules] == [1e-6, 1e-6, 1e-5, 1e-5, 3e-7, 1e-4, 1e-5, 1e-5, 1e-5]
    imitation = {"lr": 1e-4, "final_lr": 1.0, "weight_decay": 1e-3, "optimiser": "adamw"}
    imitation |= {"interject": 0.0, "observation_weight": 0.0}
    assert {name: getattr(bc.Args(), name) for name in imitation} == imitation
    for module in modules:
        if module is not bc:
            stage = module.recipe(module.Args()).stages[0]
            assert (stage.optimiser.kind, stage.optimiser.lr, stage.planner) == ("adamw", 1e-4, None)
    assert (filtered_bc.Args().share, filtered_bc.Args().within) == (0.3, "all")


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
    printed = capsys.readouterr().out
    assert "presets: --model tiny-vl --warmup-lr 0.002 --warmup-final-lr 0.02" in printed
    assert "--lr 0.0003 --clip-high 0.28" in printed
    assert ("--steps 50" in printed) is not untuned


def test_a_run_as_published_takes_no_preset(tmp_path, capsys) -> None:
    few = ["--warmup", "0", "--steps", "1", "--instances", "2", "--group", "2", "--evaluate", "2", "--threads", "1"]
    assert command("train", "grpo", "guess_number", *few, "--as-published", "--out", str(tmp_path / "run")) == 0
    kept = json.loads((tmp_path / "run" / "run.json").read_text())["arguments"]
    assert (kept["policy"], kept["kl"], kept["clip_high"]) == ("tiny", 0.04, 0.2)
    assert "presets" not in capsys.readouterr().out


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
