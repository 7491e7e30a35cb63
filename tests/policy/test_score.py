import pytest
import torch
from peft import IA3Config
from torch.nn.functional import pad

from lmgym.errors import PolicyError
from lmgym.policy.local import score as scoring
from lmgym.policy.local.forward import is_supported
from lmgym.policy.local.score import positions_of, score, states

from .models import KINDS, NAMES, model, policy

LENGTHS = torch.tensor([40, 27, 5, 1])
ATTENTION = (torch.arange(40) < LENGTHS[:, None]).long()  # (4, T), padded on the right
IDS = torch.randint(5, 300, ATTENTION.shape, generator=torch.Generator().manual_seed(0)) * ATTENTION


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
    with torch.no_grad():
        mine, _ = score(net, IDS, ATTENTION, temperature=temperature)
        expected = reference(net, IDS, ATTENTION, temperature)
    assert (mine - expected).abs().max() < 2e-5


@pytest.mark.parametrize("name", NAMES)
def test_padding_on_either_side_gives_the_same(name):
    net = model(name).eval()
    with torch.no_grad():
        right = score(net, IDS, ATTENTION)
        other = score(net, left(IDS, ATTENTION), left(ATTENTION, ATTENTION))
        alone = [
            score(net, row[None, : int(real.sum())], real[None, : int(real.sum())])
            for row, real in zip(IDS, ATTENTION, strict=True)
        ]
    for mine, theirs in zip(right, other, strict=True):
        assert (left(mine, ATTENTION) - theirs).abs().max() < 1e-5
    assert (right[0][1, :27] - alone[1][0][0]).abs().max() < 1e-5


def test_only_masked_tokens_are_scored_and_entropy_is_that_of_the_distribution():
    net = model("qwen3").eval()
    mask = (torch.arange(IDS.numel()).view(IDS.shape) % 3 == 0) * ATTENTION
    whole, part = score(net, IDS, ATTENTION), score(net, IDS, ATTENTION, mask=mask)
    for all_of, some in zip(whole, part, strict=True):
        assert torch.allclose(all_of * mask, some, atol=1e-6)
        assert (some[mask == 0] == 0).all()
    nothing = score(net, IDS, ATTENTION, mask=torch.zeros_like(mask))
    assert not nothing[0].any()
    with torch.no_grad():
        _, entropy = score(net, IDS, ATTENTION, temperature=2.0)
        logits = net(input_ids=IDS, attention_mask=ATTENTION).logits[0] / 2.0
    expected = torch.distributions.Categorical(logits=logits).entropy()
    assert (entropy[0, 1:] - expected[:-1]).abs().max() < 1e-5


@pytest.mark.parametrize("name", ["tiny", "qwen2", "llama"])
def test_gradients_are_those_of_the_library(name):
    net = model(name).eval()
    assert is_supported(net)
    weight = torch.randn(IDS.shape, generator=torch.Generator().manual_seed(1))
    gradients = []
    for logp in (score(net, IDS, ATTENTION)[0], reference(net, IDS, ATTENTION, 1.0)):
        net.zero_grad()
        (logp * weight).sum().backward()
        gradients.append({name: p.grad.clone() for name, p in net.named_parameters()})
    for name, mine in gradients[0].items():
        assert (mine - gradients[1][name]).norm() <= 1e-4 * gradients[1][name].norm().clamp(min=1e-3)


def test_pieces_change_neither_values_nor_gradients(monkeypatch):
    net = model("qwen3").eval()
    results = []
    for piece in (1 << 26, 3000):
        monkeypatch.setattr(scoring, "PIECE", piece)
        net.zero_grad()
        logp, entropy = score(net, IDS, ATTENTION)
        (logp.sum() + entropy.sum()).backward()
        results.append((logp.detach(), entropy.detach(), net.lm_head.weight.grad.clone()))
    for one, other in zip(*results, strict=True):
        assert torch.allclose(one, other, atol=1e-4)


def test_a_long_context_agrees_with_the_library_and_logits_stay_in_fp32_under_autocast():
    net = model("tiny").eval()
    ids = torch.randint(5, 300, (2, 2048), generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        mine, _ = score(net, ids, torch.ones_like(ids))
        expected = reference(net, ids, torch.ones_like(ids), 1.0)
    assert (mine - expected).abs().max() < 1e-5
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        logp, _ = score(net, IDS, ATTENTION)
    with torch.no_grad():
        exact, _ = score(net, IDS, ATTENTION)
    assert logp.dtype == torch.float32
    assert 0 < (logp - exact).abs().mean() < 0.05


@pytest.mark.parametrize("name", ["tiny", "gemma2"])
def test_states_are_the_last_hidden_ones(name):
    net = model(name).eval()
    with torch.no_grad():
        mine = states(net, IDS, ATTENTION)
        expected = net.base_model(input_ids=IDS, attention_mask=ATTENTION).last_hidden_state
    assert (mine - expected * ATTENTION[..., None]).abs().max() < 1e-4
    assert not mine[ATTENTION == 0].any()


def test_a_policy_scores_at_its_sampling_temperature():
    actor = policy("tiny")
    with torch.no_grad():
        assert torch.equal(actor.score(IDS, ATTENTION)[0], score(actor.model, IDS, ATTENTION)[0])


def test_every_kind_takes_the_intended_path():
    assert {name for name in KINDS if is_supported(model(name))} == {"qwen2", "qwen3", "llama"}


def test_other_layers_than_linear_ones_take_the_path_of_the_library():
    adapted = model("qwen3")
    adapted.add_adapter(IA3Config(target_modules=["k_proj"], feedforward_modules=[]))
    assert not is_supported(adapted)
    quantised = policy("qwen3")
    quantised.model.config.quantization_config = {"quant_method": "fp8"}
    assert not is_supported(quantised.model)
    with pytest.raises(PolicyError, match="has quantised weights, which cannot be trained: train adapters"):
        quantised.hold_in_fp32()
