import pytest
import torch
from torch.nn.functional import pad

from lmgym.policy.local import score as scoring
from lmgym.policy.local.forward import is_supported
from lmgym.policy.local.score import positions_of, score, states

from .models import KINDS, NAMES, model, policy


def batch(width: int = 40) -> tuple[torch.Tensor, torch.Tensor]:
    """Right-padded ids and attention of rows of unequal length, (4, T)."""
    generator = torch.Generator().manual_seed(0)
    lengths = torch.tensor([width, width - 13, 5, 1])
    attention = (torch.arange(width) < lengths[:, None]).long()
    return torch.randint(5, 300, (4, width), generator=generator) * attention, attention


def left(x: torch.Tensor, attention: torch.Tensor) -> torch.Tensor:
    """The same rows padded on the left."""
    return torch.stack([row.roll(len(row) - int(real.sum())) for row, real in zip(x, attention, strict=True)])


def reference(net: torch.nn.Module, ids: torch.Tensor, attention: torch.Tensor, temperature: float) -> torch.Tensor:
    """Log-probs by the library's forward pass, in token positions."""
    logits = net(input_ids=ids, attention_mask=attention, position_ids=positions_of(attention)).logits.float()
    logp = torch.log_softmax(logits / temperature, -1)[:, :-1].gather(-1, ids[:, 1:, None])[..., 0]
    return pad(logp, (1, 0)) * attention * pad(attention, (1, -1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_scores_are_those_of_the_library(name, temperature):
    net = model(name).eval()
    ids, attention = batch()
    with torch.no_grad():
        mine, _ = score(net, ids, attention, temperature=temperature)
        expected = reference(net, ids, attention, temperature)
    assert (mine - expected).abs().max() < 2e-5


@pytest.mark.parametrize("name", NAMES)
def test_padding_on_either_side_gives_the_same(name):
    net = model(name).eval()
    ids, attention = batch()
    with torch.no_grad():
        right = score(net, ids, attention)
        other = score(net, left(ids, attention), left(attention, attention))
        alone = [
            score(net, row[None, : int(real.sum())], real[None, : int(real.sum())])
            for row, real in zip(ids, attention, strict=True)
        ]
    for mine, theirs in zip(right, other, strict=True):
        assert (left(mine, attention) - theirs).abs().max() < 1e-5
    assert (right[0][1, :27] - alone[1][0][0]).abs().max() < 1e-5


def test_only_masked_tokens_are_scored():
    net = model("qwen3").eval()
    ids, attention = batch()
    mask = (torch.arange(ids.numel()).view(ids.shape) % 3 == 0) * attention
    whole, part = score(net, ids, attention), score(net, ids, attention, mask=mask)
    for all_of, some in zip(whole, part, strict=True):
        assert torch.allclose(all_of * mask, some, atol=1e-6)
        assert (some[mask == 0] == 0).all()
    nothing = score(net, ids, attention, mask=torch.zeros_like(mask))
    assert not nothing[0].any()


@pytest.mark.parametrize("name", ["tiny", "qwen2", "llama"])
def test_gradients_are_those_of_the_library(name):
    net = model(name).eval()
    assert is_supported(net)
    ids, attention = batch()
    weight = torch.randn(ids.shape, generator=torch.Generator().manual_seed(1))
    gradients = []
    for logp in (score(net, ids, attention)[0], reference(net, ids, attention, 1.0)):
        net.zero_grad()
        (logp * weight).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in net.named_parameters()})
    for name, mine in gradients[0].items():
        assert (mine - gradients[1][name]).norm() <= 1e-4 * gradients[1][name].norm().clamp(min=1e-3)


def test_entropy_is_that_of_the_distribution():
    net = model("qwen3").eval()
    ids, attention = batch()
    with torch.no_grad():
        _, entropy = score(net, ids, attention, temperature=2.0)
        logits = net(input_ids=ids, attention_mask=attention).logits[0] / 2.0
    expected = torch.distributions.Categorical(logits=logits).entropy()
    assert (entropy[0, 1:] - expected[:-1]).abs().max() < 1e-5


def test_pieces_change_neither_values_nor_gradients(monkeypatch):
    net = model("qwen3").eval()
    ids, attention = batch()
    results = []
    for piece in (1 << 26, 3000):
        monkeypatch.setattr(scoring, "PIECE", piece)
        net.zero_grad()
        logp, entropy = score(net, ids, attention)
        (logp.sum() + entropy.sum()).backward()
        results.append((logp.detach(), entropy.detach(), net.lm_head.weight.grad.clone()))
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_a_long_context_agrees_with_the_library():
    net = model("tiny").eval()
    ids = torch.randint(5, 300, (2, 2048), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        mine, _ = score(net, ids, torch.ones_like(ids))
        expected = reference(net, ids, torch.ones_like(ids), 1.0)
    assert (mine - expected).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["tiny", "gemma2"])
def test_states_are_the_last_hidden_ones(name):
    net = model(name).eval()
    ids, attention = batch()
    with torch.no_grad():
        mine = states(net, ids, attention)
        expected = net.base_model(input_ids=ids, attention_mask=attention).last_hidden_state
    assert (mine - expected * attention[..., None]).abs().max() < 1e-4
    assert not mine[attention == 0].any()


def test_logits_stay_in_fp32_under_autocast():
    net = model("tiny").eval()
    ids, attention = batch()
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logp, _ = score(net, ids, attention)
    with torch.no_grad():
        exact, _ = score(net, ids, attention)
    assert logp.dtype == torch.float32
    assert 0 < (logp - exact).abs().mean() < 0.05


def test_a_policy_scores_at_its_sampling_temperature():
    actor = policy("tiny")
    ids, attention = batch()
    with torch.no_grad():
        assert torch.equal(actor.score(ids, attention)[0], score(actor.model, ids, attention)[0])


def test_every_kind_takes_the_intended_path():
    assert {name for name in KINDS if is_supported(model(name))} == {"qwen2", "qwen3", "llama"}
