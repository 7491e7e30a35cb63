from __future__ import annotations

import copy
import math
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from lmgym.baselines.grpo import surrogate
from lmgym.errors import RecipeError
from lmgym.policy.local.forward import final_norm_of
from lmgym.train import update
from lmgym.train.batch import Batch, masked, micro_batches
from lmgym.train.interfaces import Optimiser, Term
from lmgym.train.muon import Float32Muon
from lmgym.train.parts import value
from lmgym.train.parts.losses import kl_to_start, nll, unit_surrogate
from lmgym.train.schedule import StageProgress, constant
from lmgym.train.update import Updater, fitting_tokens, logprobs_of, minibatches, optimisers, token_bytes
from tests.policy import models
from tests.train.batches import make_batch
from tests.train.chain import chain_policy, services_of
from tests.train.toys import VOCABULARY, Bigram, gradient, scorer, toy_model

HERE = StageProgress(0, 0.0)
CLIP = Term(loss=partial(surrogate, low=0.2, high=0.28, dual=3.0))
EPISODES = Term(loss=partial(unit_surrogate, unit="geometric", low=9.0, high=9.0), together=lambda batch: batch.episode)


def ragged(seed: int = 0, rows: int = 9, length: int = 24) -> Batch:
    """Rows of random length with gaps in their masks, three segments to an episode."""
    random = torch.Generator().manual_seed(seed)
    lengths = torch.randint(4, length + 1, (rows,), generator=random)
    attention = torch.arange(length) < lengths[:, None]
    mask = attention & (torch.rand(rows, length, generator=random) < 0.5)
    mask[:, 0] = False
    mask[:, 1] = True
    ids = torch.randint(1, VOCABULARY, (rows, length), generator=random) * attention
    advantage = torch.randn(rows, length, generator=random) * mask
    return make_batch(mask.tolist(), ids=ids, attention=attention, advantage=advantage, episode=torch.arange(rows) // 3)


def frozen(model, score, *terms, **spec) -> Updater:
    """An Updater whose steps leave the weights and the gradients as they are."""
    made = Updater(model, score, Optimiser(clip=0, **spec), terms)
    made.optimisers = []
    return made


def bigram():
    model = Bigram()
    return model, model.score


def transformer():
    model = toy_model()
    return model, scorer(model)


def gpt2():
    model = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=VOCABULARY)).eval()
    return model, scorer(model)


@pytest.mark.parametrize(
    ("make", "term", "kind", "rounding"),
    [
        *(
            (bigram, term, kind, 1e-12)
            for kind in ("token_mean", "seq_mean", "seq_sum", "const_norm")
            for term in (Term(loss=nll), CLIP, EPISODES)
        ),
        (transformer, CLIP, CLIP.aggregation, 1e-6),  # which reads the padding
    ],
)
def test_micro_batches_change_the_gradient_by_rounding_only(make, term, kind, rounding):
    batch, found = ragged(), []
    for tokens in (1, 60, 10_000):
        model, score = make()
        updater = frozen(model, score, replace(term, aggregation=kind), micro_tokens=tokens)
        updater.update(batch, HERE, seed=(0,))
        found.append(gradient(model))
    scale = found[0].norm()
    assert scale > 0
    assert all((g - found[0]).norm() < rounding * scale for g in found)


def test_the_side_of_the_padding_changes_the_gradient_by_rounding_only():
    batch, found = ragged(), []
    shift = batch.ids.shape[1] - batch.lengths
    column = (torch.arange(batch.ids.shape[1]) - shift[:, None]) % batch.ids.shape[1]
    left = replace(batch, **{n: getattr(batch, n).gather(1, column) for n in ("ids", "attention", "mask", "weight")})
    for side in (batch, left):
        model = toy_model()
        logprobs, _ = scorer(model)(side)
        (-logprobs * side.weight).sum().backward()
        found.append(gradient(model))
    assert (found[0] - found[1]).norm() < 1e-6 * found[0].norm()


def test_masked_tokens_get_exactly_no_gradient():
    batch = ragged()
    batch = replace(batch, reference=torch.full(batch.ids.shape, -1.0), advantage=batch.advantage + 0.01)
    logprobs = torch.zeros(batch.ids.shape, requires_grad=True)

    def score(part):
        order = micro_batches(batch.lengths, 4096)[0]
        return logprobs[order, : part.ids.shape[1]], torch.zeros(part.ids.shape)

    kl = Term(loss=partial(kl_to_start, kind="k2"), name="kl", coef=constant(0.3))
    frozen(Bigram(), score, CLIP, Term(loss=nll, name="nll"), kl).update(batch, HERE, seed=(0,))
    assert not logprobs.grad[~batch.mask].any()
    assert logprobs.grad[batch.mask].all()


@pytest.mark.parametrize("term", [CLIP, EPISODES])
def test_what_masked_tokens_hold_changes_nothing(term):
    batch, found = ragged(), []
    noise = torch.full(batch.ids.shape, 7.0).masked_fill(batch.mask, 0.0)
    for other in (batch, replace(batch, advantage=batch.advantage + noise, logprobs=batch.logprobs + noise)):
        model = toy_model()
        frozen(model, scorer(model), term).update(other, HERE, seed=(0,))
        found.append(gradient(model))
    assert torch.equal(*found)


def test_episodes_that_are_masked_whole_are_left_out_of_the_update():
    batch = ragged()
    out = (batch.episode == 0)[:, None] & batch.mask
    found = []
    for tokens in (1, 10_000):
        model = toy_model()
        figures = frozen(model, scorer(model), CLIP, micro_tokens=tokens).update(masked(batch, out), HERE, seed=(0,))
        found.append(gradient(model))
    assert figures["trained_tokens"] == int(batch.mask.sum() - out.sum())
    assert (found[0] - found[1]).norm() < 1e-6 * found[0].norm()


def test_the_ratio_is_one_at_the_first_step_and_moves_after_it():
    batch = ragged()
    model = toy_model()
    old = logprobs_of(batch, scorer(model), torch.device("cpu"), tokens=100)
    batch = replace(batch, logprobs=old)
    updater = Updater(model, scorer(model), Optimiser(lr=1e-2, epochs=2), [CLIP])
    figures = updater.update(batch, HERE, seed=(0,))
    assert figures["gap_max"] < 1e-5
    assert figures["ratio_max"] > 1.001
    assert figures["optimiser_steps"] == 2


def test_a_single_step_takes_its_own_log_probs_for_the_old_ones_and_tells_the_gap():
    batch, found = ragged(), []
    exact = replace(batch, logprobs=logprobs_of(batch, scorer(toy_model()), torch.device("cpu"), tokens=100))
    coarse = replace(exact, logprobs=exact.logprobs + 0.3 * batch.mask)
    for other, own in ((exact, False), (coarse, True)):
        model = toy_model()
        updater = frozen(model, scorer(model), CLIP)
        updater.scores_old = own
        figures = updater.update(other, HERE, seed=(0,))
        found.append(gradient(model))
    assert (found[0] - found[1]).norm() < 1e-5 * found[0].norm()
    assert figures["gap_mean"] == pytest.approx(0.3, abs=1e-4)


def test_the_first_grpo_gradient_is_that_of_the_weighted_likelihood():
    batch, found = ragged(), []
    model = toy_model()
    batch = replace(batch, logprobs=logprobs_of(batch, scorer(model), torch.device("cpu"), tokens=100))
    for term, weight in ((CLIP, batch.weight), (Term(loss=nll), batch.weight * batch.advantage)):
        model = toy_model()
        frozen(model, scorer(model), term).update(replace(batch, weight=weight), HERE, seed=(0,))
        found.append(gradient(model))
    assert (found[0] - found[1]).norm() < 1e-5 * found[1].norm()


def test_imitation_loss_is_the_likelihood_of_the_trained_tokens():
    batch = ragged()
    model = Bigram()
    figures = frozen(model, model.score, Term(loss=nll)).update(batch, HERE, seed=(0,))
    table = torch.log_softmax(model.table.detach(), -1)
    hand = [-float(table[batch.ids[b, t - 1], batch.ids[b, t]]) for b, t in batch.mask.nonzero().tolist()]
    assert figures["loss"] == pytest.approx(sum(hand) / len(hand), abs=1e-12)
    assert "gap_max" not in figures


def test_imitation_of_a_table_finds_the_frequencies():
    ids = torch.tensor([[1, 2], [1, 2], [1, 2], [1, 3]])
    batch = make_batch([[0, 1]] * 4, ids=ids)
    model = Bigram()
    updater = Updater(model, model.score, Optimiser(lr=0.1, clip=0), [Term(loss=nll)])
    for _ in range(300):
        updater.update(batch, HERE, seed=(0,))
    assert torch.softmax(model.table[1], -1)[[2, 3]].tolist() == pytest.approx([0.75, 0.25], abs=1e-2)


def test_minibatches_keep_the_segments_of_an_episode_together():
    batch = ragged(rows=12)
    parts = list(minibatches(batch, 3, seed=(1,)))
    assert [len(part) for part in parts] in ([6, 3, 3], [3, 6, 3], [3, 3, 6])
    found = [set(part.episode.tolist()) for part in parts]
    assert sum(map(len, found)) == len(set.union(*found)) == 4
    again = list(minibatches(batch, 3, seed=(1,)))
    assert all(torch.equal(a.ids, b.ids) for a, b in zip(parts, again, strict=True))


@pytest.mark.parametrize(("make", "shared"), [(transformer, True), (gpt2, False)])
def test_forks_that_begin_alike_share_a_pass_where_that_saves_work(make, shared):
    random = torch.Generator().manual_seed(0)
    stems = torch.randint(1, VOCABULARY, (3, 16), generator=random)
    tails = torch.randint(1, VOCABULARY, (12, 4), generator=random)
    lengths = torch.tensor([17, 18, 19, 20] * 3)[torch.randperm(12, generator=random)]
    attention = torch.arange(20) < lengths[:, None]
    mask = attention & (torch.arange(20) >= 16)
    ids = torch.cat([stems[torch.arange(12) % 3], tails], 1) * attention
    forks = make_batch(mask.tolist(), ids=ids, attention=attention, forked=torch.ones(12, dtype=torch.long))
    model, score = make()
    passes: list[set[int]] = []

    def counted(part: Batch) -> tuple[torch.Tensor, ...]:
        passes.append({stems.tolist().index(row[:16].tolist()) for row in part.ids})
        return score(part)

    def passes_over(batch: Batch) -> list[set[int]]:
        passes.clear()
        frozen(model, counted, Term(loss=nll), micro_tokens=80).update(batch, HERE, seed=[0])
        return sorted(passes, key=min)

    assert (passes_over(forks) == [{0}, {1}, {2}]) == shared
    assert any(len(each) > 1 for each in passes_over(replace(forks, forked=torch.zeros_like(forks.forked))))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_no_number_stops_the_run_and_leaves_the_weights(bad):
    batch = replace(ragged(), advantage=torch.full((9, 24), bad))
    model = toy_model()
    before = [weight.detach().clone() for weight in model.parameters()]
    with pytest.raises(RecipeError, match="last checkpoint"):
        Updater(model, scorer(model), Optimiser(), [CLIP]).update(batch, HERE, seed=(0,))
    assert all(torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_weights_that_a_step_made_no_numbers_stop_the_run():
    model = toy_model()
    with pytest.raises(RecipeError, match="NaN or infinite.*last checkpoint; try a smaller lr"):
        Updater(model, scorer(model), Optimiser(schedule=constant(math.inf)), [CLIP]).update(ragged(), HERE, seed=(0,))


def test_muon_takes_the_hidden_matrices_and_adam_the_rest():
    model = toy_model()
    muon, adam = Updater(model, scorer(model), Optimiser(kind="muon"), [CLIP]).optimisers
    assert isinstance(muon, torch.optim.Muon)
    assert all(weight.ndim == 2 for weight in muon.param_groups[0]["params"])
    embedding = model.get_input_embeddings().weight
    assert any(weight is embedding for weight in adam.param_groups[0]["params"])
    count = sum(len(o.param_groups[0]["params"]) for o in (muon, adam))
    assert count == len(list(model.parameters()))


@pytest.mark.parametrize("shape", [(8, 24), (24, 8), (16, 16)])
def test_muon_in_float32_steps_as_in_bfloat16(shape):
    ours, theirs = (torch.nn.Parameter(torch.ones(shape)) for _ in range(2))
    rates = {"lr": 0.1, "weight_decay": 0.5, "adjust_lr_fn": "match_rms_adamw"}
    pair = (Float32Muon([ours], **rates), torch.optim.Muon([theirs], **rates))
    random = torch.Generator().manual_seed(0)
    for _ in range(3):
        ours.grad = theirs.grad = torch.randn(shape, generator=random)
        for optimiser in pair:
            optimiser.step()
    moved = (theirs.detach() - (1 - 0.1 * 0.5) ** 3).norm()
    assert (ours - theirs).norm() < 0.02 * moved
    assert torch.equal(*(optimiser.state_dict()["state"][0]["momentum_buffer"] for optimiser in pair))


def test_both_optimisers_lower_the_loss():
    for kind in ("adamw", "muon"):
        model, batch = toy_model(), ragged()
        updater = Updater(model, scorer(model), Optimiser(kind=kind, lr=1e-2), [Term(loss=nll)])
        losses = [updater.update(batch, HERE, seed=(0,))["loss"] for _ in range(20)]
        assert losses[-1] < 0.8 * losses[0]


def test_a_restored_updater_goes_on_with_the_same_bits():
    batch, weights = ragged(), []
    model = toy_model()
    updater = Updater(model, scorer(model), Optimiser(lr=1e-2, minibatches=2), [CLIP])
    updater.update(batch, HERE, seed=(0,))
    saved, state = copy.deepcopy((updater.state_dict(), model.state_dict()))
    for target in (model, toy_model(seed=5)):
        other = Updater(target, scorer(target), Optimiser(lr=1e-2, minibatches=2), [CLIP])
        target.load_state_dict(state)
        other.load_state_dict(copy.deepcopy(saved))
        other.update(batch, HERE, seed=(1,))
        weights.append(torch.cat([weight.detach().flatten() for weight in target.parameters()]))
    assert torch.equal(*weights)


@pytest.mark.parametrize("name", ["tiny", "gemma3"])
def test_recomputed_activations_give_the_same_gradient_and_fewer_of_them_are_kept(name):
    batch, found, kept = ragged(), [], []
    for checkpointing in (False, True):
        model = models.model(name).eval()
        updater = frozen(model, scorer(model), Term(loss=nll), checkpointing=checkpointing)
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda x, sizes=sizes: sizes.append(x.numel()) or x, lambda x: x):
            updater.update(batch, HERE, seed=(0,))
        found.append(gradient(model))
        kept.append(sum(sizes))
        assert not any(module.training for module in model.modules())
    assert (found[0] - found[1]).norm() < 1e-6 * found[0].norm()
    assert kept[1] < 0.5 * kept[0]


@pytest.mark.parametrize("kind", ["adamw", "muon"])
def test_the_last_norms_gain_has_its_own_rate(kind):
    """AdamW's first step is as large as its rate, for every weight with a gradient."""
    model, batch = toy_model(), ragged()
    before = copy.deepcopy(dict(model.named_parameters()))
    spec = Optimiser(kind=kind, lr=1e-3, final_norm_lr=5e-2, schedule=constant(0.5))
    Updater(model, scorer(model), spec, [Term(loss=nll)]).update(batch, HERE, seed=(0,))
    moved = {name: float((after - before[name]).detach().abs().median()) for name, after in model.named_parameters()}
    gain = moved.pop("model.norm.weight")
    assert gain == pytest.approx(2.5e-2, rel=1e-3)
    assert all(step == pytest.approx(5e-4, rel=1e-2) for name, step in moved.items() if "norm" in name)


@pytest.mark.parametrize("name", models.NAMES)
def test_the_last_norms_gain_is_found(name):
    model = models.model(name)
    with torch.no_grad():
        final_norm_of(model).fill_(-1.0 if "gemma" in name else 0.0)  # Gemma's gains are one plus the weight
        assert not model(torch.tensor([[1, 2, 3]])).logits.any()


def test_a_rate_of_a_gain_that_is_not_trained_is_refused():
    frozen_gain = toy_model()
    frozen_gain.model.norm.weight.requires_grad_(False)
    for model in (Bigram(), frozen_gain):
        with pytest.raises(RecipeError, match="final_norm_lr needs a trained norm before the output embedding"):
            optimisers(model, Optimiser(final_norm_lr=0.1))


@pytest.mark.parametrize("eps", [1e-8, 1e-3])
def test_adams_eps_keeps_what_has_next_to_no_gradient_where_it_is(eps):
    """AdamW's first step goes by the gradient's sign: only `eps` tells a gradient of 1e-5 from one of 1."""
    weight = torch.nn.Linear(2, 1, bias=False)
    torch.nn.init.zeros_(weight.weight)
    (adam,) = optimisers(weight, Optimiser(lr=0.1, eps=eps))
    weight.weight.grad = torch.tensor([[1.0, 1e-5]])
    adam.step()
    large, small = weight.weight.detach().abs()[0].tolist()
    assert large == pytest.approx(0.1, rel=1e-2)
    assert small == pytest.approx(0.1 * 1e-5 / (1e-5 + eps), rel=1e-2)


def test_a_pass_on_a_gpu_takes_fewer_tokens_of_a_larger_model():
    small = toy_model()
    assert fitting_tokens(small, torch.device("cpu")) == 4096
    model = models.model("qwen3")
    with_head = torch.nn.ModuleDict({"policy": model, "value": torch.nn.Linear(2, 1)})
    assert token_bytes(with_head) == token_bytes(model) > 0
    large = copy.deepcopy(model)
    large.config.num_hidden_layers *= 3
    assert token_bytes(large) == 3 * token_bytes(model)
    gpt2 = GPT2LMHeadModel(GPT2Config(n_embd=8, n_layer=1, n_head=1, vocab_size=9))
    assert token_bytes(gpt2) == 2 * (18 * 8 + 4 * 32)  # it names no intermediate size


@pytest.mark.parametrize("place", ["head", "small", "network", "joint"])
def test_a_pass_of_ppos_critic_on_a_gpu_takes_as_many_tokens_as_one_of_the_policy(place, tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(total_memory=1 << 26))
    for module in (update, value):
        monkeypatch.setattr(module, "fitting_tokens", lambda model, _: fitting_tokens(model, torch.device("cuda")))
    with services_of(chain_policy(), tmp_path) as services:
        expected = (1 << 24) // token_bytes(services.policy.model)
        assert value.ValueCritic(services, value.ValueSpec(place=place)).updater.micro_tokens == expected
        own = Optimiser(micro_tokens=77)
        assert value.ValueCritic(services, value.ValueSpec(place=place, optimiser=own)).updater.micro_tokens == 77
