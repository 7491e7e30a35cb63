"""Recipes learn chain(3, 5) on a toy policy, and do not when their losses are turned around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines import bc
from lmgym.train import algorithms, curve, loop
from tests.baselines.test_learning import WARMUP, turned
from tests.train.chain import SPEC, chain_policy

pytestmark = pytest.mark.slow
GROUPS = {"steps": 20, "instances": 8, "group": 8, "lr": 2e-2, "evaluate": 100, "autocast": False}
CASES = {
    "gigpo": {**GROUPS, "drop_flat": False},
    "epo": GROUPS,
    "aepo": GROUPS,
    "webagent_r1": GROUPS,
    "scaling_inter": {**GROUPS, "budget": None, "limits": "3,5", "every": 5},
    "ufo": {
        "steps": 20,
        "instances": 16,
        "tries": 8,
        "lr": 5e-3,
        "critic_lr": 1e-2,
        "evaluate": 100,
        "autocast": False,
    },
}


def successes(name: str, folder, *, opposite: bool) -> tuple[float, float]:
    """Success after imitation and after the recipe's RL."""
    module = algorithms.load(name)
    recipe = module.recipe(module.Args(**CASES[name]))
    loss = [replace(term, loss=turned(term.loss)) if opposite else term for term in recipe.loss[:1]]
    recipe = replace(recipe, loss=[*loss, *recipe.loss[1:]], stages=[bc.sft(WARMUP), *recipe.stages[1:]])
    result = loop.run(recipe, chain_policy(), task=SPEC.id, folder=folder, quiet=True, save_seconds=1e9)
    before, after = (report.success.mean for report in result.reports.values())
    return before, after


@pytest.mark.parametrize("name", CASES)
def test_a_recipe_learns_and_unlearns_the_other_way(name, tmp_path, monkeypatch):
    monkeypatch.setattr(curve, "draw", lambda folder: folder)
    before, after = successes(name, tmp_path / "run", opposite=False)
    assert 0.05 < before < 0.6
    assert after > before + 0.15
    before, after = successes(name, tmp_path / "opposite", opposite=True)
    assert after < before - 0.05
