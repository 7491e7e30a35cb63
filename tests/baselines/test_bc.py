"""Imitation of all, and of the best: likelihoods by hand, what a table ends at, and what filtering rewards."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

import pytest
import torch

from lmgym.baselines import bc, filtered_bc, rloo
from lmgym.errors import RecipeError
from lmgym.train.interfaces import Optimiser, Term
from lmgym.train.parts.filters import keep_best, keep_top
from lmgym.train.parts.losses import nll
from lmgym.train.schedule import StageProgress
from lmgym.train.stages import Sft, with_observations
from lmgym.train.update import Updater
from lmgym.types import Trajectory
from tests.train.batches import make_batch
from tests.train.test_parts import episode
from tests.train.toys import Bigram, gradient

HERE = StageProgress(0, 0.0)


def updater(model: Bigram, **spec: float) -> Updater:
    return Updater(model, model.score, Optimiser(clip=0.0, **spec), [Term(loss=nll)])


def test_the_loss_is_the_likelihood_of_a_trajectory_worked_by_hand():
    model = Bigram(vocab=3)
    with torch.no_grad():
        odds = [[0.0, 0.0, 0.0], [0.0, math.log(2), 0.0], [math.log(3), 0.0, 0.0]]
        model.table.copy_(torch.tensor(odds, dtype=torch.float64))
    # after 0 all are as likely: 1/3; after 1 the 1 has 2 of 4; after 2 the 0 has 3 of 5. The third token is not trained
    batch = make_batch([[0, 1, 1, 0, 1]], ids=torch.tensor([[0, 1, 1, 2, 0]]))
    made = updater(model, lr=0.0)
    made.optimisers = []
    loss = made.update(batch, HERE, seed=(0,))["loss"]
    assert loss == pytest.approx((math.log(3) + math.log(2) + math.log(5 / 3)) / 3, abs=1e-12)
    assert model.table.grad[1].tolist() == pytest.approx([0.25 / 3, -0.5 / 3, 0.25 / 3], abs=1e-12)


def test_what_is_no_answer_gets_no_gradient_unless_it_weighs_something():
    ids = torch.tensor([[0, 4, 5, 1, 6, 7, 8]])
    batch = make_batch([[0, 0, 0, 1, 0, 0, 0]], ids=ids, turn=torch.tensor([[-1, -1, -1, 0, -1, -1, -1]]))
    touched = []
    for each in (batch, with_observations(batch, 0.3)):
        model = Bigram()
        made = updater(model, lr=0.0)
        made.optimisers = []
        made.update(each, HERE, seed=(0,))
        touched.append(set(gradient(model).view(13, 13).any(1).nonzero()[:, 0].tolist()))
    assert touched[0] == {5}  # the token before the answer
    assert touched[1] == {5, 7}  # and the one before every third other, which stands for its neighbours


def test_a_table_ends_at_the_frequencies_of_what_was_shown():
    shown = Counter({1: 5, 2: 3, 3: 2})
    ids = torch.tensor([[0, token] for token, count in shown.items() for _ in range(count)])
    batch, model = make_batch([[0, 1]] * len(ids), ids=ids), Bigram(vocab=4)
    made = updater(model, lr=0.3)
    for step in range(300):
        for optimiser in made.optimisers:
            optimiser.param_groups[0]["peak"] = 0.3 * 0.97**step
        made.update(batch, HERE, seed=(step,))
    found = torch.softmax(model.table[0], 0).tolist()
    assert found[1:] == pytest.approx([0.5, 0.3, 0.2], abs=1e-3)
    assert found[0] < 1e-3


def test_the_best_of_a_lottery_are_its_lucky_ones():
    """A sure arm pays 0.6, a risky one 1 half of the time: filtering imitates luck, the policy gradient does not."""
    paid = [("sure", 0.6), ("sure", 0.6), ("risky", 1.0), ("risky", 0.0)]
    found: list[Trajectory] = [episode(f"{arm} {n}", "1", reward) for n, (arm, reward) in enumerate(paid)]
    kept = {each.id for each in found} - keep_top(found, share=0.25).drop
    assert kept == {"risky 2"}
    batch = make_batch([[0, 1]] * 4, group=[0] * 4, reward=torch.tensor([[0.0, reward] for _, reward in paid]))
    advantage = rloo.credit(batch)[:, 1].tolist()  # 0.6 less the mean of 0.6, 1 and 0, and so on
    assert advantage == pytest.approx([0.2 / 3, 0.2 / 3, 0.6, -2.2 / 3], abs=1e-6)
    assert sum(advantage[:2]) == pytest.approx(-sum(advantage[2:])) == pytest.approx(0.4 / 3, abs=1e-6)


def test_recorded_episodes_are_filtered_once_and_those_of_the_policy_round_by_round():
    played, recorded = filtered_bc.recipe(filtered_bc.Args()), filtered_bc.recipe(filtered_bc.Args(recorded="data"))
    (learning,) = [stage for stage in recorded.stages if isinstance(stage, Sft) and stage.name == "rl"]
    assert learning.select.func is keep_best
    assert played.filter[0].func is keep_top
    assert learning.select.keywords == {"share": 0.3, "within": "all", "ties": "keep"}
    assert played.filter[0].keywords == {"share": 0.3, "within": "all", "ties": "keep"}


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(RecipeError, match="at least 2"):
        filtered_bc.recipe(filtered_bc.Args(group=1, within="group"))
    filtered_bc.recipe(filtered_bc.Args(group=1))
    for share in (0.0, 1.1):
        with pytest.raises(RecipeError, match="share must be in"):
            filtered_bc.recipe(filtered_bc.Args(share=share))
    with pytest.raises(RecipeError, match="minibatches is 1 or more"):
        bc.recipe(replace(bc.Args(), minibatches=0))
