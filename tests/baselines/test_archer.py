from __future__ import annotations

import json
from dataclasses import fields, replace

import pytest
import torch
from torch import nn

from lmgym.baselines import archer
from lmgym.errors import RecipeError
from lmgym.rollout.context import MarkovState
from lmgym.rollout.engine import Engine
from lmgym.train import source
from lmgym.train.collate import collate
from lmgym.train.critics import Estimator
from lmgym.train.interfaces import Optimiser, ScoredBatch
from lmgym.train.log import read_metrics
from lmgym.train.math import aggregation
from lmgym.train.parts.losses import reinforce
from lmgym.train.parts.stores import Replay
from lmgym.train.parts.tasks import Uniform
from lmgym.train.schedule import StageProgress, Until
from lmgym.train.services import view
from lmgym.train.stages import Rl
from lmgym.train.state import InstancePool
from lmgym.train.update import Updater
from tests import oracles, oracles_values
from tests.oracles_values import WORDS
from tests.train import victim
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy, services_of

SEEN = ["", "x", "y"]
POOL = InstancePool(task=SPEC.id, size=1000)
HERE = StageProgress(0, 0.0)
QUICK = archer.Args(
    tries=1, autocast=False, hidden=8, critic_draws=40, critic_batch=16, critic_epochs=2, actor_draws=12
)


def before(seen):
    return SEEN.index(seen)


def after(seen, word):
    return len(SEEN) + SEEN.index(seen) * len(WORDS) + WORDS.index(word)


def transitions(behaviour):
    """All that can happen, with its chance: `behaviour` says how often an (observation, word) is in the replay."""
    for seen in SEEN:
        for word in WORDS:
            x = oracles_values.chance_of_x(word)
            nexts = [("x", x), ("y", 1 - x)] if seen == "" else [(None, 1.0)]
            for now in WORDS:
                for following, chance in nexts:
                    weight = behaviour(seen, word) * oracles_values.word_probability(seen, now, oracles.LOG_ODDS)
                    reward = -0.1 if seen == "" else oracles.final_reward(seen, word)
                    yield seen, word, now, following, reward, weight * chance


def enumerated(behaviour):
    found = list(transitions(behaviour))
    eye = torch.eye(len(SEEN) * (len(WORDS) + 1), dtype=torch.float64)
    return archer.TransitionStates(
        before=eye[[before(t[0]) for t in found]],
        utterance=eye[[after(t[0], t[1]) for t in found]],
        slow_before=eye[[before(t[0]) for t in found]],
        slow_now=eye[[after(t[0], t[2]) for t in found]],
        slow_after=eye[[before(t[3] or "") for t in found]],
        reward=torch.tensor([t[4] for t in found], dtype=torch.float64),
        done=torch.tensor([t[3] is None for t in found]),
    ), torch.tensor([t[5] for t in found], dtype=torch.float64)


@pytest.mark.parametrize("name", ["uniform", "actor"])
def test_temporal_differences_end_at_the_values_of_the_actor_whoever_filled_the_replay(name):
    def actor(seen, word):
        return oracles_values.word_probability(seen, word, oracles.LOG_ODDS)

    seen, weight = enumerated(actor if name == "actor" else lambda seen, word: 0.25)
    width = seen.before.shape[1]
    heads = archer.UtteranceHeads(nn.Identity(), width, [], seed=0).double()
    net = Estimator(heads, lr=0.1, share=0.1, clip=0.0)
    for step in range(500):
        net.optimiser.param_groups[0]["lr"] = 0.1 * 0.982**step
        q, v = archer.errors(net.online, net.slow, seen, gamma=0.95)
        ((q + v) * weight).sum().backward()
        net.step()
    states = torch.eye(width, dtype=torch.float64)
    q_exact, v_exact = oracles_values.two_turn_values(oracles.LOG_ODDS, 0.95)
    with torch.no_grad():
        value = heads.value(states[[before(s) for s in SEEN]])
        quality = heads.quality(states[[before(s) for s, _ in q_exact]], states[[after(*pair) for pair in q_exact]])
    for twin in (0, 1):
        assert value[twin].tolist() == pytest.approx([v_exact[s] for s in SEEN], abs=1e-4)
        assert quality[twin].tolist() == pytest.approx(list(q_exact.values()), abs=1e-4)


def test_the_oracle_has_the_published_values():
    q, v = oracles_values.two_turn_values(oracles.LOG_ODDS, 0.95)
    assert (q["", "ab"], q["", "aa"], v[""]) == pytest.approx((0.1795719, 0.1320425, 0.1470545), abs=1e-7)
    q, v = oracles_values.two_turn_values(oracles.LOG_ODDS, 1.0)
    assert (q["", "ab"], q["", "aa"], v[""]) == pytest.approx((0.1942862, 0.1442552, 0.1600574), abs=1e-7)
    assert (v["x"], v["y"]) == pytest.approx((0.3142986, 0.2142367), abs=1e-7)


PAIRS = [(seen, word) for seen in SEEN for word in WORDS]


def judged_pairs():
    """Return a batch of each word after each observation, with its exact values."""
    q, v = oracles_values.two_turn_values(oracles.LOG_ODDS, 0.95)
    mask = torch.tensor([[0.0, 1.0, 1.0]] * len(PAIRS), dtype=torch.float64)
    return make_batch(
        [[0, 1, 1]] * len(PAIRS),
        quality=torch.tensor([q[pair] for pair in PAIRS], dtype=torch.float64)[:, None] * mask,
        value=torch.tensor([v[seen] for seen, _ in PAIRS], dtype=torch.float64)[:, None] * mask,
    )


def logprobs_of(theta):
    """Return the log-probs of the pairs' tokens (N, 3) under a table of log-odds."""
    context = [[0, oracles.CONTEXTS.index(seen), oracles.CONTEXTS.index(seen + word[0])] for seen, word in PAIRS]
    sign = torch.tensor([[0.0, *(1.0 if token == "a" else -1.0 for token in word)] for _, word in PAIRS])
    return nn.functional.logsigmoid(theta[torch.tensor(context)] * sign) * torch.tensor([0.0, 1.0, 1.0])


def chances(spoke):
    """Return how often each pair is met (N, 1) where a table of log-odds speaks."""
    often = oracles_values.visits(oracles.LOG_ODDS)
    return torch.tensor([often[s] * oracles_values.word_probability(s, word, spoke) for s, word in PAIRS])[:, None]


def test_the_actors_direction_with_an_exact_critic_is_the_enumerated_one():
    batch = replace(judged_pairs(), advantage=archer.credit(judged_pairs()))
    theta = torch.tensor(oracles.LOG_ODDS, dtype=torch.float64, requires_grad=True)
    logprobs = logprobs_of(theta)
    losses, _ = reinforce(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros_like(logprobs)))
    factor = aggregation(batch.mask, batch.episode, "seq_sum") * len(PAIRS) * chances(oracles.LOG_ODDS)
    (losses * factor).sum().backward()
    assert -theta.grad.numpy() == pytest.approx(oracles_values.archer_direction(oracles.LOG_ODDS, 0.95), abs=1e-7)
    printed = [0.006388, -0.006758, 0, 0.057759, 0.068367, 0, -0.041151, 0, -0.077598]
    assert -theta.grad.numpy() == pytest.approx(printed, abs=1e-6)


def test_weights_of_utterances_give_the_direction_of_the_policy_where_another_one_spoke():
    spoke = [odds + shift for odds, shift in zip(oracles.LOG_ODDS, [0.5, -0.4, 0.3] * 3, strict=True)]
    batch = judged_pairs()

    def direction(args):
        theta = torch.tensor(oracles.LOG_ODDS, dtype=torch.float64, requires_grad=True)
        mine, weigh = logprobs_of(theta), archer.recipe(args).importance
        gap = mine.detach() - logprobs_of(torch.tensor(spoke, dtype=torch.float64))
        factor = torch.ones_like(mine) if weigh is None else weigh(batch, gap)
        judged = replace(batch, advantage=archer.credit(batch) * factor)
        losses, _ = reinforce(ScoredBatch(batch=judged, logprobs=mine, entropy=torch.zeros_like(mine)))
        (losses * chances(spoke)).sum().backward()
        return -theta.grad.numpy()

    exact = oracles_values.archer_direction(oracles.LOG_ODDS, 0.95)
    weighed = archer.Args(importance="sequence_cap", importance_most=100.0)
    assert direction(weighed) == pytest.approx(exact, abs=1e-7)
    for biased in (archer.Args(), replace(weighed, importance_most=1.0)):
        assert abs(direction(biased) - exact).max() > 1e-3


@pytest.fixture
def services(tmp_path):
    with services_of(chain_policy(), tmp_path) as made:
        yield made


@pytest.fixture
def episodes(services):
    found = source.played(services.engine(), services.policy, Uniform(24).draw(0, POOL))
    return [services.ended(each) if each.truncated else each for each in found]


def test_twins_begin_apart_and_a_cut_episode_goes_on_where_a_done_one_does_not(services, episodes):
    critic = archer.TwinCritic(services, QUICK)
    for heads in (critic.net.online.q, critic.net.online.v):
        assert not torch.equal(heads[0][0].weight, heads[1][0].weight)
    pairs = zip(critic.net.online.parameters(), critic.net.slow.parameters(), strict=True)
    assert all(torch.equal(fast, slow) and fast is not slow for fast, slow in pairs)
    cut = next(each for each in episodes if each.truncated)
    last = len(cut.turns) - 1
    assert cut.final_ids
    done = replace(cut, terminated=True, truncated=False)
    going, ended = (critic.transition(each, last, now=(6,)) for each in (cut, done))
    assert going.after == (*view(cut, last), *cut.turns[last].completion.ids, *cut.final_ids)
    assert ended.after is None
    early = archer.TwinCritic(services, replace(QUICK, truncated_is_done=True))
    assert early.transition(cut, last, now=(6,)).after is None
    assert early.transition(cut, last - 1, now=(6,)).after == tuple(view(cut, last))
    seen = critic.states([going, ended])
    with torch.no_grad():
        next_value = critic.net.slow.value(seen.slow_after)[:, :1]
        now = critic.net.online.quality(seen.before, seen.utterance)
        goals = torch.cat([going.reward + 0.95 * next_value, torch.full((2, 1), ended.reward)], 1)
        q, _ = archer.errors(critic.net.online, critic.net.slow, seen, gamma=0.95)
    assert q.tolist() == pytest.approx((now - goals).square().sum(0).tolist(), abs=1e-6)


def test_a_turn_that_nothing_known_followed_is_not_fitted(services, episodes):
    cut = next(each for each in episodes if each.truncated)
    unseen, last = replace(cut, final=None, final_ids=()), len(cut.turns) - 1
    critic, store = archer.TwinCritic(services, QUICK), Replay(1000, answers=12)
    assert critic.has_successor(cut, last)
    assert not critic.has_successor(unseen, last)
    assert critic.has_successor(unseen, last - 1)
    assert archer.TwinCritic(services, replace(QUICK, truncated_is_done=True)).has_successor(unseen, last)
    store.put([unseen])
    passes = [store.turns(QUICK.critic_draws, seed=[0, 0, number, 1]) for number in range(QUICK.critic_epochs)]
    cuts = [[number for _, number in drawn].count(last) for drawn in passes]
    assert critic.fit(store, HERE, seed=(0, 0))["unseen_cuts"] == sum(cuts) / len(cuts)
    assert cuts[0] != cuts[1]  # each pass draws anew


@pytest.mark.parametrize("encoder", ["small", "own", "policy"])
def test_states_are_read_where_observations_end_and_all_along_utterances(services, episodes, encoder):
    critic = archer.TwinCritic(services, replace(QUICK, encoder=encoder))
    episode = max(episodes, key=lambda each: len(each.turns))
    found = [critic.transition(episode, n, now=(7, 1)) for n in (0, 2)]
    seen = critic.states(found)
    trunk = critic.net.online.trunk

    def state(ids):
        row = torch.tensor([ids])
        return trunk(row, torch.ones_like(row, dtype=torch.bool))[0, -1]

    def mean(before, utterance):
        return torch.stack([state(before + utterance[: n + 1]) for n in range(len(utterance))]).mean(0)

    for n, each in enumerate(found):
        for name, expected in {
            "before": state(each.before),
            "utterance": mean(each.before, each.utterance),
            "slow_before": state(each.before),
            "slow_now": mean(each.before, each.now),
            "slow_after": state(each.after),
        }.items():
            assert (getattr(seen, name)[n] - expected).abs().max() < 1e-4, name
    assert seen.utterance.requires_grad == (encoder != "policy")
    assert not any(getattr(seen, name).requires_grad for name in ("slow_before", "slow_now", "slow_after", "reward"))


def test_goals_are_those_of_the_target_networks(services, episodes):
    critic = archer.TwinCritic(services, replace(QUICK, encoder="own", tau=0.25))
    before = {name: weight.clone() for name, weight in critic.net.online.named_parameters()}
    with torch.no_grad():
        for weight in critic.net.slow.parameters():
            weight.add_(0.1 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))
    apart = {name: weight.clone() for name, weight in critic.net.slow.named_parameters()}
    episode = max(episodes, key=lambda each: len(each.turns))
    found = [critic.transition(episode, number, now=(7, 1)) for number in (0, 1)]
    seen = critic.states(found)
    row = torch.tensor([found[0].after])
    with torch.no_grad():
        expected = critic.net.slow.trunk(row, torch.ones_like(row, dtype=torch.bool))[0, -1]
        assert (seen.slow_after[0] - expected).abs().max() < 1e-4
        quality = critic.net.online.quality(seen.before, seen.utterance)
        value = critic.net.online.value(seen.before)
        q = quality - seen.reward - 0.95 * critic.net.slow.value(seen.slow_after)
        v = value - critic.net.slow.quality(seen.slow_before, seen.slow_now)
    losses = critic._step(torch.arange(2), found, None)[:2]
    assert losses == pytest.approx([each.square().sum(0).mean().item() for each in (q, v)], rel=1e-4)
    for name, weight in critic.net.online.named_parameters():
        followed = apart[name].lerp(weight, 0.25)
        assert (critic.net.slow.get_parameter(name) - followed).abs().max() < 1e-6
    assert any(not torch.equal(weight, before[name]) for name, weight in critic.net.online.named_parameters())


def test_the_others_q_stands_for_the_value_of_their_observation():
    found = archer.leave_one_out(
        [
            archer.UtteranceEstimate(0, 3, (1, 2), 5.0, 9.0),
            archer.UtteranceEstimate(1, 3, (1, 2), 1.0, 9.0),
            archer.UtteranceEstimate(2, 0, (1,), 4.0, 3.0),
            archer.UtteranceEstimate(3, 3, (1, 2), 0.0, 9.0),
        ]
    )
    assert [each.value for each in found] == [0.5, 2.5, 3.0, 3.0]  # the third is alone at its observation
    assert [each.quality for each in found] == [5.0, 1.0, 4.0, 0.0]


def test_what_an_observation_is_worth_falls_out_of_the_advantages_of_several_answers(services, episodes):
    advantages = []
    for changes in ({}, {"tries": 4}):
        args = replace(QUICK, **changes)
        critic, store = archer.TwinCritic(services, args), archer.recipe(args).store()
        store.put(episodes)
        batch = critic.value(collate(store.draw(services, seed=(0, 1))))
        advantage = archer.credit(batch)
        advantages.append(torch.stack([row[own][0] for row, own in zip(advantage, batch.mask, strict=True)]))
    assert advantages[0].mean().abs() > 1e-2
    assert advantages[1].mean().abs() < 1e-5
    assert advantages[1].abs().max() > 1e-4


def test_answers_sampled_anew_are_judged_by_the_smaller_twin(services, episodes):
    critic, store = archer.TwinCritic(services, QUICK), Replay(1000, answers=12)
    store.put(episodes)
    forks = store.draw(services, seed=(0, 1))
    batch = critic.value(collate(forks))
    for row, fork in enumerate(forks):
        found = critic.states([critic.transition(fork, len(fork.turns) - 1, now=(6,))])
        quality = critic.net.online.quality(found.before, found.utterance).min().item()
        value = critic.net.online.value(found.before).min().item()
        trained = batch.mask[row]
        assert batch.ids[row][trained].tolist() == list(fork.turns[-1].completion.ids)
        assert batch.quality[row][trained].tolist() == pytest.approx([quality] * int(trained.sum()), abs=1e-5)
        assert batch.value[row][trained].tolist() == pytest.approx([value] * int(trained.sum()), abs=1e-5)
        assert archer.credit(batch)[row][~trained].abs().sum() == 0


@pytest.fixture
def drawn(services, episodes):
    """Return a batch of forks drawn from a replay of the episodes."""
    store = Replay(1000, answers=12)
    store.put(episodes)
    return collate(store.draw(services, seed=(0, 1)))


def test_what_is_trained_of_a_fork_is_one_utterance_and_so_is_an_episode_of_the_weights(drawn):
    assert all(
        len(set(drawn.turn[drawn.episode == n][drawn.mask[drawn.episode == n]].tolist())) == 1 for n in range(12)
    )


def test_the_stop_token_can_be_left_out_as_in_the_release(services, drawn):
    stops = drawn.mask & torch.isin(drawn.ids, torch.tensor(sorted(services.policy.stops)))
    assert stops.any()
    with_stop = archer.credit(archer.TwinCritic(services, QUICK).value(drawn))
    without = archer.credit(archer.TwinCritic(services, replace(QUICK, untrained_stop=True)).value(drawn))
    assert with_stop[stops].abs().min() > 0
    assert without[stops].abs().max() == 0
    assert torch.equal(with_stop[~stops], without[~stops])


def test_summed_batches_have_as_many_times_the_gradient_of_the_actor_too(services, drawn):
    batch = replace(drawn, advantage=drawn.mask.float())
    norms = []
    for args in (QUICK, replace(QUICK, summed_batches=4)):
        model, terms = services.policy.model, archer.recipe(args).loss
        actor = Updater(model, services.score, Optimiser(lr=0.0, clip=0.0), terms)
        norms.append(actor.update(batch, HERE, seed=(0,))["gradient_norm"])
    assert norms[1] == pytest.approx(4 * norms[0], rel=1e-5)


def test_summed_batches_have_as_many_times_the_gradient(services, episodes):
    norms = []
    for changes in ({}, {"critic_batch": 4, "summed_batches": 4}):
        critic = archer.TwinCritic(services, replace(QUICK, **changes))
        found = [critic.transition(each, 0, now=(6, 1)) for each in episodes[:16]]
        norms.append(critic._step(torch.arange(16), found, None)[2])
    assert norms[1] == pytest.approx(4 * norms[0], rel=1e-5)


@pytest.mark.slow
def test_every_step_of_the_actor_learns_from_what_the_weights_before_it_say(tmp_path):
    changes = {"fit": 1, "steps": 2, "rollouts": 4, "hidden": 8, "critic_draws": 12, "critic_epochs": 1, "lr": 0.05}
    args = archer.Args(warmup=0, evaluate=4, actor_draws=48, epochs=2, minibatches=3, autocast=False, **changes)
    victim.train(tmp_path / "run", args=args, recipe=archer.recipe(args), keep_episodes=(1, 2))
    learned = [line for line in read_metrics(tmp_path / "run") if line["stage"] == "rl"]
    assert [line["optimiser_steps"] for line in learned] == [6, 12]
    for line, number in zip(learned, (1, 2), strict=True):
        assert (line["ratio_min"], line["ratio_max"]) == pytest.approx((1.0, 1.0), abs=1e-4)
        rows = (tmp_path / "run" / "trained" / f"{number:06d}.jsonl").read_text().splitlines()
        assert len(rows) == args.epochs * args.actor_draws
        weights = [weight for row in rows for weight in json.loads(row)["weight"]]
        assert sum(weight != 0 for weight in weights) == line["trained_tokens"]
        spoken = [json.loads(row)["episode"].rpartition(".")[0] for row in rows]  # without its number in the draw
        draws = [tuple(spoken[n : n + 16]) for n in range(0, len(spoken), 16)]
        assert len(set(draws)) == len(draws) == 6  # four tries in place of each of four turns, others in every draw


def test_the_critic_sees_the_end_of_what_is_too_long_for_it(services, episodes):
    critic = archer.TwinCritic(services, replace(QUICK, critic_tokens=3))
    observed, said, after = critic._points((1, 2, 3, 4, 5), (6, 7), (1, 2, 3, 4, 5, 6, 7, 8))
    assert observed == ((3, 4, 5, 6, 7), range(2, 3))
    assert said == ((3, 4, 5, 6, 7), range(3, 5))
    assert after == ((6, 7, 8), range(2, 3))


def test_fitting_lowers_the_error_of_q_and_leaves_the_policy_alone(services, episodes):
    critic, store = archer.TwinCritic(services, replace(QUICK, critic_lr=3e-3)), Replay(1000, answers=12)
    store.put(episodes)
    weights = [weight.clone() for weight in services.policy.model.parameters()]
    first, *_, last = [critic.fit(store, HERE, seed=(0, step)) for step in range(8)]
    assert last["critic_q_loss"] < 0.5 * first["critic_q_loss"]
    assert all(torch.equal(a, b) for a, b in zip(weights, services.policy.model.parameters(), strict=True))


def test_a_critic_that_draws_whole_episodes_reads_fewer_tokens(services, episodes):
    store, read = Replay(1000, answers=12), []
    store.put(episodes)
    for whole in (False, True):
        critic, tokens = archer.TwinCritic(services, replace(QUICK, critic_whole=whole)), []
        critic.net.online.trunk.register_forward_pre_hook(lambda _, given, to=tokens: to.append(int(given[1].sum())))
        figures = critic.fit(store, HERE, seed=(0, 0))
        assert figures["critic_q_loss"] > 0
        read.append(sum(tokens))
    assert read[1] < 0.7 * read[0]


def test_a_view_that_is_rendered_anew_is_a_row_of_its_own(tmp_path):
    policy = chain_policy()
    jobs = Uniform(8).draw(0, POOL)
    (episode, *_) = [e for e in source.played(Engine(context=MarkovState()), policy, jobs) if len(e.turns) > 2]
    with services_of(policy, tmp_path, context=MarkovState()) as services:
        critic = archer.TwinCritic(services, QUICK)
        found = critic.transition(episode, 1, now=(6, 1))
        assert found.before == episode.turns[1].completion.prompt_ids
        assert found.after == episode.turns[2].completion.prompt_ids
        seen = critic.states([found])
        row = torch.tensor([found.after])
        state = critic.net.slow.trunk(row, torch.ones_like(row, dtype=torch.bool))[0, -1]
        assert (seen.slow_after[0] - state).abs().max() < 1e-5


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(RecipeError, match="tau in"):
        archer.recipe(archer.Args(tau=0.0))
    recipe = archer.recipe(archer.Args(epochs=2))
    with pytest.raises(RecipeError, match="several updates per step draw from a store"):
        replace(recipe, store=None)
    with pytest.raises(RecipeError, match="updates_per_step is 1 or more"):
        Rl(until=Until(steps=1), updates_per_step=0)


def test_the_release_can_be_asked_for():
    recipe = archer.recipe(archer.Args(cut_at_newline=True))
    assert recipe.stop == ("\n",)
    off = {field.name: getattr(archer.Args(), field.name) for field in fields(archer.Args)}
    assert not any(
        off[name]
        for name in ("truncated_is_done", "untrained_stop", "cut_at_newline", "summed_batches", "critic_tokens")
    )
