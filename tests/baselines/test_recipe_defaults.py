"""Recipes that are values of GRPO's options: GiGPO and ScalingInter."""

from __future__ import annotations

import pytest
import torch

from lmgym.baselines import grpo
from lmgym.baselines.recipes import gigpo, scaling_inter
from lmgym.errors import RecipeError
from lmgym.train.state import InstancePool
from tests.train.batches import make_batch

POOL = InstancePool(task="t", size=9)


def test_answers_in_the_same_state_are_compared_beside_whole_episodes():
    ids, turn = torch.tensor([[3, 7, 5, 8], [3, 6, 4, 8], [3, 6, 4, 9]]), torch.tensor([[-1, 0, -1, 1]] * 3)
    paid = torch.tensor([[0, 0, 0, 6.0], [0, 0, 0, 0], [0, 0, 0, 3.0]])  # the second and third saw 4, the first alone 5
    batch = make_batch((turn >= 0).tolist(), ids=ids, turn=turn, reward=paid)
    own = gigpo.recipe(gigpo.Args(std=False)).credit(batch)
    plain = grpo.recipe(grpo.Args(std=False)).credit(batch)
    assert (own - plain).tolist() == [[0, 3, 0, 0], [0, -3, 0, -1.5], [0, 0, 0, 1.5]]


def test_the_turn_limit_rises_after_every_so_many_steps():
    tasks = scaling_inter.recipe(scaling_inter.Args(limits="2,5,9", every=3)).tasks
    limits = [tasks.draw(step, POOL)[0].budget for step in range(8)]
    assert limits == [2, 2, 2, 5, 5, 5, 9, 9]


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"budget": 5}, "are --limits"),
        ({"limits": "two"}, "limits are numbers with commas"),
        ({"limits": "0"}, "1 turn"),
    ],
)
def test_turn_limits_that_make_no_sense_are_refused(args, words):
    with pytest.raises(RecipeError, match=words):
        scaling_inter.recipe(scaling_inter.Args(**args))
