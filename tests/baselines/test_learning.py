"""Each baseline learns chain(3, 5) on a toy policy, and not with its loss turned around or its baseline removed."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines import bc, filtered_bc, grpo, ppo, rloo
from lmgym.train import loop
from lmgym.train.parts.credit import within_groups
from lmgym.train.parts.rewards import each
from lmgym.train.presets import SMALL, table
from tests.train.chain import SPEC, chain_policy


def small(module, **args):
    """Return the arguments of a baseline with its preset for small models."""
    return module.Args(**table()[SMALL][module.__name__.rpartition(".")[2]].args | args)


TOY = {"optimiser": "adamw", "minibatches": 1, "observation_weight": 0.0, "interject": 0.0, "autocast": False}
WARMUP = small(bc, steps=24, lr=3e-2, final_lr=0.1, episodes=32, **TOY)
GROUPS = {"steps": 20, "instances": 8, "group": 8, "evaluate": 100, "autocast": False}
BASELINES = {
    bc: small(bc, steps=40, lr=5e-2, final_lr=0.1, episodes=16, evaluate=100, **TOY),
    grpo: small(grpo, negative_advantage_weight=0.0, lr=2e-2, **GROUPS),
    filtered_bc: small(filtered_bc, lr=2e-2, **GROUPS),
    ppo: small(ppo, steps=20, instances=64, lr=5e-3, gamma=0.95, critic_lr=1e-2, evaluate=100, autocast=False),
    rloo: small(rloo, lr=1.2e-2, **GROUPS | {"steps": 30}),
}


def turned(loss):
    def opposite(*args, **kwargs):
        tokens, figures = loss(*args, **kwargs)
        return -tokens, figures

    return opposite


def successes(module, args, folder, **changes) -> list[float]:
    recipe = replace(module.recipe(args), **changes)
    if module is not bc:
        recipe = replace(recipe, stages=[bc.sft(WARMUP), *recipe.stages[1:]])
    result = loop.run(recipe, chain_policy(), task=SPEC.id, folder=folder, quiet=True, save_seconds=1e9)
    return [report.success.mean for report in result.reports.values()]


def named(*values):
    return pytest.param(*values, id=values[0].__name__.rpartition(".")[2])


@pytest.mark.parametrize("module", [named(module) for module in (bc, grpo, filtered_bc, ppo, rloo)])
def test_a_baseline_learns(tmp_path, module):
    *before, after = successes(module, BASELINES[module], tmp_path / "run")
    assert all(0.05 < success < 0.6 for success in before)
    assert after > 0.75  # of 100 episodes; the last digits of a run differ from one CPU to another


def test_bc_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(bc, "nll", turned(bc.nll))
    assert successes(bc, BASELINES[bc], tmp_path / "run")[-1] < 0.1


@pytest.mark.parametrize(
    ("module", "loss"),
    [
        named(grpo, "surrogate"),
        *(
            pytest.param(module, loss, marks=pytest.mark.slow, id=loss)
            for module, loss in ((filtered_bc, "nll"), (ppo, "surrogate"), (rloo, "reinforce"))
        ),
    ],
)
def test_a_baseline_does_not_learn_the_other_way(tmp_path, monkeypatch, module, loss):
    monkeypatch.setattr(module, loss, turned(getattr(module, loss)))
    before, after = successes(module, BASELINES[module], tmp_path / "run")
    assert after < before - 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "changes"),
    [
        (grpo, {"std": False, "aggregation": "const_norm", "longest": 10, "dual": None}),
        (grpo, {"aggregation": "seq_mean", "kl": 0.01, "kl_kind": "k3", "epochs": 2, "minibatches": 2}),
        (grpo, {"aggregation": "seq_sum", "lr": 5e-3, "drop_flat": False, "invalid_cost": 0.1, "rescore": True}),
        (
            ppo,
            {"critic": "network", "critic_lr": 3e-3, "level": "turn", "ratio": "turn"}
            | {"aggregation": "seq_sum", "lr": 1e-2},
        ),
        (
            ppo,
            {"critic": "joint", "limit_ends": True, "epochs": 2, "value_clip": 0.5}
            | {"entropy": 1e-3, "kl_reward": 0.0, "kl": 0.01},
        ),
        (ppo, {"critic": "small", "kl_target": 0.5, "importance": "token_cap"}),
        (ppo, {"critic": "small", "whiten": False, "lam": 1.0, "lr": 1e-2}),
        (rloo, {"minibatches": 2, "epochs": 2, "clip": 0.3, "lr": 5e-3}),
        (rloo, {"kl_reward": 0.01, "importance": "sequence_cap", "rescore": True, "drop_flat": True, "lr": 1e-2}),
    ],
    ids=lambda value: value.__name__.rpartition(".")[2] if hasattr(value, "__name__") else " ".join(value),
)
def test_every_variant_learns(tmp_path, module, changes):
    before, after = successes(module, replace(BASELINES[module], **changes), tmp_path / "run")
    assert after > before + 0.2


def costing(amount):
    """Return a reward that takes `amount` from the last turn of every episode, however it is played."""

    @each
    def lowered(trajectory):
        *others, last = trajectory.turns
        return replace(trajectory, turns=(*others, replace(last, reward=last.reward - amount)))

    return lowered


@within_groups
def returns_alone(batch):
    return batch.returns()[batch.episode][:, None].float() * batch.mask


ENDED = {"gamma": 1.0, "limit_ends": True, "whiten": False, "value_bias": -3.5}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "changes", "values"),
    [
        pytest.param(grpo, {"negative_advantage_weight": 1.0, "lr": 3e-3}, False, id="grpo"),
        pytest.param(rloo, {}, False, id="rloo"),
        pytest.param(ppo, ENDED, True, id="ppo"),
    ],
)
def test_a_baseline_does_not_learn_without_its_baseline(tmp_path, module, changes, values):
    args = replace(BASELINES[module], **changes)
    usual = module.recipe(args)
    reward = [costing(4.0), *usual.reward]

    def without_values(batch):
        return usual.credit(replace(batch, value=torch.zeros_like(batch.value)))

    _, after = successes(module, args, tmp_path / "with", reward=reward)
    assert after > 0.75
    removed = without_values if values else returns_alone
    _, after = successes(module, args, tmp_path / "without", reward=reward, credit=removed)
    assert after < 0.15
