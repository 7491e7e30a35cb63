"""SPEAR: bonus and imitation trade places, the covariance clip against plain loops; the store is in test_stored.py."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from lmgym.baselines import bc
from lmgym.baselines.recipes import spear
from lmgym.train import loop
from lmgym.train.log import read_metrics
from lmgym.train.parts.credit import covariance_clipped, own_returns
from lmgym.train.schedule import StageProgress
from tests.baselines.test_learning import WARMUP
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy
from tests.train.test_parts import EPISODE, TURN


def test_the_bonus_falls_while_imitation_rises():
    recipe = spear.recipe(spear.Args(ramp=40))
    slip = replace(TURN, info={"valid": False})
    played = replace(EPISODE, turns=(TURN, slip, TURN))
    for step, share in ((0, 0.0), (10, 0.146447), (20, 0.5), (40, 1.0), (60, 1.0)):
        at = StageProgress(step, step / 60)
        (rewarded,) = recipe.reward[0]([played], None, at)
        assert rewarded.reward == pytest.approx(0.2 * (1 - share), abs=1e-6)
        assert recipe.loss[-1].coef(at) == pytest.approx(share, abs=1e-6)
    assert recipe.loss[-1].source == "store"


def test_many_actions_earn_no_more_than_one():
    (rewarded,) = spear.recipe(spear.Args()).reward[0](
        [replace(EPISODE, turns=(TURN,) * 30)], None, StageProgress(0, 0)
    )
    assert rewarded.reward == 1.0


def test_tokens_that_move_together_lose_their_advantage():
    chance = np.random.default_rng(0)
    logprobs, advantage = (torch.from_numpy(chance.normal(size=(6, 10))).float() for _ in range(2))
    mask = torch.ones(6, 10, dtype=torch.bool)
    mask[:, 0] = False
    batch = make_batch(mask.tolist(), logprobs=logprobs)
    inside = mask.numpy()
    x, a = logprobs.numpy()[inside], advantage.numpy()[inside]
    moves = np.zeros((6, 10))
    moves[inside] = (x - x.mean()) * (a - a.mean())
    within = inside & (moves >= 0.5) & (moves <= 2.0)
    assert within.sum() > 6
    some = covariance_clipped(lambda _: advantage * mask, share=0.1, low=0.5, high=2.0)(batch)
    lost = ((some == 0) & mask).numpy()
    assert lost.sum() == round(0.1 * inside.sum())
    assert not (lost & ~within).any()
    assert torch.equal(some[~torch.from_numpy(lost)], (advantage * mask)[~torch.from_numpy(lost)])
    again = covariance_clipped(lambda _: advantage * mask, share=0.1, low=0.5, high=2.0)(batch)
    assert torch.equal(some, again)
    everything = covariance_clipped(lambda _: advantage * mask, share=1.0, low=0.5, high=2.0)(batch)
    assert np.array_equal(((everything == 0) & mask).numpy(), within)


def test_the_advantage_of_a_stored_episode_is_its_return():
    batch = make_batch([[0, 1, 1], [0, 1, 0]], episode=[0, 0], segment=[0, 1], reward=[[0, 0.0, 1.0], [0, 0.5, 0.0]])
    assert own_returns(batch).tolist() == [[0, 1.5, 1.5], [0, 1.5, 0]]


@pytest.mark.parametrize("sign", [1, -1])
def test_imitation_alone_teaches_and_not_the_other_way(tmp_path, sign):
    """The term of the store is the whole loss: successes become likelier, or with its sign turned less likely."""
    options = {"ramp": 1, "bonus": 0.0, "void": False, "covariance_share": 0.0, "imitated": 64, "longest": 2}
    args = spear.Args(steps=14, instances=8, group=8, lr=2e-2, evaluate=60, autocast=False, minibatches=1, **options)
    recipe = spear.recipe(args)
    recipe = replace(recipe, stages=[bc.sft(WARMUP), *recipe.stages[1:]])
    own = recipe.loss[-1]

    def turned(scored):
        tokens, figures = own.loss(scored)
        return sign * tokens, figures

    recipe = replace(recipe, loss=[replace(own, loss=turned)])
    result = loop.run(recipe, chain_policy(), task=SPEC.id, folder=tmp_path / "run", quiet=True, save_seconds=1e9)
    before, after = (report.success.mean for report in result.reports.values())
    assert sum(row.get("stored_episodes", 0) for row in read_metrics(tmp_path / "run")) > 100
    assert after > before + 0.2 if sign > 0 else after < before - 0.05, (before, after)
