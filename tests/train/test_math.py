from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgym.train.batch import micro_batches
from lmgym.train.math import aggregation, clipped, divergence, group_normal, ratio
from tests import oracles

KINDS = ["token_mean", "seq_mean", "seq_sum", "const_norm"]


@pytest.mark.parametrize(
    ("rho", "advantage", "dual", "term", "flows"),
    [(1.5, 1, 3, 1.28, False), (0.5, 1, 3, 0.5, True), (0.5, -1, 3, -0.8, False), (1.1, -1, 3, -1.1, True),
     (4, -1, 3, -3, False), (4, -1, None, -4, True)],
)  # fmt: skip
def test_clip_has_the_values_and_gradients_worked_by_hand(rho, advantage, dual, term, flows):
    x = torch.tensor(float(rho), dtype=torch.float64, requires_grad=True)
    value = clipped(x, torch.tensor(float(advantage), dtype=torch.float64), low=0.2, high=0.28, dual=dual)
    value.backward()
    assert value.item() == pytest.approx(term, abs=1e-12)
    assert (x.grad.item() != 0) is flows


@settings(deadline=None, max_examples=100)
@given(st.floats(0.01, 9), st.floats(-3, 3), st.floats(0, 0.5), st.floats(0, 0.5), st.sampled_from([None, 2.0, 10.0]))
def test_clip_agrees_with_the_oracle(rho, advantage, low, high, dual):
    value = clipped(torch.tensor(rho).double(), torch.tensor(advantage).double(), low=low, high=high, dual=dual)
    assert value.item() == pytest.approx(oracles.clip_term(rho, advantage, low, high, dual), abs=1e-6)


@pytest.mark.parametrize(("kind", "value"), list(zip(KINDS, [1.75, 1.5, 3.5, 0.35], strict=True)))
def test_aggregations_have_the_values_worked_by_hand(kind, value):
    mask = torch.tensor([[0, 1, 0, 0, 0], [0, 1, 0, 1, 1]], dtype=torch.bool)
    losses = torch.tensor([[9.0, 1, 9, 9, 9], [9, 2, 9, 2, 2]])
    factor = aggregation(mask, torch.arange(2), kind, longest=10)
    assert (losses * mask * factor).sum().item() == pytest.approx(value, abs=1e-12)
    assert oracles.aggregate([[1], [2, 2, 2]], kind, 10) == pytest.approx(value)


@pytest.mark.parametrize("kind", KINDS)
def test_an_episode_in_several_rows_is_one_sequence(kind):
    mask = torch.tensor([[1, 0], [1, 1], [1, 0]], dtype=torch.bool)
    factor = aggregation(mask, torch.tensor([5, 2, 2]), kind, longest=7)
    losses = torch.tensor([[1.0, 0], [2, 3], [4, 0]])
    value = (losses * mask * factor).sum().item()
    assert value == pytest.approx(oracles.aggregate([[1], [2, 3, 4]], kind, 7), abs=1e-12)


def test_group_advantages_have_the_values_worked_by_hand():
    group = torch.zeros(4, dtype=torch.long)
    normal = group_normal(torch.tensor([1.0, 0, 0, 1]).double(), group, std=True)
    assert normal.tolist() == pytest.approx([0.8660254, -0.8660254, -0.8660254, 0.8660254], abs=1e-5)
    lone = group_normal(torch.tensor([1.0, 0, 0, 0]).double(), group, std=True)
    assert lone.tolist() == pytest.approx([1.5, -0.5, -0.5, -0.5], abs=1e-5)
    plain = group_normal(torch.tensor([1.0, 0, 0, 0]).double(), group, std=False)
    assert plain.tolist() == [0.75, -0.25, -0.25, -0.25]


returns = st.lists(st.integers(-8, 8), min_size=2, max_size=8)


@settings(deadline=None, max_examples=60)
@given(returns, st.booleans(), st.randoms(use_true_random=False))
def test_group_advantages_follow_the_oracle_and_a_permutation(values, std, random):
    tensor = torch.tensor(values).double()
    group = torch.zeros(len(values), dtype=torch.long)
    expected = oracles.group_advantages(values, std=std, epsilon=1e-6)
    assert group_normal(tensor, group, std=std).tolist() == pytest.approx(expected, abs=1e-9)
    order = list(range(len(values)))
    random.shuffle(order)
    shuffled = group_normal(tensor[order], group, std=std)
    assert shuffled.tolist() == pytest.approx([expected[i] for i in order], abs=1e-9)


@settings(deadline=None, max_examples=60)
@given(returns, st.floats(-100, 100), st.floats(0.5, 20))
def test_advantages_ignore_a_shift_and_follow_a_scale_without_std(values, shift, scale):
    tensor = torch.tensor(values).double()
    group = torch.zeros(len(values), dtype=torch.long)
    plain, normal = (group_normal(tensor, group, std=std) for std in (False, True))
    assert torch.allclose(group_normal(tensor + shift, group, std=False), plain, atol=1e-9)
    assert torch.allclose(group_normal(tensor * scale, group, std=False), plain * scale, atol=1e-9)
    assert torch.allclose(group_normal(tensor * scale, group, std=True), normal, atol=1e-4)


def test_a_group_without_variance_gets_exactly_zero():
    values = torch.tensor([0.1, 0.1, 0.1, 1.0, 0.0]).double()
    advantage = group_normal(values, torch.tensor([0, 0, 0, 1, 1]), std=True)
    assert advantage[:3].tolist() == [0.0, 0.0, 0.0]


def test_kl_estimators_have_the_expectations_and_gradients_worked_by_hand():
    pi, ref = (torch.tensor(p, dtype=torch.float64) for p in ([0.5, 0.3, 0.2], [0.2, 0.5, 0.3]))
    values, gradients = oracles.kl_figures(pi.tolist(), ref.tolist())
    hand = {"k1": (0.2238047, [0, 0, 0]), "k2": (0.2654788, [0.346243, -0.220389, -0.125854]),
            "k3": (0.2238047, [0.3, -0.2, -0.1])}  # fmt: skip
    for kind, (value, gradient) in hand.items():
        logits = pi.log().requires_grad_()
        logp = torch.log_softmax(logits, -1)
        estimate = (pi * divergence(logp, ref.log(), kind)).sum()
        estimate.backward()
        assert estimate.item() == pytest.approx(values[kind], abs=1e-12) == pytest.approx(value, abs=1e-6)
        assert logits.grad.tolist() == pytest.approx(gradients[kind], abs=1e-12)
        assert gradients[kind] == pytest.approx(gradient, abs=1e-6)


def test_the_ratio_stays_finite():
    rho = ratio(torch.tensor([0.0, -1e4]), torch.tensor([-1e4, 0.0]))
    assert rho.tolist() == pytest.approx([math.exp(20), math.exp(-20)])


@settings(deadline=None, max_examples=60)
@given(st.lists(st.integers(1, 50), min_size=1, max_size=30), st.integers(1, 200))
def test_micro_batches_hold_every_row_once_within_the_budget(lengths, budget):
    runs = micro_batches(torch.tensor(lengths), budget)
    assert sorted(int(i) for run in runs for i in run) == list(range(len(lengths)))
    assert all(len(run) == 1 or len(run) * max(lengths[i] for i in run) <= budget for run in runs)
