from __future__ import annotations

import pytest
import torch

from lmgym.train.interfaces import ScoredBatch
from lmgym.train.math import aggregation
from lmgym.train.parts.losses import reinforce, unit_surrogate, value_loss
from tests import oracles
from tests.train.batches import make_batch


@pytest.mark.parametrize(
    ("old", "value", "target", "loss", "flows"), [(0.5, 1.0, 0.6, 0.08, True), (0.5, 0.75, 0.9, 0.02, False)]
)
def test_a_clipped_value_has_the_loss_and_gradient_worked_by_hand(old, value, target, loss, flows):
    batch = make_batch([[0, 1]], value=torch.tensor([[0, old]]), target=torch.tensor([[0, target]]))
    found = torch.tensor([[0, value]], requires_grad=True)
    scored = ScoredBatch(batch=batch, logprobs=batch.logprobs, entropy=batch.entropy, value=found)
    tokens, figures = value_loss(scored, clip=0.2)
    tokens.sum().backward()
    assert tokens[0, 1].item() == pytest.approx(loss, abs=1e-6)
    assert oracles.value_term(value, old, target, 0.2) == pytest.approx(loss)
    assert bool(found.grad[0, 1]) is flows
    assert float(figures["value_clipped"][0, 1]) == float(not flows)


def scored_of(batch, logprobs):
    return ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros_like(logprobs))


def test_the_ratio_of_a_turn_is_that_of_all_its_tokens():
    batch = make_batch(
        [[0, 1, 1, 0, 1]], turn=torch.tensor([[-1, 0, 0, -1, 1]]), advantage=torch.tensor([[0, 1.0, 1, 0, -2]])
    )
    logprobs = torch.tensor([[5.0, 0.05, 0.05, 5.0, 0.4]], requires_grad=True)
    tokens, figures = unit_surrogate(scored_of(batch, logprobs), unit="turn", low=0.2, high=0.2)
    first, second = 2.718281828**0.1, 2.718281828**0.4
    assert tokens[0, [1, 2, 4]].tolist() == pytest.approx([-first / 2, -first / 2, 2 * second], abs=1e-6)
    (tokens * batch.mask).sum().backward()
    assert logprobs.grad[0].tolist() == pytest.approx([0, -first, -first, 0, 2 * second], abs=1e-6)
    assert not figures["clipped"][batch.mask].any()


def test_the_ratio_of_an_episode_spans_its_rows_and_is_clipped_as_one():
    batch = make_batch([[0, 1, 1], [0, 1, 0]], episode=[0, 0], advantage=torch.ones(2, 3))
    for rise, clipped in ((0.05, False), (0.1, True)):
        logprobs = torch.full((2, 3), rise, requires_grad=True)
        tokens, _ = unit_surrogate(scored_of(batch, logprobs), unit="sequence", low=0.2, high=0.2)
        loss = (tokens * batch.mask).sum()
        loss.backward()
        assert loss.item() == pytest.approx(-min(2.718281828 ** (3 * rise), 1.2), abs=1e-5)
        assert (not logprobs.grad[batch.mask].any()) is clipped


def test_the_geometric_ratio_does_not_grow_with_the_length():
    batch = make_batch([[0, 1, 1, 1, 1]], advantage=torch.ones(1, 5))
    tokens, figures = unit_surrogate(scored_of(batch, torch.full((1, 5), 0.1)), unit="geometric", low=0.2, high=0.2)
    assert float((tokens * batch.mask).sum()) == pytest.approx(-(2.718281828**0.1), abs=1e-6)
    assert not figures["clipped"].any()


def test_at_the_first_step_the_ratio_of_an_episode_has_the_gradient_of_its_likelihood():
    batch = make_batch([[0, 1, 1], [0, 1, 0]], advantage=torch.tensor([[0, 2.0, 2], [0, -1, 0]]))
    gradients = []
    for loss in (reinforce, lambda scored: unit_surrogate(scored, unit="sequence", low=0.2, high=0.2)):
        logprobs = torch.zeros(2, 3, requires_grad=True)
        tokens, _ = loss(scored_of(batch, logprobs))
        (tokens * batch.mask * aggregation(batch.mask, batch.episode, "seq_sum")).sum().backward()
        gradients.append(logprobs.grad)
    assert torch.allclose(*gradients, atol=1e-7)
