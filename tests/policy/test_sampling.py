import numpy as np
import pytest
import torch

from lmgym.errors import PolicyError
from lmgym.policy.local.sampling import Sampling, draw, truncate
from lmgym.policy.noise import stream, uniform

LOGITS = torch.tensor([[0.5, 0.1, 0.25, 0.15], [0.1, 0.2, 0.3, 0.4]]).log()


def drawn(sampling: Sampling, *, draws: int = 4000, row: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    noise = (torch.arange(draws) + 0.5) / draws
    return draw(LOGITS[row].expand(draws, -1), noise, sampling)


def test_draws_follow_the_softmax():
    ids, logprobs, entropy = drawn(Sampling())
    assert torch.bincount(ids, minlength=4).tolist() == [2000, 400, 1000, 600]
    assert torch.allclose(logprobs, LOGITS[0][ids], atol=1e-6)
    expected = -sum(p * np.log(p) for p in (0.5, 0.1, 0.25, 0.15))
    assert torch.allclose(entropy, torch.full_like(entropy, expected), atol=1e-6)


@pytest.mark.parametrize(
    ("sampling", "row", "expected"),
    [
        (Sampling(temperature=0.5), 0, {0: 25 / 34.5, 1: 1 / 34.5, 2: 6.25 / 34.5, 3: 2.25 / 34.5}),  # the squares
        (Sampling(top_p=0.7), 0, {0: 2 / 3, 2: 1 / 3}),  # 0.5 + 0.25 suffice
        (Sampling(top_p=0.3), 0, {0: 1.0}),
        (Sampling(top_k=2), 1, {2: 3 / 7, 3: 4 / 7}),
        (Sampling(top_k=9), 0, {0: 0.5, 1: 0.1, 2: 0.25, 3: 0.15}),
    ],
)
def test_draws_and_figures_are_those_after_temperature_top_p_and_top_k(sampling, row, expected):
    ids, logprobs, entropy = drawn(sampling, row=row)
    assert set(ids.tolist()) == set(expected)
    for token, probability in expected.items():
        assert torch.allclose(logprobs[ids == token].exp(), torch.tensor(probability), atol=1e-6)
        assert (ids == token).float().mean() == pytest.approx(probability, abs=1e-3)
    assert entropy[0] == pytest.approx(-sum(p * np.log(p) for p in expected.values()), abs=1e-6)


def test_truncation_agrees_with_a_direct_computation():
    logits = torch.randn(20, 50, generator=torch.Generator().manual_seed(0))
    kept = truncate(logits, Sampling(top_p=0.6, top_k=17)).isfinite()
    for row, mine in zip(logits, kept, strict=True):
        best = sorted(range(50), key=lambda i: -float(row[i]))[:17]
        probs = row[best].softmax(-1)
        size = next(n for n in range(1, 18) if float(probs[:n].sum()) >= 0.6)
        assert mine.nonzero()[:, 0].tolist() == sorted(best[:size])


def test_temperature_zero_takes_the_likeliest_and_extreme_noise_no_token_of_probability_zero():
    ids, logprobs, entropy = draw(LOGITS, torch.tensor([0.9, 0.1]), Sampling(temperature=0.0))
    assert ids.tolist() == [0, 3]
    assert logprobs.tolist() == entropy.tolist() == [0.0, 0.0]
    logits = torch.full((2, 5), float("-inf")).index_fill(1, torch.tensor([1, 3]), 0.0)
    ids, logprobs, _ = draw(logits, torch.tensor([0.0, 1.0]), Sampling())
    assert ids.tolist() == [1, 3]
    assert logprobs.isfinite().all()


@pytest.mark.parametrize("wrong", [{"temperature": -1.0}, {"top_p": 0.0}, {"top_k": -1}, {"max_tokens": 0}])
def test_senseless_settings_are_refused(wrong):
    with pytest.raises(PolicyError, match="sampling needs"):
        Sampling(**wrong)
    with pytest.raises(PolicyError, match="an empty stop string ends every answer at once"):
        Sampling(stop=("x", ""))


def test_noise_is_that_of_splitmix64_uniform_and_of_streams_that_differ():
    names = [(0,), (1,), (0, 0), (0, 1), (1, 0), (-1,), (2**63,)]
    keys = np.array([stream(0, name) for name in names], dtype=np.uint64)
    assert len({*keys.tolist(), stream(1, (0,))}) == len(names) + 1
    values = uniform(np.repeat(keys[:1], 20000), np.arange(20000, dtype=np.uint64))
    assert values.dtype == np.float32
    assert 0 <= values.min() < values.max() < 1
    assert np.bincount((values * 10).astype(int)) == pytest.approx(np.full(10, 2000), abs=180)  # four sigma
    assert abs(np.corrcoef(values[:-1], values[1:])[0, 1]) < 0.03
    other = uniform(np.repeat(keys[1:2], 20000), np.arange(20000, dtype=np.uint64))
    assert abs(np.corrcoef(values, other)[0, 1]) < 0.03
    first = 6457827717110365317  # of the published generator, from state 1234567
    key = np.array([1234567], dtype=np.uint64)
    assert uniform(key, np.zeros(1, np.uint64)).tolist() == [(first >> 40) * 2.0**-24]
