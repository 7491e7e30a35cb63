"""Options reach the part of the recipe that they are of: credits of small batches, the imitation's optimiser."""

from __future__ import annotations

import pytest
import torch

from lmgym.baselines import archer, filtered_bc, grpo, ilql, mc, ppo, refuel, rloo
from lmgym.baselines.recipes import ui_tars_2, vigorl, zhongjing
from tests.train.batches import make_batch

AFTER_IMITATION = [archer, filtered_bc, grpo, ilql, mc, ppo, refuel, rloo]


def by(args: grpo.Args, batch) -> list[list[float]]:
    """The advantages of a batch by the credit of GRPO's recipe."""
    return grpo.recipe(args).credit(batch).tolist()


def test_blame_reaches_the_credit():
    reward = torch.tensor([[0, 0, 4.0], [0, 0, 0]])
    batch = make_batch([[0, 1, 1]] * 2, reward=reward, invalid=torch.tensor([[False, True, False]] * 2))
    assert by(grpo.Args(std=False, negative_advantage_weight=0.0), batch) == [[0, 2, 2], [0, 0, 0]]
    assert by(grpo.Args(std=False, negative_advantage_weight=0.0, invalid_penalty=0.5), batch) == [
        [0, -0.5, 2],
        [0, -0.5, 0],
    ]


def test_anchor_reaches_the_credit():
    ids, turn = torch.tensor([[3, 7, 5, 8], [3, 6, 4, 8], [3, 6, 4, 9]]), torch.tensor([[-1, 0, -1, 1]] * 3)
    paid = torch.tensor([[0, 0, 0, 6.0], [0, 0, 0, 0], [0, 0, 0, 3.0]])  # the second and third saw 4, the first alone 5
    batch = make_batch((turn >= 0).tolist(), ids=ids, turn=turn, reward=paid)
    plain = {"std": False, "negative_advantage_weight": 1.0}
    assert by(grpo.Args(**plain), batch) == [[0, 3, 0, 3], [0, -3, 0, -3], [0, 0, 0, 0]]
    assert by(grpo.Args(**plain, state_advantage_weight=2.0), batch) == [[0, 9, 0, 3], [0, -9, 0, -6], [0, 0, 0, 3]]


@pytest.mark.parametrize("module", [archer, filtered_bc, grpo, ppo, refuel, rloo])
def test_the_gains_rate_reaches_the_policys_optimiser_after_imitation(module):
    optimisers = [getattr(stage, "optimiser", None) for stage in module.recipe(module.Args(final_norm_lr=0.5)).stages]
    assert [each.final_norm_lr for each in optimisers if each] == [None, 0.5]


@pytest.mark.parametrize("module", AFTER_IMITATION)
def test_minibatches_of_imitation_reach_its_optimiser_alone(module):
    usual, asked = (module.recipe(module.Args(**changes)).stages for changes in ({}, {"warmup_minibatches": 7}))
    assert (usual[0].optimiser.minibatches, asked[0].optimiser.minibatches) == (4, 7)
    others = [[getattr(stage, "optimiser", None) for stage in stages[1:]] for stages in (usual, asked)]
    assert [each and each.minibatches for each in others[0]] == [each and each.minibatches for each in others[1]]


@pytest.mark.parametrize("module", [ui_tars_2, vigorl, zhongjing])
def test_every_optimiser_of_a_recipe_has_the_precision_and_the_memory_of_its_options(module):
    recipe = module.recipe(module.Args(autocast=False, checkpointing=True))
    optimisers = [stage.optimiser for stage in recipe.unrolled() if hasattr(stage, "optimiser")]
    if recipe.reward_model is not None:
        optimisers.append(recipe.reward_model.keywords["optimiser"])
    assert len(optimisers) >= 3
    assert {(each.autocast, each.checkpointing) for each in optimisers} == {(False, True)}
