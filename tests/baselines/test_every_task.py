"""Every baseline runs on every task: a step of each, on the first task of each folder that needs no browser."""

from __future__ import annotations

import importlib
import json
import math
from contextlib import closing
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from lmgym.baselines import grpo
from lmgym.env import registry
from lmgym.errors import LmgymError, RecipeError
from lmgym.evaluation import runner
from lmgym.train import loop, preflight
from lmgym.train.algorithms import algorithms
from lmgym.train.load import load_policy
from lmgym.train.log import read_metrics
from tests.sampled import sampled
from tests.train.victim import toy_policy

BEGUN = {"warmup": 1, "warmup_episodes": 2, "evaluate": 2, "autocast": False}
STEP = {  # of each baseline: as little as it takes
    "bc": {"steps": 1, "episodes": 2, "evaluate": 2, "autocast": False},
    "filtered_bc": {**BEGUN, "steps": 1, "instances": 2, "group": 2, "budget": 3},
    "grpo": {**BEGUN, "steps": 1, "instances": 2, "group": 2, "budget": 3, "drop_flat": False},
    "rloo": {**BEGUN, "steps": 1, "instances": 2, "group": 2, "budget": 3},
    "ppo": {**BEGUN, "steps": 1, "critic_steps": 1, "instances": 3, "budget": 3},
    "refuel": {**BEGUN, "steps": 1, "pairs": 3, "budget": 3},
    "archer": {**BEGUN, "steps": 1, "fit": 1, "rollouts": 3, "budget": 3, "critic_draws": 4, "actor_draws": 4},
    "mc": {**BEGUN, "steps": 1, "episodes": 4, "demonstrated": 1, "sampled": 1, "budget": 2, "base": "small"},
    "ilql": {**BEGUN, "steps": 1, "episodes": 4, "demonstrated": 1, "sampled": 1, "budget": 2, "base": "small"},
}
OPTIONS = {"webshop": {"products": 500}}
SHORT = {"max_turns": 6}  # evaluations play no longer
LEARNT = ("trained_tokens", "critic_tokens", "critic_q_loss", "value_loss")


def firsts() -> dict[str, str]:
    """The first task of each folder that does not live on official data alone, by the folder's name."""
    found: dict[str, str] = {}
    for spec in registry.specs().values():
        if not spec.remote and not any(spec.splits.values()):
            continue
        found.setdefault(spec.entry_point.split(".")[2], spec.id)
    return found


TASKS = firsts()
ELSEWHERE = ("remote", "click_target", "visual_search", "swe_repair", "terminal")  # a server, pictures, repositories
IN_TEXT = [id_ for n, id_ in TASKS.items() if n not in ELSEWHERE and not {"web", "gui"} & {*registry.find(id_).extras}]
WITHOUT_BROWSER = [name for name, id_ in TASKS.items() if registry.find(id_).player != "thread"]


def test_all_nine_are_there():
    assert set(STEP) == {name for name, module in algorithms().items() if ".recipes." not in module}


def missing(name: str, task: str, folder: Path) -> str:
    """Return the requirement of a baseline that a task does not meet; empty if it can start."""
    module = importlib.import_module(f"lmgym.baselines.{name}")
    try:
        preflight.check(module.recipe(module.Args()), TASKS[task], OPTIONS.get(task, {}), folder)
    except LmgymError as error:
        return str(error)
    return ""


@pytest.mark.slow
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("name", STEP)
def test_what_a_baseline_needs_of_a_task_is_there_or_said_in_a_line(task, name, tmp_path):
    said = missing(name, task, tmp_path)
    assert "\n" not in said
    if task != "remote":  # which is nothing without its server's address
        shown = "neither demonstrator nor oracle" in said and not runner.demonstrates(TASKS[task])
        assert not said or shown or "reads text only" in said or (name == "refuel" and "rewinds episodes" in said)


@pytest.mark.parametrize(("name", "task"), sampled(product(STEP, WITHOUT_BROWSER), every=5))
def test_a_step_of_a_baseline_on_a_task(name, task, tmp_path):
    module, options = importlib.import_module(f"lmgym.baselines.{name}"), {**OPTIONS.get(task, {}), **SHORT}
    run = partial(loop.run, module.recipe(module.Args(**STEP[name])), toy_policy(), task=TASKS[task], options=options)
    with closing(registry.build(TASKS[task], **options)) as env:
        pictures = "images" in env.observation_space.spaces
    if pictures:  # the policy is of text alone
        with pytest.raises(RecipeError, match="reads text only"):
            run(folder=tmp_path / "run", quiet=True)
        return
    result = run(folder=tmp_path / "run", quiet=True, lockstep=True, train_instances=8)
    assert all(len(report.outcomes) == 2 for report in result.reports.values())
    rows = [row for row in read_metrics(tmp_path / "run") if "evaluated_success" not in row]
    assert {row["stage"] for row in rows} >= {"sft"}
    learnt = [row for row in rows if any(row.get(figure) for figure in LEARNT)]
    assert len({row["stage"] for row in learnt}) >= (1 if name in ("bc", "filtered_bc") else 2), json.dumps(rows)
    figures = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert all(math.isfinite(value) for value in figures)


@pytest.mark.slow
@pytest.mark.parametrize("task", [*IN_TEXT, "lmgym/ChessEndgames-v0"])
def test_two_updates_of_grpo_on_a_task_in_text(task, tmp_path):
    options = {**OPTIONS.get(registry.find(task).name, {}), **SHORT}
    args = grpo.Args(**{**STEP["grpo"], "steps": 2, "warmup": int(runner.demonstrates(task))})
    policy = load_policy("tiny:1m", 1.0, 0)
    loop.run(grpo.recipe(args), policy, task=task, options=options, folder=tmp_path, quiet=True)
    updates = [row for row in read_metrics(tmp_path) if row["stage"] == "rl"]
    assert len(updates) == 2
    assert all(row["trained_tokens"] and row["optimiser_steps"] for row in updates)
    assert all(math.isfinite(row["loss"]) and math.isfinite(row["gradient_norm"]) for row in updates)


LMRL_TASKS = ("Maze", "TextNav", "Wordle", "Chess", "ChessEndgames", "TwentyQuestions", "GuessMyCity", "CarDealer")
STAGES = {"bc": "sft", "filtered_bc": "rl", "mc": "values", "ilql": "values", "ppo": "rl"}  # where the updates are


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "task"), sampled(product(STAGES, LMRL_TASKS)))
def test_two_updates_of_lmrl_gyms_algorithms_on_its_tasks(name, task, tmp_path):
    module = importlib.import_module(f"lmgym.baselines.{name}")
    recipe = module.recipe(module.Args(**{**STEP[name], "steps": 2}))
    loop.run(
        recipe, toy_policy(), task=f"lmgym/{task}-v0", options=SHORT, folder=tmp_path, quiet=True, train_instances=8
    )
    rows = [row for row in read_metrics(tmp_path) if row["stage"] == STAGES[name] and "evaluated_success" not in row]
    updates = [row for row in rows if name == "filtered_bc" or any(row.get(figure) for figure in LEARNT)]
    assert len(updates) >= 2, rows  # filtered BC keeps successes only, and such a policy has none
    assert all(math.isfinite(value) for row in updates for value in row.values() if isinstance(value, float))
