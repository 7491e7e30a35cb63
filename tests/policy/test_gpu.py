"""Parts that only a GPU runs: captured steps, fused norms, and a training step in bfloat16."""

import json

import pytest
import torch

from lmgym.policy.load import load_local
from lmgym.policy.local.decoder import Chunk, FusedDecoder
from lmgym.policy.local.forward import network
from lmgym.policy.local.fused import rms
from lmgym.policy.local.kv_cache import KVCache
from lmgym.policy.local.sampling import Sampling
from lmgym.policy.models.tiny import tiny_model
from lmgym.train import run

from .test_decoder import expected

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")


def test_captured_steps_agree_with_the_library_as_rows_and_caches_grow():
    net = tiny_model(vocab=300).eval().requires_grad_(False)
    mine = FusedDecoder(network(net.cuda()), KVCache())
    net = tiny_model(vocab=300).eval()
    rows = {slot: [5 + slot] * (3 + slot) for slot in range(12)}
    mine.feed([Chunk(slot, 0, ids) for slot, ids in rows.items()])
    for step in range(300):
        playing = [slot for slot in rows if step < 280 or slot % 3]
        hidden, logits = mine.feed([Chunk(slot, len(rows[slot]), [7 + step % 200]) for slot in playing])
        for slot in playing:
            rows[slot].append(7 + step % 200)
        if step % 37 == 0 or step == 299:
            for slot, row in zip(playing, torch.log_softmax(logits, -1).cpu(), strict=True):
                assert (row - expected(net, rows[slot])).abs().max() < 1e-4
    assert mine.cache.graphs is not None
    assert sorted(mine.cache.graphs.graphs) == [(8, 16, 512), (16, 16, 512)]  # since the cache grew


def test_new_weights_reach_captured_steps():
    policy = load_local("tiny?seed=1", sampling=Sampling(temperature=0, max_tokens=8), dtype="float32")
    prompts = [list(range(5, 25)), list(range(30, 60))]
    before = policy.sample(prompts)
    other = load_local("tiny?seed=2", sampling=Sampling(temperature=0, max_tokens=8), dtype="float32")
    policy.model.load_state_dict(other.model.state_dict())
    policy.update()
    after = [completion.ids for completion in policy.sample(prompts)]
    assert after == [completion.ids for completion in other.sample(prompts)] != [c.ids for c in before]


@pytest.mark.parametrize("shape", [(64,), (5, 64)])
def test_the_norm_of_the_gpu_and_its_gradient_are_those_of_the_cpu(shape):
    grads = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(0)
        x, weight = torch.randn(7, 5, 64), torch.randn(shape)
        x, weight = (part.to(device).requires_grad_() for part in (x, weight))
        rms(x, weight, 1e-6).square().sum().backward()
        grads.append((x.grad.cpu(), weight.grad.cpu()))
    for one, other in zip(*grads, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_grpo_trains_and_the_sampler_agrees_with_the_scorer(tmp_path):
    run(
        "grpo",
        task="guess_number",
        preset=False,
        out=tmp_path / "run",
        warmup=20,
        warmup_seconds=None,
        steps=2,
        evaluate=16,
    )
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    gaps = [row["gap_mean"] for row in map(json.loads, lines) if row.get("gap_mean")]
    assert gaps
    assert max(gaps) < 0.05
