"""The critic of PPO on real episodes of a toy policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmgym.rollout.context import Full, MarkovState
from lmgym.train import source
from lmgym.train.collate import collate
from lmgym.train.interfaces import Optimiser
from lmgym.train.parts.credit import valued_tokens
from lmgym.train.parts.tasks import Uniform
from lmgym.train.parts.value import ValueCritic, ValueSpec, value_figures
from lmgym.train.schedule import StageProgress, Until
from lmgym.train.stages import FitCritic, Rl
from lmgym.train.update import Updater
from tests.train.chain import chain_policy, services_of
from tests.train.toys import gradient

HERE = StageProgress(0, 0.0)
RL = Rl(until=Until(steps=1))
WARMUP = FitCritic(until=Until(steps=1))
QUICK = Optimiser(lr=3e-3, epochs=2, minibatches=2)


@pytest.fixture
def services():
    with services_of(chain_policy(), Path("unused")) as made:
        yield made


def episodes_of(services, count=12):
    found = source.played(services.engine(), services.policy, Uniform(count).draw(0, services.pool))
    return [services.ended(episode) for episode in found]


def paid(episode):
    """The same words at another price: an `a` earns 1, and the episode ends by itself."""
    turns = [replace(turn, reward=float(turn.action == "a")) for turn in episode.turns]
    return replace(episode, turns=tuple(turns), truncated=False, terminated=True)


def random_head(critic, seed=0):
    """Give a head that begins at a constant something to say."""
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in critic.head.parameters():
            weight.normal_(generator=random)
    return critic


def by_hand(critic, ids):
    """Value of the state after a row of ids."""
    hidden = critic.trunk(torch.tensor([ids]), torch.ones(1, len(ids)))
    return float(critic.head(hidden)[0, -1, 0])


@pytest.mark.parametrize("context", [Full(), MarkovState()], ids=repr)
def test_values_are_of_the_words_before_a_token_and_a_cut_is_worth_what_comes_next(context):
    with services_of(chain_policy(), Path("unused"), context=context) as services, torch.no_grad():
        episodes = episodes_of(services)
        batch = collate(episodes, ends=True)
        critic = random_head(ValueCritic(services, ValueSpec()))
        valued = critic.value(batch)
        for row, column in batch.mask.nonzero().tolist():
            assert valued.value[row, column].item() == pytest.approx(
                by_hand(critic, batch.ids[row, :column].tolist()), abs=1e-5
            )
        cut = [n for n, episode in enumerate(episodes) if episode.truncated]
        assert 0 < len(cut) < len(episodes) or len(cut) == len(episodes)
        for number in cut:
            (row,) = ((batch.episode == number) & batch.cut).nonzero()[:, 0].tolist()
            ids = batch.ids[row, batch.attention[row]].tolist()
            said = [i for t in episodes[number].turns for i in (*t.completion.prompt_ids, *t.completion.ids)]
            assert ids == (said if context == Full() else []) + list(episodes[number].final_ids)
            assert valued.boot[row].item() == pytest.approx(by_hand(critic, ids), abs=1e-5)
        assert not valued.boot[~batch.cut].any()


@pytest.mark.parametrize("level", ["token", "turn"])
def test_an_episode_that_ended_is_worth_nothing_more_and_a_cut_that_shows_nothing_its_last_state(services, level):
    critic = random_head(ValueCritic(services, ValueSpec(level=level)))
    ended = [replace(e, truncated=False, terminated=True) for e in episodes_of(services)]
    assert not critic.value(collate(ended, ends=True)).boot.any()
    batch = collate([replace(e, final=None, final_ids=()) for e in episodes_of(services) if e.truncated], ends=True)
    valued = critic.value(batch)
    columns = torch.arange(batch.mask.shape[1])
    last = torch.where(valued_tokens(batch, level), columns, 0).amax(1)  # of a turn the state before its first token
    assert torch.equal(valued.boot, valued.value[torch.arange(len(batch)), last])


@pytest.mark.parametrize("level", ["token", "turn"])
def test_the_head_learns_the_same_from_remembered_states_as_from_rows(services, level):
    batch = collate(episodes_of(services), ends=True)
    found = []
    for place in ("head", "network"):
        critic = random_head(ValueCritic(services, ValueSpec(place=place, level=level, optimiser=Optimiser(clip=0))))
        valued = critic.value(batch)
        critic.updater.optimisers = []
        critic.learn(valued, HERE, seed=(0,))
        found.append(torch.cat([weight.grad.flatten() for weight in critic.head.parameters()]))
    assert found[0].norm() > 0
    assert (found[0] - found[1]).norm() < 1e-5 * found[0].norm()


@pytest.mark.parametrize("place", ["head", "small", "network", "joint"])
def test_values_come_to_explain_the_returns(services, place):
    batch = collate([paid(episode) for episode in episodes_of(services, 16)], ends=True)
    critic = ValueCritic(services, ValueSpec(place=place, lam=1.0, bias=0.3, optimiser=replace(QUICK, epochs=4)))
    assert critic.begin(policy_learns=False) is None
    before = [weight.detach().clone() for weight in services.policy.model.parameters()]
    told = [critic.learn(critic.value(batch), HERE, seed=(n,)) for n in range(8)]
    assert told[0]["value_mean"] == pytest.approx(0.3)
    assert told[-1]["value_loss"] < told[0]["value_loss"]
    assert told[-1]["explained_variance"] > told[0]["explained_variance"] + 0.05
    assert all(torch.equal(a, b) for a, b in zip(before, services.policy.model.parameters(), strict=True))


@pytest.mark.parametrize("place", ["head", "small", "network", "joint"])
def test_forks_are_learned_from_as_other_episodes(services, place):
    batch, losses = collate([paid(episode) for episode in episodes_of(services)], ends=True), []
    for forked in (torch.zeros_like(batch.forked), torch.ones_like(batch.forked)):
        critic = ValueCritic(services, ValueSpec(place=place, optimiser=QUICK))
        valued = critic.value(replace(batch, forked=forked))
        losses.append(critic.learn(valued, HERE, seed=(0,))["value_loss"])
    assert losses[0] == pytest.approx(losses[1], rel=1e-5)


@pytest.mark.parametrize("place", ["head", "small", "network"])
def test_a_trunk_of_its_own_learns_and_the_policys_does_not(services, place):
    batch = collate([paid(episode) for episode in episodes_of(services)], ends=True)
    spec = ValueSpec(place=place, optimiser=replace(QUICK, checkpointing=True))
    critic = random_head(ValueCritic(services, spec))
    trunks = (critic.trunk, services.policy.model)
    before = [[weight.detach().clone() for weight in trunk.parameters()] for trunk in trunks]
    critic.learn(critic.value(batch), HERE, seed=(0,))
    own, given = (
        any(not torch.equal(a, b) for a, b in zip(old, trunk.parameters(), strict=True))
        for old, trunk in zip(before, trunks, strict=True)
    )
    assert own == (place != "head")
    assert not given


def test_a_joint_critic_brings_words_and_values_in_one_pass_and_a_restored_one_goes_on_with_the_same_bits(services):
    batch = collate(episodes_of(services), ends=True)
    first, second = (ValueCritic(services, ValueSpec(place="network", optimiser=QUICK)) for _ in range(2))
    first.learn(first.value(batch), HERE, seed=(0,))
    second.load_state_dict(first.state_dict())
    for critic in (first, second):
        critic.learn(critic.value(batch), HERE, seed=(1,))
    pairs = zip(first.weights.parameters(), second.weights.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)
    critic = random_head(ValueCritic(services, ValueSpec(place="joint")))
    joint = critic.begin(policy_learns=True)
    assert joint is not None
    logprobs, entropy, value = joint.score(batch)
    plain = services.score(batch)
    assert torch.allclose(logprobs, plain[0], atol=1e-5)
    assert torch.allclose(entropy, plain[1], atol=1e-5)
    assert torch.allclose(value[batch.mask], critic.value(batch).value[batch.mask], atol=1e-5)
    value[batch.mask].sum().backward()
    assert any(weight.grad is not None and weight.grad.any() for weight in services.policy.model.parameters())
    weights = [weight.detach().clone() for weight in critic.head.parameters()]
    critic.learn(critic.value(batch), HERE, seed=(0,))  # learns in the policy's update
    assert all(torch.equal(a, b) for a, b in zip(weights, critic.head.parameters(), strict=True))


@pytest.mark.parametrize("level", ["token", "turn", "both"])
def test_a_joint_critic_has_the_gradient_and_the_figures_of_one_apart(services, level):
    quick = Optimiser(lr=0.0, clip=0.0, micro_tokens=80)
    spec = ValueSpec(place="joint", level=level, coef=1.0, clip=0.2, optimiser=quick)
    critic = random_head(ValueCritic(services, spec))
    batch = critic.value(collate([paid(each) for each in episodes_of(services)], ends=True))
    rows = torch.arange(len(batch))[:, None]
    batch = replace(batch, value=batch.value + torch.where(rows % 2 == 0, 0.5, 0.0))  # so that some are clipped
    joint = critic.begin(policy_learns=True)
    along = Updater(services.policy.model, joint.score, quick, [joint.term], [joint.weights])
    along.optimisers, critic.updater.optimisers = [], []
    found = along.update(batch, HERE, seed=(0,))
    gradients = [gradient(critic.head)]
    along.weights.zero_grad()
    assert critic.begin(policy_learns=False) is None
    apart = critic.learn(batch, HERE, seed=(0,))
    gradients.append(gradient(critic.head))
    assert (gradients[0] - gradients[1]).norm() < 1e-5 * gradients[1].norm()
    assert found["value_clipped"] == pytest.approx(apart["value_clipped"], abs=1e-9) != 0
    assert found["value_loss"] == pytest.approx(apart["value_loss"], rel=1e-5)


@pytest.mark.parametrize("place", ["head", "small", "network", "joint"])
def test_values_are_computed_in_float32_where_the_update_is_in_bfloat16(services, place):
    batch = collate(episodes_of(services), ends=True)
    critic = random_head(ValueCritic(services, ValueSpec(place=place, optimiser=replace(QUICK, autocast=True))))
    kinds = set()
    critic.head.register_forward_hook(lambda module, args, values: kinds.add(values.dtype))
    critic.learn(critic.value(batch), HERE, seed=(0,))
    assert kinds == {torch.float32}


def test_explained_variance_has_the_values_worked_by_hand():
    target = torch.tensor([0.0, 2.0])  # variance 2; errors 0 and 1: variance 1/2
    assert value_figures(torch.tensor([0.0, 1.0]), target)["explained_variance"] == pytest.approx(0.75)
    assert value_figures(torch.tensor([5.0, 7.0]), target)["explained_variance"] == pytest.approx(1.0)
    assert value_figures(torch.tensor([0.0, 1.0]), torch.ones(2))["explained_variance"] == 0.0
    assert value_figures(torch.ones(1), torch.ones(1)) == {}
