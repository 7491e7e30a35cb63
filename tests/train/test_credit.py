from __future__ import annotations

from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgym.baselines import grpo, rloo
from lmgym.errors import RecipeError
from lmgym.train.parts.credit import gae, token_order, valued_tokens, whiten, whitened
from lmgym.train.parts.trees import tree_credit
from tests import oracles
from tests.train.batches import make_batch

double = partial(torch.tensor, dtype=torch.float64)
ACT = [[0, 1, 1, 0, 0, 1, 1]]
REWARD = double([[0, 0, 0.5, 0, 0, 0, 1]])
VALUE = double([[0, 0.2, 0.3, 9, 9, 0.4, 0.6]])
TURN = torch.tensor([[-1, 0, 0, -1, -1, 1, 1]])
BATCH = make_batch(ACT, reward=REWARD, value=VALUE, turn=TURN)
CUT = make_batch(ACT, reward=REWARD, value=VALUE, turn=TURN, boot=torch.tensor([0.5]))


@pytest.mark.parametrize(
    ("batch", "how", "expected"),
    [
        (BATCH, {"gamma": 0.9, "lam": 0.8}, [0.6950752, 0.86816, 0.428, 0.4]),
        (CUT, {"gamma": 0.9, "lam": 0.8}, [0.863037, 1.10144, 0.752, 0.85]),
        (BATCH, {"gamma": 1.0, "lam": 1.0}, [1.3, 1.2, 0.6, 0.4]),
        (BATCH, {"gamma": 1.0, "lam": 0.8, "level": "both", "turn_gamma": 0.9}, [0.9224, 1.028, 0.52, 0.4]),
        # turn 1 earns .5 in state .2, turn 2 earns 1 in state .4: errors .5 + .9 * .4 - .2 = .66 and .6
        (BATCH, {"gamma": 0.9, "lam": 0.8, "level": "turn"}, [0.66 + 0.72 * 0.6] * 2 + [0.6] * 2),
        (CUT, {"gamma": 0.9, "lam": 0.8, "level": "turn"}, [0.66 + 0.72 * 1.05] * 2 + [1.05] * 2),
    ],
)  # fmt: skip
def test_generalised_advantages_have_the_values_worked_by_hand(batch, how, expected):
    advantage = gae(batch, **how)
    assert advantage[batch.mask].tolist() == pytest.approx(expected, abs=1e-6)
    assert not advantage[~batch.mask].any()


def test_the_usual_mistakes_have_other_values():
    ignored = gae(make_batch([[0, 1, 1, 1, 1, 1, 1]], reward=REWARD, value=VALUE, turn=TURN), gamma=0.9, lam=0.8)
    assert ignored[0, [1, 2, 5, 6]].tolist() == pytest.approx([2.4696, 3.3328, 0.428, 0.4], abs=1e-3)
    lost = double([[0, 0, 0.5, 0, 0, 0, 0]])
    moved = gae(make_batch(ACT, reward=lost, value=VALUE, turn=TURN), gamma=0.9, lam=0.8)
    assert moved[0, [1, 2, 5, 6]].tolist() == pytest.approx([0.3218, 0.3498, -0.292, -0.6], abs=1e-3)


numbers = st.floats(-2, 2, allow_nan=False)
steps = st.lists(st.tuples(st.booleans(), numbers, numbers), min_size=1, max_size=12).filter(
    lambda tokens: any(trained for trained, _, _ in tokens)
)


def row_of(tokens):
    """A batch of one episode of these (trained, reward, value); rewards of tokens that are not trained are none."""
    mask = [[0, *(int(trained) for trained, _, _ in tokens)]]
    reward = double([[0.0, *(reward * trained for trained, reward, _ in tokens)]])
    value = double([[0.0, *(value for _, _, value in tokens)]])
    turn = torch.tensor([[-1, *(n // 3 if trained else -1 for n, (trained, _, _) in enumerate(tokens))]])
    return make_batch(mask, reward=reward, value=value, turn=turn)


@settings(deadline=None, max_examples=60)
@given(steps, st.floats(0, 1), st.floats(0, 1), numbers)
def test_generalised_advantages_follow_the_definition(tokens, gamma, lam, boot):
    batch = row_of(tokens)
    batch = make_batch(
        batch.mask.tolist(), reward=batch.reward, value=batch.value, turn=batch.turn, boot=double([boot])
    )
    trained = [(reward, value) for chosen, reward, value in tokens if chosen]
    expected = oracles.gae([r for r, _ in trained], [v for _, v in trained], gamma=gamma, lam=lam, boot=boot)
    assert gae(batch, gamma=gamma, lam=lam)[batch.mask].tolist() == pytest.approx(expected, abs=1e-9)
    both = gae(batch, gamma=gamma, lam=lam, level="both", turn_gamma=0.9)[batch.mask].tolist()
    turns = batch.turn[batch.mask].tolist()
    columns = [list(column) for column in zip(*trained, strict=True)] or [[], []]
    hand = oracles.bilevel_gae(*columns, turns, gamma=gamma, turn_gamma=0.9, lam=lam, boot=boot) if turns else []
    assert both == pytest.approx(hand, abs=1e-9)
    plain = row_of(tokens)  # without discount, advantage and value are what is still to come
    found = (gae(plain, gamma=1.0, lam=1.0) + plain.value)[plain.mask].tolist()
    assert found == pytest.approx([sum(r for r, _ in trained[t:]) for t in range(len(trained))], abs=1e-9)


@settings(deadline=None, max_examples=40)
@given(steps, st.integers(0, 12), st.sampled_from(["token", "turn", "both"]))
def test_words_of_the_environment_and_a_cut_into_segments_change_nothing(tokens, place, level):
    batch, place = row_of(tokens), min(place, len(tokens))
    plain = gae(batch, gamma=0.9, lam=0.7, level=level)[batch.mask]
    inserted = [*tokens[:place], (False, 0.0, 99.0), (False, 0.0, -99.0), *tokens[place:]]
    columns = []
    for part in (tokens, inserted):
        made = row_of(part)
        turn = torch.full_like(made.turn, -1)
        turn[made.mask] = batch.turn[batch.mask]
        columns.append(gae(make_batch(made.mask.tolist(), reward=made.reward, value=made.value, turn=turn),
                           gamma=0.9, lam=0.7, level=level)[made.mask])  # fmt: skip
    assert torch.equal(*columns)
    assert torch.equal(columns[0], plain)
    first, second = batch.mask.clone(), batch.mask.clone()
    first[:, place + 1 :], second[:, : place + 1] = False, False
    cut = make_batch(
        torch.cat((second, first)).tolist(),
        episode=[0, 0],
        segment=[1, 0],  # rows in no particular order
        reward=batch.reward.repeat(2, 1) * torch.cat((second, first)),
        value=batch.value.repeat(2, 1),
        turn=batch.turn.repeat(2, 1),
    )
    found = gae(cut, gamma=0.9, lam=0.7, level=level)
    assert torch.cat((found[1][first[0]], found[0][second[0]])).tolist() == pytest.approx(plain.tolist(), abs=1e-12)


def test_seats_and_episodes_are_chained_apart():
    batch = make_batch(
        [[0, 1, 1], [0, 1, 1]],
        reward=torch.tensor([[0, 0, 1.0], [0, 0, 5.0]]),
        seat=[0, 1],
        boot=torch.tensor([0, 2.0]),
    )
    assert gae(batch, gamma=1.0, lam=1.0)[batch.mask].tolist() == [1, 1, 7, 7]
    assert token_order(batch).tolist() == [1, 2, 4, 5]


def test_turns_are_judged_before_their_first_token():
    batch = make_batch([[0, 1, 1, 1, 0, 1, 1]], turn=torch.tensor([[-1, 0, 0, 1, -1, 2, 2]]))
    assert valued_tokens(batch, "turn").tolist() == [[False, True, False, True, False, True, False]]
    assert torch.equal(valued_tokens(batch, "token"), batch.mask)


def test_whitening_has_the_values_worked_by_hand_and_leaves_the_rest_at_zero():
    mask = torch.tensor([[False, True, True, True]])
    values = double([[9.0, 1, 2, 3]])
    assert whiten(values, mask).tolist() == [pytest.approx([0, -1, 0, 1], abs=1e-7)]
    assert oracles.whitened([1, 2, 3]) == pytest.approx([-1, 0, 1], abs=1e-7)
    assert whiten(values / 1000, mask, floor=0.1).tolist() == [pytest.approx([0, -0.01, 0, 0.01], abs=1e-7)]
    for few in ([False, True, False, False], [False] * 4):
        assert not whiten(values, torch.tensor([few])).any()


@pytest.mark.parametrize(
    "credit",
    [
        rloo.credit,
        partial(grpo.credit, std=True),
        partial(partial(grpo.credit), std=False),
        tree_credit,
    ],
)
def test_what_compared_within_groups_is_not_whitened_across_them(credit):
    with pytest.raises(RecipeError, match="whitening after group normalisation"):
        whitened(credit)


def test_leave_one_out_has_the_values_worked_by_hand():
    for returns, expected in (([1, 0, 0, 0], [1, -1 / 3, -1 / 3, -1 / 3]), ([3, 1, 2], [1.5, -1.5, 0])):
        batch = make_batch([[0, 1]] * len(returns), reward=double([[0.0, r] for r in returns]))
        assert rloo.credit(batch)[:, 1].tolist() == pytest.approx(expected, abs=1e-12)
        assert oracles.leave_one_out(returns) == pytest.approx(expected)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.integers(-8, 8), min_size=2, max_size=8), st.integers(-99, 99), st.randoms(use_true_random=False))
def test_leave_one_out_sums_to_zero_ignores_a_shift_and_follows_a_permutation_and_a_scale(values, shift, random):
    def credits(returns):
        rewards = double([[0.0, r] for r in returns])
        return rloo.credit(make_batch([[0, 1]] * len(returns), reward=rewards))[:, 1].tolist()

    found = credits(values)
    assert found == pytest.approx(oracles.leave_one_out(values), abs=1e-9)
    assert sum(found) == pytest.approx(0, abs=1e-9)
    assert credits([v + shift for v in values]) == pytest.approx(found, abs=1e-9)
    assert credits([3 * v for v in values]) == pytest.approx([3 * f for f in found], abs=1e-9)
    order = list(range(len(values)))
    random.shuffle(order)
    assert credits([values[i] for i in order]) == pytest.approx([found[i] for i in order], abs=1e-9)
