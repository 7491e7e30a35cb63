"""Every recipe takes two steps on its task, resumes with the same bits, and refuses a task that lacks what it needs.

A new recipe is one file in baselines/recipes, one line in CASES, and its mechanism in a test of its own.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import torch

from lmgym.baselines import recipes
from lmgym.env import registry
from lmgym.errors import RecipeError
from lmgym.evaluation import runner
from lmgym.policy.load import load_local
from lmgym.train import algorithms, curve, loop, preflight
from tests.baselines.test_planned import CASES as PLANNED
from tests.components import bubblewrap, chromium
from tests.train.interrupted import Interrupted, dying
from tests.train.small_tasks import BARE
from tests.train.test_resume import figures, weights
from tests.train.victim import toy_policy

FOLDER = Path(recipes.__file__).parent
NAMES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")
registered = registry.specs()
BEGUN = {"warmup": 1, "warmup_episodes": 2, "evaluate": 1, "autocast": False}
GROUPS = {**BEGUN, "steps": 2, "instances": 2, "group": 2, "budget": 3, "minibatches": 1}


@dataclass(frozen=True, kw_only=True)
class Case:
    """The task that a recipe is tried on."""

    task: str
    options: dict[str, Any] = field(default_factory=dict)  # of the task
    args: dict[str, Any] = field(default_factory=lambda: GROUPS)  # as little as it takes
    lacking: str = ""  # task that the recipe refuses; empty: it runs on any
    words: str = ""  # of the refusal
    model: str = ""  # other than the toy
    trains: bool = True  # False: on groups with a success alone, which the toy never has


COMPONENTS = {"miniwob": chromium, "python_math": bubblewrap, "swe_repair": bubblewrap}  # that the tasks need
WEB = {"page": "click-test", "places": False, "max_turns": 2}
CASES = {
    "arpo_gui": Case(
        task="miniwob",
        options={**WEB, "pixels": "screenshot", "observe": "none"},
        args={**GROUPS, "budget": 1, "warmup_episodes": 1},
        model="tiny-vl",
    ),
    "ui_tars_2": Case(
        task="miniwob",
        options=WEB,
        args={**BEGUN, "warmup_episodes": 1, "steps": 4, "critic_steps": 1, "instances": 2, "budget": 1, "imitated": 1},
    ),
    "dart": Case(
        task="miniwob", options=WEB, args={**GROUPS, "budget": 1, "warmup_episodes": 1, "group": 3}, trains=False
    ),
    "score": Case(
        task="frozen_lake",
        options={"protocol": "twice", "slippery": False},
        args={**GROUPS, "first_steps": 2},
        lacking="frozen_lake",
        words="reads the reward term 'attempt', and lmgym/FrozenLake-v0 gives reward",
    ),
    "spear": Case(task="alfworld", options={"max_turns": 4}, args={**GROUPS, "void": False, "imitated": 2}),
    "epo": Case(task="alfworld", options={"max_turns": 4}, args={**GROUPS, "first_turn": 1, "drop_flat": False}),
    "epo_adviser": Case(
        task="lmgym/ALFWorldAdvised-v0",
        options={"max_turns": 3},
        args={**BEGUN, "steps": 2, "instances": 2},
        lacking="alfworld",
        words="lmgym/ALFWorld-v0 has no seat 'adviser', which this recipe plays",
    ),
    "mua_rl": Case(
        task="retail_desk",
        options={"max_turns": 2},
        args={**GROUPS, "warmup_episodes": 1, "instances": 1, "budget": 1, "drop_flat": False, "user": "start"},
        lacking="doctor",
        words="lmgym/Doctor-v0 has no seat 'user', which this recipe plays",
    ),
    "doctor_agent_rl": Case(
        task="doctor",
        args={**GROUPS, "drop_flat": False},
        lacking="wordle",
        words="reads the reward term 'invalid', and lmgym/Wordle-v0 gives",
    ),
    "zhongjing": Case(
        task="doctor",
        args={**BEGUN, "steps": 2, "reward_steps": 2, "pairs": 2, "critic_steps": 1, "instances": 2, "budget": 2},
    ),
    "recoworld": Case(
        task="recommender",
        options={"max_turns": 2},
        args={**GROUPS, "warmup_episodes": 1, "instances": 1, "budget": 2, "drop_flat": False, "user": "start"},
        lacking="wordle",
        words="lmgym/Wordle-v0 has no seat 'user', which this recipe plays",
    ),
    "ufo": Case(
        task="try_again",
        args={**BEGUN, "steps": 2, "critic_steps": 1, "instances": 2, "tries": 2, "budget": 2, "minibatches": 1},
    ),
    "mars": Case(
        task="kuhn_poker",
        lacking="mini_hanabi",
        words="lmgym/MiniHanabi-v0 has no seat 'opponent', which this recipe plays; its seats are partner",
    ),
    "refuel_user": Case(
        task="negotiate",
        args={**BEGUN, "steps": 2, "pairs": 3, "budget": 3, "minibatches": 1},
        lacking="wordle",
        words="lmgym/Wordle-v0 has no seat 'partner', which this recipe plays",
    ),
    "vigorl": Case(
        task="lmgym/VisualSearchViGoRL-v0",
        args={**GROUPS, "trees": 2, "simulations": 3, "trace_steps": 1},
        lacking="wordle",
        words="lmgym/Wordle-v0 shows no pictures",
        model="tiny-vl",
    ),
    "gigpo": Case(task="alfworld", options={"max_turns": 4}),
    "retool": Case(
        task="python_math",
        args={**BEGUN, "steps": 2, "critic_steps": 1, "instances": 2, "budget": 2, "minibatches": 1},
    ),
    "simpletir": Case(
        task="python_math", options={"protocol": "simpletir"}, args={**GROUPS, "budget": 2}, trains=False
    ),
    "inspo": Case(task="wordle", args={**GROUPS, "every": 1, "drop_flat": False}),
    "gra": Case(
        task="webshop",
        options={"products": 500, "progress": 0.5},
        args={**GROUPS, "drop_flat": False},
        lacking="guess_number",
        words="reads the reward term 'progress', and lmgym/GuessNumber-v0 gives reward",
    ),
    "gra_swe": Case(
        task="swe_repair",
        options={"rewards": "dense", "max_turns": 2},
        args={**GROUPS, "drop_flat": False},
        lacking="guess_number",
        words="reads the reward term 'edited', and lmgym/GuessNumber-v0 gives reward",
    ),
    "igpo": Case(task="wordle", lacking="alfworld", words="ALFWorld-v0 tells no answer"),
    "scaling_inter": Case(
        task="alfworld",
        options={"max_turns": 4},
        args={**GROUPS, "budget": None, "limits": "2,3", "every": 1, "drop_flat": False},
    ),
}


def run(name: str, folder: Path, *, resume: bool = False) -> None:
    """Run a recipe with the settings of its case."""
    case, module = CASES[name], algorithms.load(name)
    if case.task in COMPONENTS:
        COMPONENTS[case.task]()
    policy = load_local(case.model, seed=0, device="cpu") if case.model else toy_policy()
    policy.sampling = replace(policy.sampling, max_tokens=4)
    loop.run(
        module.recipe(module.Args(**case.args)),
        policy,
        task=runner.id_of(case.task),
        options=case.options,
        folder=folder,
        resume=resume,
        save_seconds=0.0,
        lockstep=True,
        train_instances=8,
        quiet=True,
    )


def test_every_recipe_has_a_case():
    assert sorted({*CASES, *PLANNED}) == NAMES


@pytest.mark.parametrize("name", CASES)
def test_a_recipe_takes_two_steps_and_resumes_with_the_same_bits(name, tmp_path, monkeypatch):
    monkeypatch.setattr(curve, "draw", lambda folder: folder)  # half of the time
    run(name, tmp_path / "whole")
    rows = figures(tmp_path / "whole")
    steps = [row for row in rows if row["stage"] != "sft" and "evaluated_success" not in row]
    assert len(steps) >= 2
    assert any(row.get("trained_tokens") for row in steps) is CASES[name].trains, steps
    assert all(math.isfinite(value) for row in rows for value in row.values() if isinstance(value, float))
    first_of_rl = dying(lambda run: run.cursor.step == 1 and run.cursor.stage > 0, written=True)
    with first_of_rl, pytest.raises(Interrupted):
        run(name, tmp_path / "cut")
    run(name, tmp_path / "cut", resume=True)
    assert figures(tmp_path / "cut") == rows
    assert torch.equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.lacking])
def test_a_recipe_refuses_a_task_that_lacks_what_it_needs(name, tmp_path):
    case, module = CASES[name], algorithms.load(name)
    with pytest.raises(RecipeError, match=case.words) as caught:
        preflight.check(module.recipe(module.Args()), runner.id_of(case.lacking), {}, tmp_path, sees=True)
    assert "\n" not in str(caught.value)


NEEDS = {  # of recipes that refuse a bare task for another reason than that it has nobody to imitate
    "arpo": "is not deterministic, and this recipe replays .*: choose a task",
    "aepo": "is not deterministic, and this recipe replays .*: choose a task",
    "zhongjing": "is not deterministic, and this recipe replays .*: choose a task",
    "refuel_user": "is not deterministic, and this recipe replays .*: choose a task",
    "vigorl": "is not deterministic, and this recipe replays .*: choose a task",
    "mgpo": "shows no pictures, .*: choose a task that shows some",
    "ui_s1": "neither demonstrator nor oracle, and this recipe corrects .*: choose a task that has one",
    "igpo": "tells no answer, .*: choose a task that tells it",
    "mua_rl": r"has no seat 'user', .*: choose a task with that seat \(recommender, retail_desk, tau2\)",
    "recoworld": r"has no seat 'user', .*: choose a task with that seat \(recommender, retail_desk, tau2\)",
    "mars": r"has no seat 'opponent', .*: choose a task with that seat \(chess, .*\), or another seat",
    "epo_adviser": r"has no seat 'adviser', .*: choose a task with that seat \(alfworld\)",
    "score": "reward term 'attempt', and test/Bare-v0 gives reward: set the option of the task",
    "doctor_agent_rl": "reward term 'invalid', and test/Bare-v0 gives reward: set the option of the task",
    "gra": "reward term 'progress', and test/Bare-v0 gives reward: set the option of the task",
    "gra_swe": "reward term 'edited', and test/Bare-v0 gives reward: set the option of the task",
}


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_tells_of_a_bare_task_what_it_lacks_and_what_to_do(name, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "specs", lambda: MappingProxyType({**registered, BARE.id: BARE}))
    monkeypatch.setattr(runner, "specs", registry.specs)
    module = algorithms.load(name)
    with pytest.raises(RecipeError, match=NEEDS.get(name, "neither demonstrator nor oracle .*: use --warmup 0")) as e:
        preflight.check(module.recipe(module.Args()), BARE.id, {}, tmp_path, sees=True)
    assert "\n" not in str(e.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_without_the_evaluation_before_rl_has_the_same_other_stages(name):
    """Arms of an experiment run without it."""
    module = algorithms.load(name)
    whole, rest = (
        [stage.name for stage in module.recipe(module.Args(evaluate_before=e)).stages] for e in (True, False)
    )
    assert [stage for stage in whole if stage != "before RL"] == rest
    assert len(rest) == len(whole) - 1


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_is_short_and_tells_its_source(name):
    text = (FOLDER / f"{name}.py").read_text()
    assert len(text.splitlines()) <= 80
    docstring = text.split('"""')[1]
    assert f"lmgym train {name} " in docstring
    assert "Deviation" in docstring
    assert re.search(r"(et al\.|and \w+) 20\d\d, [A-Z]", docstring)
