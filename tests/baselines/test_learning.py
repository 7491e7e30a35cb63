"""Each baseline learns chain(3, 5) on a toy policy, and does not when its loss is turned around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines import bc, filtered_bc, grpo, ppo, rloo
from lmgym.train import loop
from lmgym.train.parts.credit import within_groups
from lmgym.train.parts.rewards import each
from tests.train.chain import SPEC, chain_policy

TOY = {"optimiser": "adamw", "minibatches": 1, "observation_weight": 0.0, "interject": 0.0, "autocast": False}
IMITATION = bc.Args(steps=40, lr=5e-2, final_lr=0.1, episodes=16, evaluate=100, **TOY)
WARMUP = bc.Args(steps=24, lr=3e-2, final_lr=0.1, episodes=32, **TOY)
REINFORCED = grpo.Args(
    steps=20, instances=8, group=8, negative_advantage_weight=0.0, lr=2e-2, evaluate=100, autocast=False
)


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


def test_bc_learns(tmp_path):
    assert successes(bc, IMITATION, tmp_path / "run")[-1] > 0.8


def test_bc_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(bc, "nll", turned(bc.nll))
    assert successes(bc, IMITATION, tmp_path / "run")[-1] < 0.1


def test_grpo_learns(tmp_path):
    before, after = successes(grpo, REINFORCED, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > 0.9


def test_grpo_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(grpo, "surrogate", turned(grpo.surrogate))
    before, after = successes(grpo, REINFORCED, tmp_path / "run")
    assert after < before - 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"std": False, "aggregation": "const_norm", "longest": 10, "dual": None},
        {"aggregation": "seq_mean", "kl": 0.01, "kl_kind": "k3", "epochs": 2, "minibatches": 2},
        {"aggregation": "seq_sum", "lr": 5e-3, "drop_flat": False, "invalid_cost": 0.1, "rescore": True},
    ],
)
def test_every_variant_of_grpo_learns(tmp_path, changes):
    before, after = successes(grpo, replace(REINFORCED, **changes), tmp_path / "run")
    assert after > before + 0.2


FILTERED = filtered_bc.Args(steps=20, instances=8, group=8, lr=2e-2, evaluate=100, autocast=False)


def test_filtered_bc_learns(tmp_path):
    before, after = successes(filtered_bc, FILTERED, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > 0.9


@pytest.mark.slow
def test_filtered_bc_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(filtered_bc, "nll", turned(filtered_bc.nll))
    before, after = successes(filtered_bc, FILTERED, tmp_path / "run")
    assert after < before - 0.05


VALUED = ppo.Args(steps=20, instances=64, lr=5e-3, gamma=0.95, critic_lr=1e-2, evaluate=100, autocast=False)


def test_ppo_learns(tmp_path):
    before, after = successes(ppo, VALUED, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > 0.9


@pytest.mark.slow
def test_ppo_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(ppo, "surrogate", turned(ppo.surrogate))
    before, after = successes(ppo, VALUED, tmp_path / "run")
    assert after < before - 0.05


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {
            "critic": "network",
            "critic_lr": 3e-3,
            "level": "turn",
            "ratio": "turn",
            "aggregation": "seq_sum",
            "lr": 1e-2,
        },
        {
            "critic": "joint",
            "limit_ends": True,
            "epochs": 2,
            "value_clip": 0.5,
            "entropy": 1e-3,
            "kl_reward": 0.0,
            "kl": 0.01,
        },
        pytest.param({"critic": "small", "kl_target": 0.5, "importance": "token_cap"}, marks=pytest.mark.slow),
        pytest.param({"critic": "small", "whiten": False, "lam": 1.0, "lr": 1e-2}, marks=pytest.mark.slow),
    ],
)
def test_every_variant_of_ppo_learns(tmp_path, changes):
    before, after = successes(ppo, replace(VALUED, **changes), tmp_path / "run")
    assert after > before + 0.2


LEFT_OUT = rloo.Args(steps=20, instances=8, group=8, lr=1.5e-2, evaluate=100, autocast=False)


def test_rloo_learns(tmp_path):
    before, after = successes(rloo, LEFT_OUT, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > 0.85


@pytest.mark.slow
def test_rloo_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(rloo, "reinforce", turned(rloo.reinforce))
    before, after = successes(rloo, LEFT_OUT, tmp_path / "run")
    assert after < before - 0.05


@each
def raised(trajectory):
    """Pay 4 for every episode, however it is played."""
    first, *others = trajectory.turns
    return replace(trajectory, turns=(replace(first, reward=first.reward + 4.0), *others))


@within_groups
def without_baseline(batch):
    return batch.returns()[batch.episode][:, None].float() * batch.mask


@pytest.mark.slow
def test_rloo_does_not_learn_without_its_baseline(tmp_path):
    before, after = successes(rloo, LEFT_OUT, tmp_path / "with", reward=[raised])
    assert after > 0.85
    before, after = successes(rloo, LEFT_OUT, tmp_path / "without", reward=[raised], credit=without_baseline)
    assert after < before + 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"minibatches": 2, "epochs": 2, "clip": 0.3, "lr": 5e-3},
        pytest.param(
            {"kl_reward": 0.01, "importance": "sequence_cap", "rescore": True, "drop_flat": True, "lr": 1e-2},
            marks=pytest.mark.slow,
        ),
    ],
)
def test_every_variant_of_rloo_learns(tmp_path, changes):
    before, after = successes(rloo, replace(LEFT_OUT, **changes), tmp_path / "run")
    assert after > before + 0.2
