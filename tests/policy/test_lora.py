"""Adapters: the sampler, the learner and the model itself see the same weights; the base is there without them."""

from __future__ import annotations

import pytest
import torch

from lmgym.baselines import grpo
from lmgym.errors import PolicyError
from lmgym.policy.load import load_local
from lmgym.policy.local.lora import adapt, adapted, without_adapter
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.local.score import score
from lmgym.train import loop
from tests.policy.models import policy

RANK = 3
IDS = torch.tensor([list(range(5, 30))])
QUICK = {"warmup": 1, "steps": 2, "instances": 2, "group": 2, "evaluate": 2, "drop_flat": False, "kl": 0.1}


def saved(tmp_path, name):
    """A base on the disk, and the same with adapters that do something."""
    policy(name).save(tmp_path / "base")
    made = load_local(f"hf:{tmp_path / 'base'}", sampling=Sampling(max_tokens=8))
    adapt(made.model, rank=RANK)
    for key, weight in made.model.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(weight, std=0.3, generator=torch.Generator().manual_seed(1))
    made.update()
    return made


def logprobs(made, ids):
    return made.score(ids, torch.ones_like(ids))[0]


@pytest.mark.parametrize("name", ["qwen3", "gemma3"])  # our own forward pass, and the model's
def test_what_is_sampled_is_what_is_scored(tmp_path, name):
    made = saved(tmp_path, name)
    prefix = list(range(5, 15))
    (answer,) = made.sample([prefix])
    whole = torch.tensor([[*prefix, *answer.ids]])
    again = logprobs(made, whole)[0, len(prefix) :]
    assert torch.allclose(again, torch.tensor(answer.logprobs), atol=1e-4)
    with torch.no_grad():
        logits = made.model(whole).logits.log_softmax(-1)[0, :-1].gather(-1, whole[0, 1:, None])[:, 0]
    assert torch.allclose(logits, logprobs(made, whole)[0, 1:], atol=1e-4)


@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_without_its_adapter_a_model_is_its_base(tmp_path, name):
    made, base = saved(tmp_path, name), load_local(f"hf:{tmp_path / 'base'}")
    assert not torch.allclose(logprobs(made, IDS), logprobs(base, IDS), atol=1e-2)
    with without_adapter(made.model):
        assert torch.equal(logprobs(made, IDS), logprobs(base, IDS))
    assert adapted(made.model)
    assert not adapted(base.model)


def test_only_adapters_learn_and_a_run_saves_them_and_loads_with_its_base(tmp_path):
    made = saved(tmp_path, "qwen3")
    score(made.model, IDS, torch.ones_like(IDS))[0].sum().backward()
    trained = {name for name, weight in made.model.named_parameters() if weight.grad is not None and weight.grad.any()}
    assert trained
    assert all("lora_" in name for name in trained)
    assert len(trained) == 2 * 7 * made.model.config.num_hidden_layers  # two matrices a layer, seven layers a block
    before = {name: weight.clone() for name, weight in made.model.named_parameters()}
    result = loop.run(
        grpo.recipe(grpo.Args(**QUICK)), made, task="lmgym/GuessNumber-v0", folder=tmp_path / "run", quiet=True
    )
    changed = {name for name, weight in made.model.named_parameters() if not torch.equal(weight, before[name])}
    assert changed
    assert all("lora_" in name for name in changed)
    assert not (result.policy / "model.safetensors").exists()
    again = load_local(f"hf:{result.policy}")
    assert torch.allclose(logprobs(again, IDS), logprobs(made, IDS), atol=1e-5)
    assert {name for name, weight in again.model.named_parameters() if weight.requires_grad} == trained
    with pytest.raises(PolicyError, match="leave out --lora"):
        adapt(again.model, rank=RANK)


@pytest.mark.parametrize("name", ["qwen3", "gemma3"])
def test_adapters_of_a_base_in_16_bits_are_trained_in_32(tmp_path, name):
    policy(name).save(tmp_path / "base")
    base = load_local(f"hf:{tmp_path / 'base'}")
    base.model.to(torch.bfloat16)
    base.save(tmp_path / "half")
    made = load_local(f"hf:{tmp_path / 'half'}", sampling=Sampling(max_tokens=8))
    adapt(made.model, rank=RANK)
    made.hold_in_fp32()
    dtypes = {weight.requires_grad: weight.dtype for weight in made.model.parameters()}
    assert dtypes == {True: torch.float32, False: torch.bfloat16}
    before = logprobs(made, IDS)
    before.sum().backward()
    for key, weight in made.model.named_parameters():
        if "lora_B" in key:
            weight.data -= 1e-5 * weight.grad.sign()
    made.update()
    change = (logprobs(made, IDS) - before).sum()
    if name == "qwen3":  # our own forward pass adds the adapter in fp32
        assert -0.1 < change < -1e-5
    (answer,) = made.sample([list(range(5, 15))])
    whole = torch.tensor([[*range(5, 15), *answer.ids]])
    gap = logprobs(made, whole)[0, 10:] - torch.tensor(answer.logprobs)
    assert gap.abs().mean() < 0.1  # sampled in bfloat16
    made.save(tmp_path / "adapter")
    assert torch.allclose(logprobs(load_local(f"hf:{tmp_path / 'adapter'}"), IDS), logprobs(made, IDS), atol=0.05)


def test_a_base_made_in_code_and_a_rank_of_nothing_are_refused(tmp_path):
    with pytest.raises(PolicyError, match="hf:NAME_OR_PATH"):
        adapt(load_local("tiny").model, rank=RANK)
    policy("qwen3").save(tmp_path)
    with pytest.raises(PolicyError, match="must be 1 or more"):
        adapt(load_local(f"hf:{tmp_path}").model, rank=0)
