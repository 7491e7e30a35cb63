"""The off-policy baselines learn chain(3, 5) on a toy policy, and not with their loss turned around."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines import archer, ilql, mc, refuel
from tests.baselines.test_learning import costing, small, successes, turned

PAIRED = small(refuel, steps=16, pairs=64, lr=1e-2, epochs=2, minibatches=4, evaluate=100, autocast=False)
RECORDED = {"beta": 16.0, "demonstrated": 0, "sampled": 256, "lr": 3e-3, "evaluate": 100, "autocast": False}
RETURNS = mc.Args(steps=40, **RECORDED)
IMPLICIT = ilql.Args(steps=60, tau_target=0.05, **RECORDED)
TWINS = small(
    archer,
    fit=5,
    steps=12,
    rollouts=32,
    encoder="own",
    hidden=32,
    critic_draws=256,
    critic_epochs=4,
    critic_lr=5e-3,
    actor_draws=768,
    lr=3e-3,
    minibatches=4,
    evaluate=100,
    autocast=False,
)


@pytest.mark.parametrize(
    ("module", "args", "least", "gain"),
    [
        pytest.param(archer, TWINS, 0.0, 0.2, marks=pytest.mark.slow, id="archer"),
        pytest.param(refuel, PAIRED, 0.8, 0.0, id="refuel"),
        pytest.param(mc, RETURNS, 0.0, 0.15, id="mc"),  # values from records guide the policy
        pytest.param(ilql, IMPLICIT, 0.0, 0.3, id="ilql"),
    ],
)
def test_a_baseline_learns(tmp_path, module, args, least, gain):
    before, after = successes(module, args, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > max(least, before + gain)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "args", "holder", "loss"),
    [
        pytest.param(archer, TWINS, archer, "reinforce", id="archer"),
        pytest.param(refuel, PAIRED, refuel, "regression", id="refuel"),
        pytest.param(mc, RETURNS, mc.MonteCarlo, "losses", id="mc"),
        pytest.param(ilql, IMPLICIT, ilql.Implicit, "losses", id="ilql"),
    ],
)
def test_a_baseline_does_not_learn_the_other_way(tmp_path, monkeypatch, module, args, holder, loss):
    monkeypatch.setattr(holder, loss, turned(getattr(holder, loss)))
    before, after = successes(module, args, tmp_path / "run")
    assert after < before - 0.05


@pytest.mark.slow
def test_archer_does_not_learn_without_its_baseline(tmp_path):
    args = replace(TWINS, fit=25, gamma=1.0, truncated_is_done=True, tries=1)  # its baseline is then V, as in the paper
    _, after = successes(archer, args, tmp_path / "with", reward=[costing(2.0)])
    assert after > 0.75

    def quality_alone(batch):
        return batch.quality * batch.mask

    _, after = successes(archer, args, tmp_path / "without", reward=[costing(2.0)], credit=quality_alone)
    assert after < 0.5
