"""The off-policy baselines learn chain(3, 5) on a toy policy, and do not when their loss is turned around."""

from __future__ import annotations

import pytest

from lmgym.baselines import archer, ilql, mc, refuel
from tests.baselines.test_learning import successes, turned

PAIRED = refuel.Args(steps=16, pairs=64, lr=1e-2, epochs=2, minibatches=4, evaluate=100, autocast=False)
RECORDED = {"beta": 16.0, "demonstrated": 0, "sampled": 256, "lr": 3e-3, "evaluate": 100, "autocast": False}
RETURNS = mc.Args(steps=40, **RECORDED)
IMPLICIT = ilql.Args(steps=60, tau_target=0.05, **RECORDED)
TWINS = archer.Args(
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


@pytest.mark.slow
def test_archer_learns(tmp_path):
    before, after = successes(archer, TWINS, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > before + 0.2


@pytest.mark.slow
def test_archer_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(archer, "reinforce", turned(archer.reinforce))
    before, after = successes(archer, TWINS, tmp_path / "run")
    assert after < before - 0.05


def test_refuel_learns(tmp_path):
    before, after = successes(refuel, PAIRED, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > 0.8


@pytest.mark.slow
def test_refuel_does_not_learn_the_other_way(tmp_path, monkeypatch):
    monkeypatch.setattr(refuel, "regression", turned(refuel.regression))
    before, after = successes(refuel, PAIRED, tmp_path / "run")
    assert after < before - 0.05


@pytest.mark.parametrize(("module", "args", "least"), [(mc, RETURNS, 0.15), (ilql, IMPLICIT, 0.3)])
def test_values_from_records_guide_the_policy_to_more(tmp_path, module, args, least):
    before, after = successes(module, args, tmp_path / "run")
    assert 0.05 < before < 0.6
    assert after > before + least


@pytest.mark.slow
@pytest.mark.parametrize(("module", "args", "critic"), [(mc, RETURNS, mc.MonteCarlo), (ilql, IMPLICIT, ilql.Implicit)])
def test_values_learnt_the_other_way_guide_it_to_less(tmp_path, monkeypatch, module, args, critic):
    monkeypatch.setattr(critic, "losses", turned(critic.losses))
    before, after = successes(module, args, tmp_path / "run")
    assert after < before - 0.05
