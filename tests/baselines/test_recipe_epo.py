"""EPO: the window of entropies against plain loops, and its gradient where it claims to act."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines.recipes import epo
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.parts.losses import EntropyWindow
from lmgym.train.schedule import StageProgress
from tests.train.batches import make_batch

TURNS = torch.tensor([[-1, 0, 0, -1, 1], [-1, 0, -1, 1, 1]])
BATCH = make_batch((TURNS >= 0).tolist(), turn=TURNS)


def window(*histories, low=0.5, high=2.0) -> EntropyWindow:
    """A window that has seen batches with these entropies."""
    loss = EntropyWindow(low, high)
    for entropy in histories:
        loss.update(replace(BATCH, entropy=torch.tensor(entropy)))
    return loss


def distance(loss: EntropyWindow, entropy: torch.Tensor) -> torch.Tensor:
    return loss(ScoredBatch(batch=BATCH, logprobs=torch.zeros_like(entropy), entropy=entropy))[0]


PAST = ([[0, 1.0, 3.0, 0, 0.4], [0, 4.0, 0, 0.2, 0.4]], [[0, 0.0, 2.0, 0, 0.6], [0, 1.0, 0, 0.5, 0.7]])


def test_the_distance_is_that_of_plain_loops():
    usual = {0: ((2 + 4) / 2 + (1 + 1) / 2) / 2, 1: ((0.4 + 0.3) / 2 + (0.6 + 0.6) / 2) / 2}
    now = torch.tensor([[0, 5.0, 4.0, 0, 0.1], [0, 2.0, 0, 2.0, 1.0]])
    means = {(0, 0): 4.5, (0, 1): 0.1, (1, 0): 2.0, (1, 1): 1.5}
    found = distance(window(*PAST), now)
    for row, column in BATCH.mask.nonzero().tolist():
        own, here = means[row, int(TURNS[row, column])], usual[int(TURNS[row, column])]
        assert float(found[row, column]) == pytest.approx(max(0, own - 2 * here) + max(0, 0.5 * here - own), abs=1e-6)
    assert not found[~BATCH.mask].any()


def test_the_gradient_pulls_towards_the_window_and_is_none_inside():
    entropy = torch.tensor([[0, 9.0, 9.0, 0, 0.5], [0, 2.0, 0, 0.01, 0.01]], requires_grad=True)
    distance(window(*PAST), entropy).sum().backward()
    assert (entropy.grad[0, 1:3] > 0).all()  # above: the loss falls with the entropy
    assert (entropy.grad[1, 3:] < 0).all()  # below: it falls when the entropy rises
    assert not entropy.grad[0, 4]
    assert not entropy.grad[1, 1]


def test_turns_before_the_first_of_the_window_have_no_gradient():
    entropy = torch.tensor([[0, 9.0, 9.0, 0, 9.0], [0, 9.0, 0, 9.0, 9.0]], requires_grad=True)
    epo_window = epo.recipe(epo.Args(first_turn=1)).loss[-1].loss
    epo_window.load_state_dict(window(*PAST).state_dict())
    distance(epo_window, entropy).sum().backward()
    assert torch.equal(entropy.grad != 0, BATCH.mask & (TURNS >= 1))


def test_a_turn_without_a_history_is_free_and_the_history_is_restored():
    now = torch.tensor([[0, 9.0, 9.0, 0, 9.0]] * 2)
    assert not distance(window(), now).any()
    loss = window(*PAST)
    again = EntropyWindow(0.5, 2.0)
    again.load_state_dict(loss.state_dict())
    assert torch.equal(distance(again, now), distance(loss, now))


def test_the_weight_falls_in_two_phases():
    weights = [epo.weight(StageProgress(0, share)) for share in (0.0, 0.25, 0.4999, 0.5, 1.0)]
    assert weights == pytest.approx([1.0, 11 / 12, 5 / 6, 0.8 * 2.718281828**-1.5, 0.8 * 2.718281828**-3], abs=1e-3)
    assert [epo.weight(StageProgress(step, 0.0), ramp=12) for step in (0, 3, 6, 12, 40)] == pytest.approx(
        [weights[0], weights[1], weights[3], weights[4], weights[4]]
    )
    bonus, last = epo.recipe(epo.Args(first_turn=1)).loss[-2:]
    assert bonus.coef(StageProgress(0, 0.0)) == last.coef(StageProgress(0, 0.0)) == 0.001
    assert torch.equal(last.tokens(BATCH), BATCH.mask & (TURNS >= 1))
