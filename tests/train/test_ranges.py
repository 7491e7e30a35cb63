"""Numbers that no algorithm can use are refused in a line, before anything is made."""

from __future__ import annotations

import importlib

import pytest

from lmgym.cli.options import read_args
from lmgym.errors import RecipeError
from lmgym.train.critics import Estimator, mlp
from lmgym.train.interfaces import Optimiser
from lmgym.train.ranges import Range
from lmgym.train.schedule import Until

REFUSED = [
    "grpo --invalid-penalty -1",
    "grpo --state-advantage-weight -1",
    "grpo --invalid-cost -1",
    "grpo --negative-advantage-weight -1",
    "grpo --clip -0.5",
    "grpo --clip-high -1",
    "grpo --dual 0.5",
    "grpo --longest 0",
    "grpo --lr -1",
    "bc --lr 1e999",
    "bc --lr 1e39",
    "bc --steps -1",
    "bc --interject 2",
    "bc --muon-lr -1",
    "filtered_bc --warmup -1",
    "refuel --final-lr -1",
    "refuel --adam-eps 0",
    "ppo --gamma 2",
    "ppo --lam -0.1",
    "ppo --value-clip -1",
    "ppo --critic-lr -1",
    "ppo --kl-reward 0 --kl-target 5",
    "rloo --kl-reward 0 --kl-target 5",
    "archer --critic-batch 0",
    "archer --capacity 0",
    "archer --tries 0",
    "archer --critic-lr -1",
    "mc --stumbles 5",
    "ilql --cql -1",
    "recipes.spear --imitated -3",
]


@pytest.mark.parametrize("name", ["ppo", "grpo", "rloo"])
def test_the_divergence_that_has_no_gradient_is_no_loss(name):
    module = importlib.import_module(f"lmgym.baselines.{name}")
    with pytest.raises(RecipeError, match="--kl-kind takes k2 or k3; got 'k1'"):
        read_args(module.Args, ["--kl", "0.1", "--kl-kind", "k1"])
    with pytest.raises(RecipeError, match="kl_kind is k2 or k3; got k1"):
        module.Args(kl=0.1, kl_kind="k1")
    for kind in ("k2", "k3"):
        more = {} if name == "grpo" else {"kl_reward": 0.0}
        module.recipe(module.Args(kl=0.1, kl_kind=kind, **more))


@pytest.mark.parametrize("command", REFUSED)
def test_a_number_out_of_range_is_refused_by_its_name(command):
    name, *words = command.split()
    module = importlib.import_module(f"lmgym.baselines.{name}")
    with pytest.raises(RecipeError) as caught:
        module.recipe(read_args(module.Args, words))
    assert words[-2].removeprefix("--").replace("-", "_") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Optimiser(lr=float("inf")),
        lambda: Optimiser(lr=float("nan")),
        lambda: Until(steps=-1),
        lambda: Estimator(mlp([2, 1], seed=[0]), lr=-1.0),
    ],
)
def test_records_without_options_check_their_numbers(make):
    with pytest.raises(RecipeError, match=r"lr (is )?in \[0, 1e\+06\]|^steps is 0 or more; got"):
        make()


def test_a_range_has_its_ends_unless_it_is_open():
    assert all(value in Range(0, 1) for value in (0, 0.5, 1))
    assert not any(value in Range(0, 1, open=True) for value in (0, 1.1))
    assert float("inf") not in Range(0)
