"""MARS: both seats are trained by one policy, roles follow from who begins, and each role has its own baseline."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines.recipes import mars
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.schedule import StageProgress
from lmgym.types import Job
from tests.train.batches import make_batch
from tests.train.victim import toy_policy

TURN = torch.tensor([[-1, 0, 0, -1, 1], [-1, 0, -1, 1, 1], [-1, 0, 0, 0, 0], [-1, 0, -1, 1, -1]])
REWARD = torch.tensor([[0, 0.0, -0.05, 0, -1.0], [0, 0.0, 0, 0.0, -2.0], [0, 0, 0, 0, 1.0], [0, 0, 0, 2.0, 0]])
SEAT = torch.tensor([0, 0, 1, 1])


def advantages(baseline: str) -> torch.Tensor:
    batch = make_batch((TURN >= 0).tolist(), turn=TURN, reward=REWARD, seat=SEAT)
    return mars.credit(batch, baseline=baseline)


def test_a_turn_is_compared_with_the_turns_of_its_role():
    found = advantages("role")
    to_go = [[-1.05, -1.0], [-2.0, -2.0], [1.0], [2.0, 2.0]]
    means = [sum([-1.05, -1.0, -2.0, -2.0]) / 4, (1.0 + 2.0 + 2.0) / 3]  # of turns, not of tokens
    for row, column in (TURN >= 0).nonzero().tolist():
        expected = to_go[row][int(TURN[row, column])] - means[int(SEAT[row])]
        assert float(found[row, column]) == pytest.approx(expected, abs=1e-6)
    assert not found[TURN < 0].any()


def test_one_baseline_for_both_blames_the_first_player_for_its_seat_and_the_credit_is_whitened():
    pooled, role = advantages("pooled"), advantages("role")
    assert float(pooled[0, 4]) < -0.8  # it lost less than its role does on average
    assert float(role[0, 4]) > 0
    trained = TURN >= 0
    assert float(role[trained].var()) < float(pooled[trained].var())
    batch = make_batch((TURN >= 0).tolist(), turn=TURN, reward=REWARD, seat=SEAT)
    found = mars.recipe(mars.Args()).credit(batch)[batch.mask]
    assert float(found.mean()) == pytest.approx(0, abs=1e-6)
    assert float(found.std()) == pytest.approx(1, abs=1e-4)


def test_either_seat_may_have_the_first_move():
    jobs = [Job(task="lmgym/KuhnPoker-v0", split="train", index=n, id=f"e{n}") for n in range(8)]
    episodes = list(Engine(seats={"opponent": SeatConfig()}, lockstep=True).run(toy_policy(), jobs))
    roles = mars.by_role(episodes, None, StageProgress(0, 0.0))
    spoken = [(old, new) for old, new in zip(episodes, roles, strict=True) if old.turns]
    assert {(old.seat, new.seat) for old, new in spoken} >= {("agent", "first"), ("opponent", "first")}
    for old, new in spoken:
        number = 1 if new.seat == "first" else 2
        assert f"You are player {number}." in old.turns[0].observation.text


def test_each_seat_keeps_its_own_trajectory_and_both_are_learnt_from():
    recipe = mars.recipe(mars.Args())
    assert recipe.seats["opponent"].learns
    assert recipe.filter == []
    assert {term.name: term.coef(StageProgress(0, 0.0)) for term in recipe.loss}["kl"] == 0.2


@pytest.mark.parametrize(("sign", "higher"), [(1.0, True), (-1.0, False)])
def test_the_move_that_wins_becomes_likelier_in_both_roles_unless_the_sign_is_flipped(sign, higher):
    logits = torch.zeros(2, 2, requires_grad=True)  # of two moves, by role
    ids, seat = torch.tensor([[0, 0], [0, 1], [0, 0], [0, 1]]), torch.tensor([0, 0, 1, 1])
    reward = torch.tensor([[0, -1.0], [0, -0.5], [0, 0.5], [0, 1.0]])  # the first role loses whatever it does
    batch = make_batch([[0, 1]] * 4, ids=ids, turn=[[-1, 0]] * 4, reward=reward, seat=seat)
    batch = replace(batch, advantage=mars.recipe(mars.Args()).credit(batch), logprobs=torch.full((4, 2), -0.6931))
    clip = mars.recipe(mars.Args()).loss[0].loss
    for _ in range(40):
        logprobs = torch.log_softmax(logits, -1)[seat[:, None], ids]
        losses, _ = clip(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros(4, 2)))
        (sign * losses * batch.mask).mean().backward()
        with torch.no_grad():
            logits -= 0.5 * logits.grad
            logits.grad.zero_()
    assert ((torch.softmax(logits.detach(), -1)[:, 1] > 0.5) == higher).all()
