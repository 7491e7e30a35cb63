"""Targets, heads, states that critics read, and the replay that some of them learn from."""

from __future__ import annotations

import copy
import math
from collections import Counter

import pytest
import torch
from torch import nn

from lmgym.baselines import archer, ilql
from lmgym.errors import RecipeError
from lmgym.policy.load import load_local
from lmgym.policy.local.lora import adapt
from lmgym.policy.local.sampling import Sampling
from lmgym.train import checkpoint, loop, source
from lmgym.train.collate import collate
from lmgym.train.critics import Estimator, Trunk, mlp, polyak, states_at
from lmgym.train.parts.stores import Replay, lean
from lmgym.train.parts.tasks import Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import StageProgress
from lmgym.train.stage import Evaluate
from lmgym.train.state import InstancePool
from tests.train.chain import SPEC, chain_policy, services_of

POOL = InstancePool(task=SPEC.id, size=1000)


@pytest.fixture
def services(tmp_path):
    with services_of(chain_policy(), tmp_path) as made:
        yield made


@pytest.fixture
def episodes(services):
    return source.played(services.engine(), services.policy, Uniform(8).draw(0, POOL))


def test_a_target_is_behind_by_what_is_left_of_each_step():
    online, target = nn.Linear(3, 2), nn.Linear(3, 2)
    error = (target.weight - online.weight).detach().clone()
    for step in range(1, 20):
        polyak(target, online, 0.1)
        assert (target.weight - online.weight - 0.9**step * error).abs().max() < 1e-6


def test_a_target_follows_every_step_of_the_optimiser_and_is_none_without_a_share():
    net = Estimator(nn.Linear(2, 1), lr=0.1, share=0.25)
    before = copy.deepcopy(net.slow.weight)
    net.online(torch.ones(1, 2)).sum().backward()
    assert torch.equal(net.slow.weight, before)
    net.step()
    assert (net.slow.weight - (0.75 * before + 0.25 * net.online.weight)).abs().max() < 1e-7
    assert net.online.weight.grad is None
    net = Estimator(nn.Linear(2, 1), lr=0.1)
    assert net.slow is net.online


def test_gradients_and_weights_that_are_no_numbers_stop_the_run():
    net = Estimator(nn.Linear(2, 1), lr=0.1, share=0.5)
    before = net.online.weight.detach().clone()
    (net.online(torch.ones(1, 2)) * math.inf).sum().backward()
    with pytest.raises(RecipeError, match="gradient of the critic"):
        net.step()
    assert torch.equal(net.online.weight, before)
    net = Estimator(nn.Linear(2, 1), lr=1e6)
    nn.init.constant_(net.online.weight, -3.4028234e38)  # the last number of float32
    net.optimiser.param_groups[0]["lr"] = 1e37
    net.online(torch.ones(1, 2)).sum().backward()
    with pytest.raises(RecipeError, match="weights of the critic are NaN or infinite"):
        net.step()


def test_heads_follow_from_their_seed_alone_and_can_begin_as_a_constant():
    torch.manual_seed(1)
    first, other = mlp([4, 8, 3], seed=[5, 0]), mlp([4, 8, 3], seed=[5, 1])
    drawn = torch.rand(1)
    torch.manual_seed(1)
    assert torch.equal(torch.rand(1), drawn)  # the run's own chance is left alone
    assert torch.equal(first[0].weight, mlp([4, 8, 3], seed=[5, 0])[0].weight)
    assert not torch.equal(first[0].weight, other[0].weight)
    assert mlp([4, 8, 3], seed=[0], bias=-4.1)(torch.randn(2, 4)).tolist() == [[pytest.approx(-4.1)] * 3] * 2


def test_normalised_heads_have_the_same_weights_and_hold_any_input_in_bounds():
    plain, normed = mlp([4, 8, 3], seed=[5]), mlp([4, 8, 3], seed=[5], norm=True)
    assert torch.equal(plain[0].weight, normed[0].weight)
    assert torch.equal(plain[-1].weight, normed[-1].weight)
    far, farther = (scale * torch.ones(1, 4) for scale in (1e4, 1e8))
    assert torch.allclose(normed(far), normed(farther), atol=1e-2)
    assert float((plain(farther) - plain(far)).detach().abs().max()) > 1e6


@pytest.mark.parametrize("base", ["small", "own", "policy"])
def test_a_copy_of_a_trunk_shares_the_policy_and_nothing_else(services, base):
    trunk = Trunk(services.policy, base, seed=0)
    target = copy.deepcopy(trunk)
    ids = torch.randint(1, 13, (2, 5))
    attention = torch.ones(2, 5, dtype=torch.bool)
    assert torch.equal(trunk(ids, attention), target(ids, attention))
    assert trunk(ids, attention).shape == (2, 5, trunk.width)
    for weight in services.policy.model.parameters():
        weight.data += 0.1
    moved = not torch.equal(trunk(ids, attention), target(ids, attention))
    assert not moved  # both read the policy as it is, or neither
    assert len(list(trunk.parameters())) == (0 if base == "policy" else len(list(target.parameters())))


@pytest.fixture
def adapters(tmp_path):
    """Services of a policy that learns by adapters, which do something."""
    chain_policy().save(tmp_path / "base")
    policy = load_local(f"hf:{tmp_path / 'base'}", sampling=Sampling(max_tokens=2))
    adapt(policy.model, rank=2)
    for name, weight in policy.model.named_parameters():
        if "lora_B" in name:
            nn.init.normal_(weight, std=0.3, generator=torch.Generator().manual_seed(1))
    with services_of(policy, tmp_path) as made:
        yield made


def test_a_critic_on_a_copy_of_an_adapted_policy_learns_by_adapters_of_its_own(adapters):
    policy = adapters.policy
    args = ilql.Args(base="own", lr=1e-2, minibatches=1, autocast=False, tau_target=0.5)
    critic = ilql.Implicit(adapters, args)
    own, theirs = (dict(net.trunk.model.named_parameters()) for net in (critic.net.online, critic.net.slow))
    given = dict(policy.model.named_parameters())
    learning = {name for name, weight in own.items() if weight.requires_grad}
    assert learning == {name for name in own if "lora_" in name}
    for name in own:  # what does not learn is there once
        assert (own[name] is given[name]) == (theirs[name] is given[name]) == (name not in learning)
    before = {name: weight.detach().clone() for name, weight in given.items()}
    episodes = source.played(adapters.engine(), policy, Uniform(8).draw(0, POOL))
    batch = collate([adapters.ended(each) for each in episodes], ends=True)
    for _ in range(2):  # heads begin as a constant, so that in the first step nothing reaches below them
        critic.learn(batch, StageProgress(0, 0.0), seed=(0,))
    assert all(torch.equal(weight, before[name]) for name, weight in given.items())
    moved = {name for name in own if not torch.equal(own[name], before[name])}
    assert moved == learning
    for name in learning:
        assert (theirs[name] - (before[name] + own[name]) / 2).abs().max() < 1e-6


def test_without_adapters_a_copy_of_the_policy_learns_whole(services):
    trunk = Trunk(services.policy, "own", seed=0)
    assert all(weight.requires_grad for weight in trunk.parameters())
    mine = {id(weight) for weight in trunk.parameters()}
    assert mine.isdisjoint(id(weight) for weight in services.policy.model.parameters())


@pytest.mark.parametrize("base", ["small", "own"])
def test_activations_made_again_have_the_same_gradient(services, base):
    ids, found = torch.randint(1, 13, (2, 5), generator=torch.Generator().manual_seed(0)), []
    for checkpointing in (False, True):
        trunk = Trunk(services.policy, base, seed=0, checkpointing=checkpointing)
        trunk(ids, torch.ones(2, 5)).square().sum().backward()
        assert any(getattr(m, "gradient_checkpointing", False) for m in trunk.modules()) == checkpointing
        found.append(torch.cat([w.grad.flatten() for w in trunk.parameters() if w.grad is not None]))
    assert (found[0] - found[1]).norm() <= 1e-6 * found[0].norm()


@pytest.mark.parametrize("shares", [False, True])
def test_a_state_does_not_depend_on_what_else_is_read(services, shares):
    trunk = Trunk(services.policy, "small", seed=0)
    rows = [(1, 2, 3, 4, 5, 6), (7, 8), (1, 2, 3, 4, 5, 6), (9, 10, 11, 12), (1, 2, 3, 4, 9)]
    points = [(row, range(at, at + 1)) for row, at in zip(rows, (2, 1, 5, 0, 4), strict=True)]
    together = states_at(trunk, points, tokens=1000, shares=shares)
    pieces = states_at(trunk, points, tokens=1, shares=shares)
    alone = torch.cat([states_at(trunk, [point], tokens=1000) for point in points])
    assert (together - alone).abs().max() < 1e-5
    assert (pieces - alone).abs().max() < 1e-5
    assert not torch.allclose(together[0], together[2])
    several = states_at(trunk, [(rows[3], range(1)), (rows[0], range(2, 6)), (rows[1], range(2))], tokens=4)
    singly = states_at(trunk, [(rows[0], range(at, at + 1)) for at in range(2, 6)], tokens=1000)
    assert (several[1] - singly.mean(0)).abs().max() < 1e-5
    assert (several[0] - together[3]).abs().max() < 1e-5


def test_rows_that_begin_another_are_read_in_it(services):
    trunk, read = Trunk(services.policy, "small", seed=0), []

    def counting(ids, attention):
        read.extend(tuple(row[seen].tolist()) for row, seen in zip(ids, attention, strict=True))
        return trunk(ids, attention)

    rows = [(1, 2), (1, 2, 3, 4), (1,), (2, 3), (1, 2, 5), (1, 2, 3)]
    points = [(row, range(len(row) - 1, len(row))) for row in rows]
    states = states_at(counting, points, tokens=1000)
    assert sorted(read) == [(1, 2, 3, 4), (1, 2, 5), (2, 3)]
    alone = torch.cat([states_at(trunk, [point], tokens=1000) for point in points])
    assert (states - alone).abs().max() < 1e-5


def test_an_evaluation_by_a_critic_needs_one_that_guides(services, tmp_path):
    alone = Recipe(stages=[Evaluate(name="after", episodes=2, by="critic")])
    with pytest.raises(RecipeError, match="put a FitCritic stage before"):
        loop.run(alone, chain_policy(), task=SPEC.id, folder=tmp_path / "run", quiet=True)
    with pytest.raises(RecipeError, match="cannot guide them"):
        archer.TwinCritic(services, archer.Args(hidden=4)).guide(services.policy)


def test_a_replay_keeps_the_newest_turns_each_once_and_is_drawn_with_replacement_by_its_seed(episodes, services):
    store = Replay(7, answers=1)
    store.put(episodes)
    everything = [(e.id, n) for e in episodes for n in range(len(e.turns))]
    assert [(e.id, n) for e, n in store.kept] == everything[-7:]
    store = Replay(100, answers=1)
    store.put(episodes[:1])
    first, again, other = ([n for _, n in store.turns(40, seed=seed)] for seed in ([0, 1], [0, 1], [0, 2]))
    assert len(first) == 40 > len(store)
    assert first == again != other
    assert set(first) == set(range(len(store)))
    assert Replay(5, answers=1).turns(3, seed=[0]) == []
    store, (parent, *_) = Replay(100, answers=1), episodes
    (said,) = services.sample([(parent, 2)], noise=(1,))
    store.put([parent, said])
    assert [(e.id, n) for e, n in store.kept] == [*((parent.id, n) for n in range(len(parent.turns))), (said.id, 2)]


def test_whole_episodes_are_drawn_with_all_turns_that_are_kept(episodes):
    store = Replay(sum(len(each.turns) for each in episodes) - 1, answers=1)
    store.put(episodes)
    drawn = [(each.id, number) for each, number in store.turns(30, seed=[0, 1], whole=True)]
    assert len(drawn) >= 30
    while drawn:
        episode = next(each for each in episodes if each.id == drawn[0][0])
        owned = [(episode.id, n) for n in range(len(episode.turns))][episode is episodes[0] :]  # the oldest turn left
        assert drawn[: len(owned)] == owned
        drawn = drawn[len(owned) :]
    counts = Counter(each.id for each, _ in store.turns(100 * len(store), seed=[0, 2], whole=True))
    shares = [counts[each.id] / len(each.turns) for each in episodes[1:]]
    assert max(shares) < 1.5 * min(shares)  # every turn is drawn as often
    assert Replay(5, answers=1).turns(3, seed=[0], whole=True) == []


def test_several_answers_stand_in_place_of_the_same_turn(services, episodes):
    store = Replay(100, answers=7, tries=3)
    store.put(episodes)
    drawn = store.draw(services, seed=(0, 1))
    places = [(each.parent, each.forked_at) for each in drawn]
    assert len(drawn) == 7
    assert places[0] == places[1] == places[2]
    assert places[3] == places[4] == places[5]
    assert places[::3] == [(episode.id, turn) for episode, turn in store.turns(3, seed=[0, 1, 0])]
    assert len({each.id for each in drawn}) == 7


def test_answers_drawn_from_a_replay_are_new_and_the_policys_present_ones(services, episodes):
    store = Replay(100, answers=30)
    store.put(episodes)
    forks = store.draw(services, seed=(0, 3))
    batch = collate(forks)
    logprobs, _ = services.policy.score(batch.ids, batch.attention, mask=batch.mask)
    assert (logprobs - batch.logprobs).abs().max() < 1e-4
    assert [fork.turns for fork in store.draw(services, seed=(0, 3))] == [fork.turns for fork in forks]
    kept = {episode.id: episode for episode in episodes}
    same = [fork.turns[-1].completion.ids == kept[fork.parent].turns[fork.forked_at].completion.ids for fork in forks]
    assert sum(same) < len(same) / 2
    assert all(fork.turns[-1].action is None and fork.turns[-1].reward == 0 for fork in forks)


def test_a_replay_goes_on_from_a_checkpoint(services, episodes, tmp_path):
    stores = [Replay(20, answers=10) for _ in range(2)]
    stores[0].put(episodes)
    checkpoint.save(tmp_path, {"store": stores[0].state_dict()}, number=1)
    stores[1].load_state_dict(checkpoint.load(tmp_path)["store"])
    assert list(stores[1].kept) == list(stores[0].kept)
    for store in stores:
        store.put([lean(e) for e in episodes[:1]])
    drawn = [[fork.turns[-1].completion for fork in store.draw(services, seed=(0, 3))] for store in stores]
    assert drawn[0] == drawn[1]
    assert stores[0].state_dict() == stores[1].state_dict()
