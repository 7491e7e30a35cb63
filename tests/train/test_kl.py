from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines import ppo, rloo
from lmgym.errors import RecipeError
from lmgym.train.parts.kl import RewardKl, kl_estimate
from tests.train.batches import make_batch

BATCH = make_batch(
    [[0, 1, 1], [0, 1, 0]],
    reward=torch.tensor([[0, 0, 1.0], [0, 2.0, 0]]),
    logprobs=torch.tensor([[0, -1.0, -2.0], [0, -0.5, 0]]),
    reference=torch.tensor([[-9, -1.5, -1.0], [-9, -2.5, -9]]),
)


def test_tokens_pay_for_what_they_left_behind():
    penalized, figures = RewardKl(0.1).apply(BATCH)
    # log-ratios: 0.5 and -1 in the first episode, 2 in the second
    assert penalized.reward.tolist() == [pytest.approx([0, -0.05, 1.1]), pytest.approx([0, 1.8, 0])]
    assert figures == {"kl_episode": pytest.approx(0.75), "kl_coef": 0.1}


def test_the_coefficient_follows_the_divergence_within_bounds_and_is_kept():
    penalty = RewardKl(0.1, target=0.5, horizon=10)  # 0.75 / 0.5 - 1 = 0.5, of which 0.2 counts, of 2 episodes in 10
    penalty.apply(BATCH)
    assert penalty.coef == pytest.approx(0.1 * 1.04)
    low = RewardKl(0.1, target=7.5, horizon=10)
    low.apply(BATCH)
    assert low.coef == pytest.approx(0.1 * 0.96)
    near = RewardKl(0.1, target=0.7, horizon=10)
    near.apply(BATCH)
    assert near.coef == pytest.approx(0.1 * (1 + (0.75 / 0.7 - 1) * 0.2))
    again = RewardKl(0.1, target=0.5)
    again.load_state_dict(penalty.state_dict())
    assert again.coef == penalty.coef


def test_a_step_beyond_the_horizon_counts_as_one_horizon_and_the_coefficient_stays_above_zero():
    many = make_batch([[0, 1]] * 128, logprobs=torch.zeros(128, 2), reference=torch.zeros(128, 2))
    penalty = RewardKl(0.05, target=1.0, horizon=20)  # nothing diverges: the relative error is -1, of which 0.2 counts
    for steps in range(1, 4):
        penalty.apply(many)
        assert penalty.coef == pytest.approx(0.05 * 0.8**steps)
    far = replace(many, reference=torch.full((128, 2), -9.0))
    penalty = RewardKl(0.05, target=1.0, horizon=1)
    penalty.apply(far)
    assert penalty.coef == pytest.approx(0.05 * 1.2)


def test_nonsense_is_refused():
    for wrong in ({"coef": -1.0}, {"coef": 0.1, "target": 0.0}, {"coef": 0.1, "horizon": 0}):
        with pytest.raises(RecipeError, match="above zero"):
            RewardKl(**wrong)


@pytest.mark.parametrize("module", [ppo, rloo])
def test_a_divergence_is_counted_once(module):
    with pytest.raises(RecipeError, match="both in the reward and in the loss"):
        module.recipe(module.Args(kl=0.1, kl_reward=0.1))
    module.recipe(module.Args(kl=0.1, kl_reward=0.0))


def test_the_way_from_the_start_is_estimated_without_bias():
    pi, ref = torch.tensor([0.5, 0.3, 0.2]), torch.tensor([0.2, 0.5, 0.3])
    counts = torch.tensor([0, 0, 0, 0, 0, 1, 1, 1, 2, 2])  # as often as pi says
    assert kl_estimate(pi.log()[counts], ref.log()[counts]) == pytest.approx(0.2238047, abs=1e-6)
