from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lmgym.errors import RecipeError
from lmgym.train.parts.importance import BOUNDS, Importance, figures, importance
from tests import oracles
from tests.train.batches import make_batch

ROUNDING = 1e-6
PI, MU = [0.5, 0.3, 0.2], [0.6, 0.3, 0.1]


@pytest.mark.parametrize(("most", "expected"), [(2.0 + 1e-9, 0.2), (1.5, 0.15), (1.0, 0.1)])
def test_a_cap_has_the_bias_worked_by_hand(most, expected):
    """The weighted estimate from the sampler MU for the probability of the third word, which is 0.2 under PI."""
    batch = make_batch([[1]] * 3)
    gap = torch.tensor([[math.log(p / q)] for p, q in zip(PI, MU, strict=True)])
    for mode in ("token_cap", "sequence_cap"):
        factor = Importance(mode, most=most)(batch, gap)
        assert MU[2] * float(factor[2, 0]) == pytest.approx(expected, abs=1e-6)


ratios = st.lists(st.lists(st.floats(0.2, 5), min_size=1, max_size=5), min_size=1, max_size=4)


@settings(deadline=None, max_examples=60)
@given(ratios, st.sampled_from(list(BOUNDS)), st.integers(0, 3))
def test_weights_follow_the_oracle_over_the_segments_of_episodes(found, mode, cut):
    rows, episode, segment = [], [], []
    for number, tokens in enumerate(found):
        for part, some in enumerate((tokens[:cut], tokens[cut:])):
            rows.append(some)
            episode.append(number)
            segment.append(part)
    width = max(map(len, rows)) + 1
    mask = [[0, *[1] * len(row), *[0] * (width - 1 - len(row))] for row in rows]
    gap = torch.tensor([[7.0, *map(math.log, row), *[-7.0] * (width - 1 - len(row))] for row in rows]).double()
    batch = make_batch(mask, episode=episode, segment=segment)
    made = Importance(mode)
    least, most = made.bounds
    hand = oracles.importance(found, mode, least, most)
    wide = oracles.importance(found, mode, least * (1 - ROUNDING), most * (1 + ROUNDING))
    narrow = oracles.importance(found, mode, least * (1 + ROUNDING), most * (1 - ROUNDING))
    assume(np.allclose(np.concatenate(wide), np.concatenate(narrow), atol=1e-4))  # nothing stands on a bound
    assert made(batch, gap)[batch.mask].tolist() == pytest.approx([w for each in hand for w in each], rel=1e-5)


def test_weights_are_told():
    mask = torch.tensor([[False, True, True]])
    told = figures(torch.tensor([[9.0, 0.0, 2.0]]), mask)
    assert told == {
        "importance_mean": 1.0,
        "importance_min": 0.0,
        "importance_max": 2.0,
        "importance_zero": 0.5,
        "importance_effective": 0.5,  # one of two samples is left
    }


def test_bounds_must_make_sense():
    assert importance("none") is None
    with pytest.raises(RecipeError, match="need a mode"):
        importance("none", most=2.0)
    with pytest.raises(RecipeError, match="least < most"):
        importance("token_mask", 2.0, 0.5)
