"""The log of an RL step has the figures that a practitioner looks for first."""

from __future__ import annotations

import pytest
import torch

from lmgym.api import evaluate
from lmgym.baselines import archer, ppo, refuel, rloo
from lmgym.policy.load import load_local
from lmgym.policy.local.lora import adapt
from lmgym.policy.local.sampling import Sampling
from lmgym.train.figures import over_draws
from lmgym.train.log import read_metrics
from tests.train import victim

COMMON = {
    "return", "success", "turns", "truncated", "invalid", "flat_groups", "entropy", "kl_start", "ratio_min",
    "ratio_max", "gap_mean", "gap_max", "gradient_norm", "seconds_play", "seconds_score", "seconds_update",
}  # fmt: skip
SHORT = {"warmup": 1, "warmup_episodes": 4, "steps": 2, "evaluate": 4, "autocast": False}


def steps_of(tmp_path, module, **changes):
    args = module.Args(**SHORT, **changes)
    victim.train(tmp_path / "run", args=args, recipe=module.recipe(args))
    return [row for row in read_metrics(tmp_path / "run") if row["stage"] in ("rl", "critic")]


def test_a_step_of_ppo_tells_how_it_went(tmp_path):
    warmup, first, second = steps_of(
        tmp_path,
        ppo,
        lr=3e-4,
        instances=8,
        critic_steps=1,
        kl_target=0.5,
        importance="token_cap",
        minibatches=2,
        invalid_cost=0.5,
    )
    assert first.keys() >= COMMON | {
        "explained_variance", "value_loss", "clipped", "kl_episode", "kl_coef", "importance_mean",
        "importance_effective", "seconds_critic",
    }  # fmt: skip
    assert {"explained_variance", "value_loss"} <= warmup.keys()
    assert "gradient_norm" not in warmup
    assert first["kl_start"] == pytest.approx(0, abs=1e-6)
    assert second["kl_start"] > 1e-6
    assert second["kl_coef"] != first["kl_coef"]
    assert first["importance_mean"] == pytest.approx(1, abs=1e-4)


def test_a_step_of_rloo_watches_the_way_from_the_start(tmp_path):
    first, second = steps_of(tmp_path, rloo, instances=4, group=2)
    assert first.keys() >= COMMON
    assert first["kl_start"] == pytest.approx(0, abs=1e-6)
    assert second["kl_start"] > 0
    assert first["gap_max"] < 1e-3


def test_with_adapters_the_way_is_from_the_base_which_imitation_has_left(tmp_path, monkeypatch):
    def adapted():
        if not (tmp_path / "base").exists():
            toy().save(tmp_path / "base")
        policy = load_local(f"hf:{tmp_path / 'base'}", sampling=Sampling(max_tokens=4))
        adapt(policy.model, rank=2)
        return policy

    toy = victim.toy_policy
    monkeypatch.setattr(victim, "toy_policy", adapted)
    first, _ = steps_of(tmp_path, rloo, instances=4, group=2, warmup_lr=1e-1)
    assert first["kl_start"] > 1e-5


ACTOR = {"fit": 1, "rollouts": 8, "critic_draws": 8, "critic_epochs": 1, "actor_draws": 16}


@pytest.fixture
def _half_sampler(monkeypatch):
    whole = victim.toy_policy

    def half():
        policy = whole()
        policy.dtype = torch.bfloat16
        return policy

    monkeypatch.setattr(victim, "toy_policy", half)


@pytest.mark.usefixtures("_half_sampler")
@pytest.mark.parametrize(("module", "changes"), [(rloo, {"instances": 4, "group": 2}), (archer, ACTOR)])
def test_a_sampler_of_half_precision_is_weighed(tmp_path, module, changes):
    *_, first, _ = steps_of(tmp_path, module, importance="sequence_mask", **changes)
    assert first["gap_max"] > 1e-4
    assert first["importance_mean"] != 1
    assert 0 < first["importance_effective"] <= 1


@pytest.mark.usefixtures("_half_sampler")
def test_the_old_log_probs_of_a_regression_are_the_trainers(tmp_path):
    first, _ = steps_of(tmp_path, refuel, pairs=12, minibatches=1)
    assert first["gap_max"] > 1e-4
    assert first["log_ratio"] < 1e-6  # nothing moved yet: what the sampler said otherwise is not fitted


def test_figures_of_several_draws_come_together_by_what_they_are():
    drawn = [
        {"loss": 1.0, "trained_tokens": 3.0, "ratio_max": 1.5, "gap_max": 0.1, "ratio_min": 0.5, "optimiser_steps": 1},
        {"trained_tokens": 0.0},
        {"loss": 2.0, "trained_tokens": 5.0, "ratio_max": 1.2, "gap_max": 0.3, "ratio_min": 0.4, "optimiser_steps": 2},
    ]
    assert over_draws(drawn) == {
        "loss": 1.5, "trained_tokens": 8.0, "ratio_max": 1.5, "gap_max": 0.3, "ratio_min": 0.4, "optimiser_steps": 2
    }  # fmt: skip
    assert over_draws(drawn[:1]) == drawn[0]


def test_a_greedy_evaluation_is_that_of_the_policy_at_temperature_0_and_has_figures_of_its_own(tmp_path):
    args = rloo.Args(**{**SHORT, "evaluate": 32}, evaluate_greedy=True)
    result = victim.train(tmp_path / "run", args=args, recipe=rloo.recipe(args))
    rows = {row["stage"]: row for row in read_metrics(tmp_path / "run")}
    assert ["greedy" in name for name, row in rows.items() if "evaluated_success" in row] == [False, False]
    game = {"episodes": 32, "options": {"highest": 8, "max_turns": 4}}
    alone = evaluate("guess_number", f"hf:{result.policy}", temperature=0.0, max_tokens=4, **game)
    assert result.reports["after RL, greedy"].outcomes == alone.outcomes
    assert rows["after RL, greedy"]["greedy_score"] == alone.score.mean
    assert result.paired_greedy_gain == result.reports["after RL, greedy"].since(result.reports["before RL, greedy"])
