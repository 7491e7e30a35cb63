import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from lmgym.policy.local import prefixes
from lmgym.policy.local.forward import is_supported
from lmgym.policy.local.prefixes import BRANCHES, alike, families, places, shared_rows
from lmgym.policy.local.score import score, states
from lmgym.policy.models.tiny import tiny_model
from lmgym.train.update import recompute_activations

from .models import NAMES, model


def row(*ids: int) -> np.ndarray:
    return np.array(ids, np.int64)


STEM = list(range(5, 45))
FORKS = [  # branches at two places, one that only begins the stem, one of another branch, a stranger
    STEM,
    [*STEM[:30], 90, 91, 92],
    [*STEM[:30], 93],
    STEM[:25],
    [*STEM[:38], 94, 95],
    list(range(100, 120)),
    [*range(100, 115), 99],
]


def batch(rows: list[list[int]], *, on_the_left: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids and attention (B, T) of rows."""
    width = max(map(len, rows))
    pads = [(width - len(each)) * [0] for each in rows]
    ids = torch.tensor([pad + each if on_the_left else each + pad for each, pad in zip(rows, pads, strict=True)])
    real = [[0] * len(pad) + [1] * len(each) for each, pad in zip(rows, pads, strict=True)]
    attention = torch.tensor([each if on_the_left else each[::-1] for each in real])
    return ids, attention


def test_branches_go_on_from_the_longest_row_that_begins_like_them():
    layout = places([np.array(each, np.int64) for each in FORKS])
    assert [tuple(place) for place in layout] == [(0, 40), (0, 30), (0, 30), (0, 25), (0, 38), (5, 20), (5, 15)]
    assert families(FORKS).tolist() == [0, 0, 0, 0, 0, 5, 5]


def test_a_row_that_shares_less_than_half_is_a_stem():
    assert [place.stem for place in places([row(1, 2, 3, 4, 5, 6), row(1, 2, 9, 9, 9)])] == [0, 1]
    assert [place.stem for place in places([row(1, 2, 3, 4, 5, 6), row(1, 2, 9, 9)])] == [0, 0]


def test_a_stem_has_a_limited_number_of_branches_and_of_their_tokens():
    rows = [row(*range(200)), *(row(*range(199), 300 + n) for n in range(BRANCHES + 5))]
    stems = families(rows).tolist()
    assert max(stems.count(stem) for stem in set(stems)) == BRANCHES + 1
    rows = [row(*range(20)), *(row(*range(10), *range(100 * n, 100 * n + 9)) for n in range(1, 5))]
    assert families(rows).tolist().count(0) == 3  # 18 tokens of two branches


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=9), min_size=1, max_size=12))
@settings(max_examples=200, deadline=None)
def test_places_are_prefixes_of_stems(rows):
    arrays = [np.array(each, np.int64) for each in rows]
    for number, place in enumerate(places(arrays)):
        stem = places(arrays)[place.stem]
        assert stem.stem == place.stem
        assert place.shared <= alike(arrays[place.stem], arrays[number])
        assert 2 * place.shared >= len(rows[number])


@pytest.mark.parametrize("name", [name for name in NAMES if is_supported(model(name))])
@pytest.mark.parametrize("on_the_left", [False, True])
@pytest.mark.parametrize("checkpointing", [False, True])
def test_sharing_changes_neither_scores_nor_states_nor_gradients(name, on_the_left, checkpointing, monkeypatch):
    ids, attention = batch(FORKS, on_the_left=on_the_left)

    def scored() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, list[torch.Tensor]]:
        net = copy.deepcopy(model(name)).eval()
        if checkpointing:
            recompute_activations(net)
        (logp, entropy), hidden = score(net, ids, attention), states(net, ids, attention)
        weights = torch.arange(logp.numel()).view(logp.shape) % 7
        ((logp + 0.1 * entropy + hidden.mean(-1)) * weights).sum().backward()
        return logp, entropy, hidden, [weight.grad for weight in net.parameters() if weight.grad is not None]

    *shared, gradients = scored()
    monkeypatch.setattr(prefixes, "SAVED", 2.0)
    *apart, expected = scored()
    for mine, theirs in zip(shared, apart, strict=True):
        assert (mine - theirs).abs().max() < 1e-5
    for mine, theirs in zip(gradients, expected, strict=True):
        assert (mine - theirs).abs().max() < 1e-4 * max(1.0, float(theirs.abs().max()))


def test_shared_tokens_are_computed_once():
    tokens = torch.tensor([i for each in FORKS for i in each])
    shared = shared_rows(tokens, [len(each) for each in FORKS])
    assert shared is not None
    assert len(shared.order) == 40 + 3 + 1 + 0 + 2 + 20 + 1
    assert torch.equal(tokens[shared.order][shared.source], tokens)
    assert shared_rows(torch.arange(60), [20, 20, 20]) is None


def test_rows_are_a_family_only_where_sharing_saves_a_quarter():
    stem, short = list(range(3000)), [[*range(100), *(5000 + 60 * n + i for i in range(50))] for n in range(8)]
    assert families([stem, *short]).tolist() == list(range(9))
    long = [[*range(2900), *(5000 + 60 * n + i for i in range(50))] for n in range(8)]
    assert families([stem, *long]).tolist() == [0] * 9


def test_a_row_goes_to_a_stem_with_room():
    left, right = [1, 2, 3, 4, 5, 6], [1, 2, 3, 9, 9, 9]
    full = [[1, 2, 3, 4, 8, 8], [1, 2, 3, 4, 7, 7], [1, 2, 3, 4, 6, 6]]  # six tokens of their own
    layout = places([np.array(row, np.int64) for row in (left, right, *full, [1, 2, 3, 5])])
    assert layout[-1].shared == 3


@pytest.mark.parametrize("read", [score, states])
def test_gradients_have_the_same_bits_each_time_on_two_threads(read):
    net = tiny_model(vocab=300, seed=0, changes={"hidden_size": 128, "num_hidden_layers": 2}).eval()
    random = torch.Generator().manual_seed(0)
    stem = torch.randint(5, 300, (40,), generator=random).expand(33, -1)
    ids = torch.cat([stem, torch.randint(5, 300, (33, 12), generator=random)], 1)

    def gradient() -> bytes:
        net.zero_grad()
        out = read(net, ids, torch.ones_like(ids))
        out = out[0] if isinstance(out, tuple) else out
        (out * torch.arange(out.numel()).view(out.shape).cos()).sum().backward()
        return b"".join(weight.grad.numpy().tobytes() for weight in net.parameters() if weight.grad is not None)

    torch.set_num_threads(2)
    try:
        assert len({gradient() for _ in range(10)}) == 1
    finally:
        torch.set_num_threads(1)
