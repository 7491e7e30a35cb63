import numpy as np
import pytest
import torch

from lmgym.policy.local.decoder import Chunk, Continuation, Continuations, FusedDecoder
from lmgym.policy.local.forward import is_supported, network
from lmgym.policy.local.graphs import step_of
from lmgym.policy.local.kv_cache import KVCache, PrefixCopy, SlotTable, packed, plan_copies, shared_length
from lmgym.policy.local.model_decoder import ModelDecoder
from lmgym.policy.models.tiny import tiny_model

from .models import KINDS, model


def decoder(net):
    """The decoder that a policy takes for a model."""
    cache = KVCache()
    return FusedDecoder(network(net.requires_grad_(False)), cache) if is_supported(net) else ModelDecoder(net, cache)


def expected(net, ids):
    """Log-probs of the next token by the library's own forward pass, (V,)."""
    with torch.no_grad():
        return torch.log_softmax(net(input_ids=torch.tensor([ids])).logits[0, -1].float(), -1)


@pytest.mark.parametrize("name", KINDS)
def test_ragged_rows_and_chunks_agree_with_the_library(name):
    net = model(name).eval()
    mine = decoder(net)
    rng = np.random.default_rng(0)
    rows = {slot: [] for slot in (0, 1, 2, 5, 11)}
    for step in range(12):
        chunks = []
        for slot in rng.permutation(list(rows)):
            new = rng.integers(5, 300, rng.integers(1, 40) if step % 4 == 0 or slot == 11 else 1).tolist()
            chunks.append(Chunk(int(slot), len(rows[slot]), new))
            rows[slot] += new
        hidden, logits = mine.feed(chunks)
        assert hidden.shape == (5, 64)
        for chunk, row in zip(chunks, torch.log_softmax(logits, -1), strict=True):
            assert (row - expected(net, rows[chunk.slot])).abs().max() < 1e-5 * 3
    assert mine.cache.slots == 16


@pytest.mark.parametrize("size", ["", "10m"])
def test_long_contexts_of_the_embedded_models_agree_with_the_library(size):
    net = tiny_model(size, vocab=1024).eval()
    mine = decoder(net)
    ids = torch.randint(5, 1024, (2048,), generator=torch.Generator().manual_seed(0)).tolist()
    mine.feed([Chunk(0, 0, ids[:1000]), Chunk(3, 0, ids[:7])])
    mine.feed([Chunk(0, 1000, ids[1000:2047])])
    _, logits = mine.feed([Chunk(0, 2047, ids[2047:])])
    assert (torch.log_softmax(logits[0], -1) - expected(net, ids)).abs().max() < 1e-5


def test_a_view_with_a_gap_and_gathered_rows_give_the_same():
    net = tiny_model(vocab=300).eval()
    mine = decoder(net)
    rows = {slot: list(range(5, 15 + slot)) for slot in range(8)}
    mine.feed([Chunk(slot, 0, ids) for slot, ids in rows.items()])
    for chosen in ([0, 1, 3, 4, 6, 7], [1, 7], list(range(8))):
        _, logits = mine.feed([Chunk(slot, len(rows[slot]), [7]) for slot in chosen])
        for slot, row in zip(chosen, logits, strict=True):
            assert (torch.log_softmax(row, -1) - expected(net, [*rows[slot], 7])).abs().max() < 1e-5


def test_chunks_attend_together_as_each_does_by_itself():
    chunks = [Chunk(5, 9, range(4)), Chunk(0, 2, range(6)), Chunk(3, 30, range(6))]
    random, cpu = torch.Generator().manual_seed(0), torch.device("cpu")
    cache = KVCache()
    everywhere = torch.cartesian_prod(torch.arange(8), torch.arange(64)).T
    cache.write(0, *everywhere, *torch.randn(2, 512, 2, 16, generator=random))
    q, k, v = torch.randn(16, 4, 16, generator=random), *torch.randn(2, 16, 2, 16, generator=random)
    together = Continuations(chunks, 0, cache, cpu).attend(0, q, k, v)
    alone = [
        Continuation(chunk, at, cache, cpu).attend(0, q, k, v) for chunk, at in zip(chunks, (0, 4, 10), strict=True)
    ]
    torch.testing.assert_close(together, torch.cat(alone))


def test_a_step_of_constant_shapes_gives_what_a_pass_gives():
    net = tiny_model(vocab=300).eval()
    mine = decoder(net)
    rows = {slot: list(range(5, 15 + slot)) for slot in (6, 1, 3)}
    mine.feed([Chunk(slot, 0, ids) for slot, ids in rows.items()])
    inputs = torch.tensor([[7, 8, 9, 7], [6, 1, 3, 6], [16, 11, 13, 16]])  # the first row twice
    for _ in range(2):  # a second time writes the same
        with torch.inference_mode():
            hidden, logits = step_of(mine.network, mine.cache, inputs, slots=8, length=64)
    assert hidden.shape == (4, 256)
    for slot, token, row in zip((6, 1, 3), (7, 8, 9), logits, strict=False):
        assert (torch.log_softmax(row, -1) - expected(net, [*rows[slot], token])).abs().max() < 1e-5


def test_a_network_loads_the_weights_of_another_in_place():
    one, other = (network(tiny_model(vocab=300, seed=seed).requires_grad_(False)) for seed in (0, 1))
    places = [weight.data_ptr() for weight in (one.blocks[0].qkv, one.head, one.norm)]
    one.load(other)
    assert [weight.data_ptr() for weight in (one.blocks[0].qkv, one.head, one.norm)] == places
    ids, positions = torch.arange(5, 25), torch.arange(20)
    states = [net.hidden(ids, positions, lambda _, q, k, v: q.flatten(1)) for net in (one, other)]
    assert torch.equal(*states)


def test_the_cache_grows_and_keeps_what_it_holds():
    cache = KVCache(slots=2, positions=4)
    keys = torch.arange(4.0).view(2, 1, 2)
    cache.write(0, torch.tensor([0, 1]), torch.tensor([3, 1]), keys, -keys)
    cache.reserve(5, 9)
    assert (cache.slots, cache.positions) == (8, 16)
    assert torch.equal(cache.keys[0][0, :, 3], keys[0])
    assert torch.equal(cache.values[0][1, :, 1], -keys[1])
    cache.copy(0, 7, 4)
    assert torch.equal(cache.keys[0][7, :, 3], keys[0])


def test_shared_beginnings_are_copied_once_from_live_slots_at_once_and_short_ones_not():
    assert shared_length(packed([1, 2, 3]), packed([1, 2, 4, 5])) == 2
    assert shared_length(packed([256]), packed([1])) == 0
    assert shared_length(b"", packed([1])) == 0
    system, one, other = [1, 2, 3, 4], [5, 6, 7, 8], [9, 9, 9, 9]
    cold = {0: system + one, 1: system + one, 2: system + other, 3: system + other, 4: system + one}
    copies = plan_copies({slot: packed(ids) for slot, ids in cold.items()}, {}, least=3)
    assert copies == [
        PrefixCopy(source=0, target=1, length=7, wave=1),
        PrefixCopy(source=0, target=4, length=7, wave=1),
        PrefixCopy(source=0, target=2, length=4, wave=1),
        PrefixCopy(source=2, target=3, length=7, wave=2),
    ]
    copies = plan_copies({0: packed([1, 2, 3, 4])}, {8: packed([1, 2, 3]), 9: packed([1, 7, 7])}, least=2)
    assert copies == [PrefixCopy(source=8, target=0, length=3, wave=0)]
    assert plan_copies({0: packed([1, 2, 3]), 1: packed([1, 2, 4])}, {}, least=3) == []


def test_every_copy_gives_what_its_source_has_by_then():
    rng = np.random.default_rng(0)
    for _ in range(200):
        made = {i: rng.integers(0, 2, rng.integers(1, 9)).tolist() for i in range(10)}
        cold, live = {i: packed(made[i]) for i in range(7)}, {i: packed(made[i]) for i in range(7, 10)}
        copies = plan_copies(cold, live, least=1)
        wave = {copy.target: copy.wave for copy in copies}
        for copy in copies:
            assert made[copy.source][: copy.length] == made[copy.target][: copy.length]
            assert copy.length < len(made[copy.target])
            assert copy.source >= 7 or wave.get(copy.source, 0) < copy.wave


def test_the_lowest_free_slot_or_the_longest_idle_is_taken_and_keeps_what_agrees():
    table = SlotTable(2)
    assert table.claim("a", [1, 2], ()) == (0, 0)
    assert table.claim("b", [1, 2], ()) == (1, 0)
    assert table.claim("c", [1, 2], ("a", "b")) is None
    assert table.claim("c", [1, 2], ("b",)) == (0, 0)
    table.release("c")
    assert table.claim("d", [1, 2], ("b",)) == (0, 0)
    table = SlotTable(1)
    table.claim("a", [1, 2, 3], ())
    table.slots[0].ids = [1, 2, 3]
    assert table.claim("a", [1, 2, 3, 4, 5], ()) == (0, 3)
    assert table.claim("a", [1, 2, 3], ()) == (0, 2)
    assert table.claim("a", [1, 9, 3, 4], ()) == (0, 1)
