from __future__ import annotations

import itertools
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from lmgym.baselines import grpo
from lmgym.errors import RecipeError
from lmgym.train.batch import masked
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.math import aggregation
from lmgym.train.parts.credit import beside_same_state
from tests import oracles
from tests.train.batches import make_batch

CLIP = partial(grpo.surrogate, low=0.2, high=0.28, dual=3.0)


def tabular(log_odds: torch.Tensor, batch, contexts: torch.Tensor) -> torch.Tensor:
    """Log-probs (B, T) of a tabular policy; token 1 is `a`, 2 is `b`."""
    odds = log_odds[contexts]
    chosen = torch.where(batch.ids == 1, odds, -odds)
    return torch.nn.functional.logsigmoid(chosen) * batch.mask


def all_pairs():
    """All pairs of episodes of the two-turn MDP, a group each, with their probabilities."""
    found = list(oracles.episodes(oracles.LOG_ODDS))
    ids, contexts, rewards, chances = [], [], [], []
    for pair in itertools.product(found, repeat=2):
        for first, seen, second, _, value in pair:
            taken = oracles.steps(first, seen, second)
            ids.append([0, *("ab".index(t) + 1 for _, t in taken[:2]), 3, *("ab".index(t) + 1 for _, t in taken[2:])])
            names = [oracles.CONTEXTS.index(c) for c, _ in taken]
            contexts.append([0, *names[:2], 0, *names[2:]])
            rewards.append([0, 0, -0.1, 0, 0, value + 0.1])
            chances.append(pair[0][3] * pair[1][3])
    mask = [[0, 1, 1, 0, 1, 1]] * len(ids)
    group = torch.arange(len(ids) // 2).repeat_interleave(2)
    batch = make_batch(mask, ids=torch.tensor(ids), reward=torch.tensor(rewards, dtype=torch.float64), group=group)
    return batch, torch.tensor(contexts), torch.tensor(chances, dtype=torch.float64)


@pytest.mark.parametrize(("std", "scale"), [(True, 0.70710678), (False, 0.5)])
def test_expected_gradient_is_the_enumerated_one_scaled(std, scale):
    batch, contexts, chances = all_pairs()
    theta = torch.tensor(oracles.LOG_ODDS, dtype=torch.float64, requires_grad=True)
    logprobs = tabular(theta, batch, contexts)
    batch = replace(batch, logprobs=logprobs.detach(), advantage=grpo.credit(batch, std=std).double())
    losses, _ = CLIP(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros_like(logprobs)))
    pairs = len(batch) // 2
    factor = aggregation(batch.mask, batch.episode, "seq_sum") * pairs * chances[:, None]
    (losses * batch.mask * factor).sum().backward()
    exact = oracles.exact_gradient(oracles.LOG_ODDS)
    assert -theta.grad.numpy() == pytest.approx(scale * exact, abs=2e-6)
    assert np.linalg.norm(exact) > 0.1


def test_the_oracle_has_the_published_numbers():
    assert oracles.objective(oracles.LOG_ODDS) == pytest.approx(0.1600574060, abs=1e-10)
    exact = [0.006725, -0.007114, 0, 0.057759, 0.068367, 0, -0.041151, 0, -0.077598]
    assert oracles.exact_gradient(oracles.LOG_ODDS) == pytest.approx(exact, abs=1e-6)


def test_bad_episodes_may_weigh_less_than_good_ones():
    reward = torch.tensor([[0, 3.0], [0, 0], [0, 0]])
    batch = make_batch([[0, 1]] * 3, reward=reward)
    for negative, expected in ((1.0, [2, -1, -1]), (0.5, [2, -0.5, -0.5]), (0.0, [2, 0, 0])):
        assert grpo.credit(batch, std=False, negative_weight=negative)[:, 1].tolist() == expected


def test_an_answer_that_was_no_action_is_blamed_and_never_praised():
    reward = torch.tensor([[0.0, 0, 0, 4.0], [0, 0, 0, 0]])
    batch = make_batch([[0, 1, 1, 1]] * 2, reward=reward, invalid=torch.tensor([[False, True, True, False]] * 2))
    praise = [[0, 2, 2, 2], [0, -2, -2, -2]]
    assert grpo.credit(batch, std=False).tolist() == praise
    blamed = grpo.credit(batch, std=False, invalid_penalty=0.5)
    assert blamed.tolist() == [[0, -0.5, -0.5, 2], [0, -2.5, -2.5, -2]]
    kept = grpo.credit(batch, std=False, negative_weight=0.0, invalid_penalty=0.5)
    assert kept.tolist() == [[0, -0.5, -0.5, 2], [0, -0.5, -0.5, 0]]


def test_answers_to_the_same_words_are_compared_with_each_other():
    ids = torch.tensor(
        [[3, 7, 5, 8, 9], [3, 6, 5, 8, 9], [3, 6, 4, 8, 9], [3, 7, 5, 8, 9]]
    )  # words, an answer, words, ..
    turn = torch.tensor([[-1, 0, -1, 1, 1]] * 4)
    reward = torch.tensor([[0.5, 4.0], [0, 1.0], [0, 2.0], [0, 9.0]])
    paid = torch.zeros(4, 5)
    paid[:, [1, 4]] = reward
    batch = make_batch((turn >= 0).tolist(), ids=ids, turn=turn, reward=paid, group=[0, 0, 0, 1])
    first, later = (
        (4.5 - 2.5, 1 - 2.5, 2 - 2.5),
        (4 - 2.5, 1 - 2.5),
    )  # the third of its group alone saw 4, the fourth is alone
    expected = [
        [0, first[0], 0, later[0], later[0]],
        [0, first[1], 0, later[1], later[1]],
        [0, first[2], 0, 0, 0],
        [0, 0, 0, 0, 0],
    ]
    assert beside_same_state(batch).tolist() == expected
    three = batch.rows(torch.arange(3))
    plain, with_states = (grpo.credit(three, std=False, state_weight=weight) for weight in (0.0, 2.0))
    assert (with_states - plain).tolist() == [[2 * x for x in row] for row in expected[:3]]
    wide = float(torch.tensor([4.5, 1, 2]).std())
    plain, with_states = (grpo.credit(three, std=True, state_weight=weight) for weight in (0.0, 2.0))
    assert (with_states - plain)[0, 1] == pytest.approx(2 * first[0] / wide, rel=1e-5)


@pytest.mark.parametrize("std", [True, False])
@pytest.mark.parametrize("cost", [0.1, 0.5])  # 0.6 - 0.1 is 0.5 up to rounding, 1.0 - 0.5 exactly
def test_answers_in_the_same_state_are_compared_where_returns_are_equal(std, cost):
    ids = torch.tensor([[3, 7, 4, 8], [3, 6, 4, 8], [3, 7, 5, 8]])
    batch = make_batch([[0, 1, 0, 1]] * 3, ids=ids, turn=torch.tensor([[-1, 0, -1, 1]] * 3))
    batch.reward[:, [1, 3]] = torch.tensor([[0.5 + cost, -cost], [0.0, 0.5], [0.5, 0.0]])
    found = grpo.credit(batch, std=std, state_weight=1.0)
    assert found[:, 1].tolist() == pytest.approx([0, 0, 0], abs=0.1)
    half = (0.5 + cost) / 2
    assert found[:, 3].tolist() == pytest.approx([-half, half, 0], abs=0.1)


def test_the_state_of_a_later_row_is_its_own_words():
    ids = torch.tensor([[3, 7, 5], [4, 8, 0], [3, 6, 5], [4, 9, 0]])
    turn = torch.tensor([[-1, 0, -1], [-1, 1, -1]] * 2)
    reward = torch.zeros(4, 3)
    reward[1, 1], reward[3, 1] = 3.0, 1.0
    batch = make_batch(
        (turn >= 0).tolist(), ids=ids, turn=turn, reward=reward, episode=[0, 0, 1, 1], segment=[0, 1, 0, 1]
    )
    assert beside_same_state(batch)[:, 1].tolist() == [1, 1, -1, -1]


def test_an_episode_in_two_rows_has_one_return_and_one_advantage():
    batch = make_batch(
        [[0, 1, 1], [0, 1, 0], [0, 1, 1]],
        episode=[0, 0, 1],
        reward=torch.tensor([[0, 0, 0.5], [0, 0.5, 0], [0, 0, 0]]),
    )
    advantage = grpo.credit(batch, std=False)
    assert advantage.tolist() == [[0, 0.5, 0.5], [0, 0.5, 0], [0, -0.5, -0.5]]


def test_a_group_of_one_is_refused():
    with pytest.raises(RecipeError, match="at least 2"):
        grpo.recipe(grpo.Args(group=1))
    batch = make_batch([[0, 1], [0, 1], [0, 1]], group=[0, 0, 1])
    with pytest.raises(RecipeError, match="group >= 2"):
        grpo.credit(batch, std=True)


def test_seats_of_one_group_have_their_own_statistics():
    reward = torch.tensor([[0, 1.0], [0, 0], [0, 5], [0, 5]])
    batch = make_batch([[0, 1]] * 4, seat=[0, 0, 1, 1], reward=reward)
    assert grpo.credit(batch, std=False)[:, 1].tolist() == [0.5, -0.5, 0, 0]


def test_masked_episodes_count_in_the_statistics_and_get_no_gradient():
    batch = make_batch([[0, 1], [0, 1], [0, 1]], reward=torch.tensor([[0, 3.0], [0, 0], [0, 0]]))
    batch = replace(batch, advantage=grpo.credit(batch, std=False))
    batch = masked(batch, torch.tensor([[True] * 2, [False] * 2, [False] * 2]))
    assert batch.advantage[1:, 1].tolist() == [-1, -1]
    logprobs = torch.zeros(3, 2, requires_grad=True)
    losses, _ = CLIP(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros(3, 2)))
    (losses * batch.weight * aggregation(batch.mask, batch.episode, "token_mean")).sum().backward()
    assert logprobs.grad.tolist() == [[0, 0], [0, 0.5], [0, 0.5]]


def test_the_share_of_clipped_tokens_is_told():
    batch = make_batch([[0, 1, 1, 1]], advantage=torch.ones(1, 4))
    logprobs = torch.tensor([[0, 0.0, 0.5, -0.5]])
    _, figures = CLIP(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros(1, 4)))
    assert figures["clipped"][0, 1:].tolist() == [0, 1, 0]


def test_the_imitation_before_it_weighs_observations_as_told():
    told = (grpo.Args(), grpo.Args(observation_weight=0.3))
    assert [grpo.recipe(args).stages[0].observation_weight for args in told] == [0.0, 0.3]
