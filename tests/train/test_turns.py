"""Credit of turns, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from lmgym.train.parts.turns import Turns
from tests.train.batches import make_batch

REWARDS = {0: [0.5, 0.0, 2.0], 1: [1.0], 2: [0.0, 3.0], 3: [-1.0, 0.25]}  # of the turns, by episode
GROUPS, SEATS = [0, 0, 0, 1], [0, 0, 1, 0]


def batch():
    """Episode 0 in two rows, the rest in one; answers of two tokens, the reward on the second."""
    rows = [(0, 0, [0, 1]), (0, 1, [2]), (1, 0, [0]), (2, 0, [0, 1]), (3, 0, [0, 1])]  # episode, segment, turns
    turn = torch.full((len(rows), 7), -1)
    reward = torch.zeros(len(rows), 7)
    for row, (episode, _, turns) in enumerate(rows):
        for place, number in enumerate(turns):
            turn[row, 1 + 3 * place : 3 + 3 * place] = number
            reward[row, 2 + 3 * place] = REWARDS[episode][number]
    columns = {"episode": [each[0] for each in rows], "segment": [each[1] for each in rows]}
    columns |= {"group": [GROUPS[e] for e in columns["episode"]], "seat": [SEATS[e] for e in columns["episode"]]}
    return make_batch((turn >= 0).tolist(), turn=turn, reward=reward, **columns)


def by_hand(values, key):
    """Normalise a dict (episode, turn) -> value among equal keys, by numpy."""
    found = {}
    for each, value in values.items():
        same = np.array([values[other] for other in values if key(*other) == key(*each)])
        deviation = same.std(ddof=1) if len(same) > 1 else 0.0
        found[each] = 0.0 if deviation == 0 else (value - same.mean()) / (deviation + 1e-6)
    return found


def to_go(values, gamma):
    return {
        (e, t): sum(gamma ** (later - t) * values[e, later] for later in range(t, len(REWARDS[e]))) for e, t in values
    }


PAID = {(e, t): reward for e, rewards in REWARDS.items() for t, reward in enumerate(rewards)}
ORACLES = {
    "reward to go": to_go(PAID, 0.5),
    "normalised, then summed": to_go(by_hand(PAID, lambda e, t: (GROUPS[e], SEATS[e])), 0.9),
    "summed, then normalised by turn": by_hand(to_go(PAID, 0.5), lambda e, t: (GROUPS[e], SEATS[e], t)),
}


@pytest.mark.parametrize("name", ORACLES)
def test_a_composition_is_that_of_plain_loops(name):
    one, expected = batch(), ORACLES[name]
    turns = Turns(one)
    found = {
        "reward to go": lambda: turns.to_go(turns.reward, gamma=0.5),
        "normalised, then summed": lambda: turns.to_go(turns.normal(turns.reward), gamma=0.9),
        "summed, then normalised by turn": lambda: turns.normal(turns.to_go(turns.reward, gamma=0.5), by="turn"),
    }[name]()
    tokens = turns.spread(found)
    assert torch.equal(tokens != 0, (tokens != 0) & one.mask)
    for row, column in one.mask.nonzero().tolist():
        key = int(one.episode[row]), int(one.turn[row, column])
        assert float(tokens[row, column]) == pytest.approx(expected[key], abs=1e-6)


def test_turns_that_are_not_trained_have_no_credit():
    one = make_batch([[0, 1, 0, 0]], turn=[[-1, 0, -1, 1]], reward=[[0, 1.0, 0, 0]])
    turns = Turns(one)
    assert turns.number.tolist() == [0]
    assert turns.spread(turns.reward).tolist() == [[0, 1, 0, 0]]
