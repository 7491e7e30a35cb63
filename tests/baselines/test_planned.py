"""Recipes whose episodes a planner or a context changes: two steps on their task, and the same bits when resumed."""

from __future__ import annotations

import importlib
import math
from dataclasses import replace

import pytest
import torch

from lmgym.policy.load import load_local
from lmgym.train import loop
from lmgym.train.log import read_metrics
from tests.components import chromium
from tests.train.interrupted import Interrupted, dying
from tests.train.test_resume_critics import bits
from tests.train.victim import toy_policy

SHORT = {"warmup": 1, "warmup_episodes": 2, "evaluate": 2, "steps": 2, "autocast": False}
CASES = {
    "practitioner": ("alfworld", {}, {"instances": 2, "group": 2, "budget": 2}),
    "ui_s1": ("webforms", {"max_turns": 3}, {"instances": 1, "group": 2, "budget": 2}),
    "supo": ("webshop", {"products": 500}, {"instances": 2, "group": 2, "limit": 300, "budget": 3}),
    "webagent_r1": ("webforms", {"max_turns": 3}, {"instances": 1, "group": 2, "budget": 2}),
    "mgpo": ("lmgym/VisualSearchMGPO-v0", {}, {"instances": 2, "group": 2}),
    "arpo": ("alfworld", {}, {"instances": 2, "group": 4, "roots": 2, "budget": 3}),
    "aepo": ("alfworld", {}, {"instances": 2, "group": 4, "budget": 3}),
}


SEES = ("mgpo",)
BROWSER = ("webagent_r1", "ui_s1")


def trainer(name, tmp_path):
    """Return a function that trains the recipe in a folder."""
    task, options, changes = CASES[name]
    if name in BROWSER:
        chromium()
    module = importlib.import_module(f"lmgym.baselines.recipes.{name}")

    def train(folder, *, resume=False):
        args = module.Args(**{**SHORT, **changes})
        recipe = replace(module.recipe(args), filter=[])  # a toy policy's groups are flat
        return loop.run(
            recipe,
            load_local("tiny-vl", seed=0, device="cpu") if name in SEES else toy_policy(),
            task=task,
            options=options,
            folder=tmp_path / folder,
            resume=resume,
            save_seconds=0.0,
            lockstep=True,
            quiet=True,
        )

    return train


@pytest.mark.parametrize("name", CASES)
def test_two_steps_on_its_task(name, tmp_path):
    trainer(name, tmp_path)("whole")
    rows = [row for row in read_metrics(tmp_path / "whole") if row["stage"] == "rl" and "evaluated_success" not in row]
    assert len(rows) == 2
    assert all(row["trained_tokens"] > 0 for row in rows)
    figures = [value for row in rows for value in row.values() if isinstance(value, float)]
    assert all(math.isfinite(value) for value in figures)


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in BROWSER)) for n in CASES])
def test_a_run_resumed_ends_with_the_same_bits(name, tmp_path):
    train = trainer(name, tmp_path)
    train("whole")

    def first_of_rl(run):
        return run.cursor.step == 1 and run.recipe.unrolled()[run.cursor.stage].name == "rl"

    with dying(first_of_rl, written=False), pytest.raises(Interrupted):
        train("cut")
    train("cut", resume=True)
    whole, cut = bits(tmp_path / "whole"), bits(tmp_path / "cut")
    assert len(whole) == len(cut) > 10
    assert all(torch.equal(a, b) for a, b in zip(whole, cut, strict=True))
