"""ILQL and MC returns: chains, targets, expectiles, what they make of a maze, and how they guide a policy."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from lmgym.baselines import ilql, mc
from lmgym.errors import RecipeError
from lmgym.policy.local.score import states
from lmgym.rollout.context import MarkovState, Window
from lmgym.rollout.engine import Engine
from lmgym.train import source
from lmgym.train.collate import collate
from lmgym.train.parts.tasks import Uniform
from lmgym.train.schedule import StageProgress
from lmgym.train.state import InstancePool
from lmgym.train.token_critic import DONE, Chain, distinct, links, with_known_ends
from tests import oracles_values
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy, services_of

POOL = InstancePool(task=SPEC.id, size=1000)
HERE = StageProgress(0, 0.0)


def chain_of(reward, *, following=None, ids=None, behaviour=None) -> Chain:
    count = len(reward)
    following = [*range(1, count), DONE] if following is None else following
    return Chain(
        states=torch.zeros(count, 1),
        slow=torch.zeros(count, 1),
        place=torch.arange(max(count, *(n + 1 for n in following))),
        behaviour=torch.zeros(0, 1) if behaviour is None else behaviour,
        ids=torch.zeros(count, dtype=torch.long) if ids is None else torch.tensor(ids),
        reward=torch.tensor(reward, dtype=torch.float64),
        following=torch.tensor(following),
    )


def goals(chain: Chain, v: torch.Tensor) -> list[float]:
    """Return the goals of ILQL's Q: minus its gradient at Q = 0."""
    q = tuple(torch.zeros(len(chain.ids), 2, dtype=torch.float64, requires_grad=True) for _ in range(2))
    slow = tuple(torch.zeros(len(chain.ids), 2, dtype=torch.float64) for _ in range(2))
    of_q, _, _ = ilql.losses(q, v, slow, chain, gamma=0.99, tau=0.7)
    of_q.sum().backward()
    assert torch.equal(q[0].grad, q[1].grad)
    return [-float(q[0].grad[n, token]) for n, token in enumerate(chain.ids)]


def test_targets_are_those_worked_by_hand_also_where_an_episode_was_cut():
    v = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
    found = goals(chain_of([0.0, -1.0, 0.0, 0.0]), v)
    assert found == pytest.approx([0.198, -0.703, 0.396, 0.0], abs=1e-12)
    assert found == pytest.approx(oracles_values.chained_targets([0, -1, 0, 0], v.tolist(), 0.99), abs=1e-12)
    v = torch.tensor([0.1, 0.2, 0.3, 0.4, 0.5], dtype=torch.float64)
    found = goals(chain_of([0.0, -1.0, 0.0, 0.0], following=[1, 2, 3, 4]), v)
    assert found == pytest.approx([0.198, -0.703, 0.396, 0.495], abs=1e-12)


def test_no_gradient_reaches_the_value_through_a_target_nor_the_targets_q():
    chain = chain_of([0.0, 1.0])
    v = torch.tensor([0.1, 0.2], dtype=torch.float64, requires_grad=True)
    q, slow = (tuple(torch.ones(2, 2, dtype=torch.float64, requires_grad=True) for _ in range(2)) for _ in range(2))
    of_q, of_v, of_cql = ilql.losses(q, v, slow, chain, gamma=0.99, tau=0.7)
    (of_q + of_cql).sum().backward()
    assert v.grad is None
    of_v.sum().backward()
    assert v.grad.tolist() == pytest.approx([-0.7 * 0.9, -0.7 * 0.8])
    assert slow[0].grad is None


def test_v_follows_the_smaller_of_the_targets():
    slow = (torch.tensor([[3.0, 9.0]]), torch.tensor([[2.0, -9.0]]))
    q = tuple(torch.zeros(1, 2) for _ in range(2))
    _, of_v, _ = ilql.losses(q, torch.tensor([1.0]), slow, replace(chain_of([0.0])), gamma=0.99, tau=0.9)
    assert of_v.tolist() == pytest.approx([0.9 * (2 - 1) ** 2 / 2])


@pytest.mark.parametrize(("tau", "expected"), [(0.5, 0.35), (0.7, 0.49), (0.9, 0.75)])
def test_an_expectile_is_where_it_was_worked_out(tau, expected):
    values, chances = [0.0, 0.5, 1.0], [0.5, 0.3, 0.2]
    v = torch.zeros((), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.LBFGS([v], max_iter=200, tolerance_grad=1e-12, tolerance_change=1e-14)

    def closure():
        optimiser.zero_grad()
        difference = torch.tensor(values, dtype=torch.float64) - v
        loss = (ilql.expectile(difference, tau) * torch.tensor(chances, dtype=torch.float64)).sum()
        loss.backward()
        return loss

    for _ in range(5):
        optimiser.step(closure)
    assert float(v.detach()) == pytest.approx(expected, abs=1e-6)
    assert oracles_values.expectile_of(values, chances, tau) == pytest.approx(expected, abs=1e-9)
    assert oracles_values.expectile_of([0.0, 1.0], [0.5, 0.5], tau) == pytest.approx(tau, abs=1e-9)


def test_returns_to_go_are_those_worked_by_hand():
    found = mc.returns(chain_of([0.0, -1.0, 0.0, 2.0]), torch.zeros(0, dtype=torch.float64), gamma=0.99)
    assert found.tolist() == pytest.approx([0.950598, 0.9602, 1.98, 2.0], abs=1e-6)
    cut = chain_of([0.0, -1.0, 0.0, 2.0], following=[1, 2, 3, 4])
    found = mc.returns(cut, torch.tensor([0.5], dtype=torch.float64), gamma=0.99)
    assert found.tolist() == pytest.approx(oracles_values.returns_to_go([0, -1, 0, 2], 0.99, 0.5), abs=1e-6)


def test_the_cross_entropy_takes_q_for_logits():
    q = (torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 0.0]]))
    _, _, of_cql = ilql.losses(q, torch.zeros(1), q, chain_of([0.0]), gamma=0.99, tau=0.7)
    first = -torch.log_softmax(torch.tensor([1.0, 0.0]), 0)[0]
    assert float(of_cql) == pytest.approx(float(first) + 0.693147, abs=1e-5)


def maze_chain() -> Chain:
    steps = [step for episode in oracles_values.MAZE for step in episode]
    ends = torch.tensor([n for episode in oracles_values.MAZE for n in range(len(episode) - 1, -1, -1)])
    following = torch.arange(1, len(steps) + 1)
    eye = torch.eye(oracles_values.STATES, dtype=torch.float64)
    return Chain(
        states=eye,
        slow=eye,
        place=torch.tensor([state for state, _, _ in steps]),
        behaviour=torch.zeros(0, 1),
        ids=torch.tensor([action for _, action, _ in steps]),
        reward=torch.tensor([reward for _, _, reward in steps], dtype=torch.float64),
        following=torch.where(ends == 0, DONE, following),
    )


def maze_q(tau: float, *, gamma: float = 0.9) -> torch.Tensor:
    """Q (states, actions) that ILQL finds, with a table in place of a network."""
    chain = maze_chain()
    twins = [torch.zeros(oracles_values.STATES, oracles_values.ACTIONS, dtype=torch.float64) for _ in range(2)]
    tables = [*twins, torch.zeros(oracles_values.STATES, 1, dtype=torch.float64)]
    for table in tables:
        table.requires_grad_()
    optimiser = torch.optim.SGD(tables, lr=0.5)
    for _ in range(1000):
        q, v = tuple(chain.states @ table for table in tables[:2]), (chain.states @ tables[2])[:, 0]
        of_q, of_v, _ = ilql.losses(q, v, tuple(each.detach() for each in q), chain, gamma=gamma, tau=tau)
        optimiser.zero_grad()
        (of_q + of_v).sum().backward()
        optimiser.step()
    return torch.minimum(*twins).detach()


def test_ilql_puts_pieces_of_episodes_together_and_mc_does_not():
    start, crossing = oracles_values.START, oracles_values.CROSSING
    best = oracles_values.maze_best(0.9)
    found = maze_q(0.99)
    assert best[start, 0] == pytest.approx(0.9)
    assert float(found[start, 0]) == pytest.approx(best[start, 0], abs=0.02)
    assert int(found[start].argmax()) == 0  # the road to the crossing, and there the right turn
    assert int(found[crossing].argmax()) == 0
    chain = maze_chain()
    returns = mc.returns(chain, torch.zeros(0, dtype=torch.float64), gamma=0.9)
    at_start = {int(a): float(g) for a, g, s in zip(chain.ids, returns, chain.place, strict=True) if s == start}
    assert max(at_start, key=at_start.get) == 1  # the short way home, the best that any episode from there did


def test_the_middle_expectile_gives_the_values_of_whoever_made_the_data():
    found = maze_q(0.5)
    for (state, action), value in oracles_values.maze_sarsa(0.9).items():
        assert float(found[state, action]) == pytest.approx(value, abs=1e-6)


def test_the_next_state_is_that_before_the_next_sampled_token_of_the_episode():
    batch = make_batch(
        [[0, 1, 1, 0, 1], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 0, 0, 0, 0]],
        episode=[0, 1, 0, 1],
        segment=[0, 0, 1, 1],
        cut=[False, False, False, True],
    )
    places, following, cut = links(batch)
    assert places.tolist() == [1, 2, 4, 11, 12, 6]
    assert following.tolist() == [1, 2, 3, 4, DONE, 6]
    assert cut.tolist() == [3]


def unseen_cut(**more):
    """Two tokens, a word of the environment, two tokens; cut at something that the first row does not show."""
    return make_batch(
        [[0, 1, 1, 0, 1, 1, 0], [0, 1, 1, 0, 1, 1, 0]],
        attention=torch.tensor([[True] * 6 + [False], [True] * 7]),
        turn=torch.tensor([[-1, 0, 0, -1, 1, 1, -1]] * 2),
        reward=torch.tensor([[0.0, 0, 1, 0, 0, 5, 0]] * 2),
        cut=[True, True],
        **more,
    )


def test_where_its_end_is_unknown_a_cut_episode_loses_its_last_token_and_one_that_was_done_keeps_it():
    batch = with_known_ends(unseen_cut())
    assert batch.mask.tolist() == [[bool(n) for n in row] for row in ([0, 1, 1, 0, 1, 0, 0], [0, 1, 1, 0, 1, 1, 0])]
    assert batch.lengths.tolist() == [5, 7]  # the first row ends before the token that is left out
    places, following, cut = links(batch)
    assert places.tolist() == [1, 2, 4, 8, 9, 11, 12]
    assert following.tolist() == [1, 2, 7, 4, 5, 6, 8]  # 7 and 8 are the ends
    assert cut.tolist() == [0, 1]
    assert (batch.cut.nonzero()[:, 0] * 7 + batch.lengths - 1).tolist() == [4, 13]  # a state that tokens are judged in
    # values of the seven states, then of the two ends; the reward of 5 is the left-out token's
    v = torch.tensor([0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6], dtype=torch.float64)
    chain = chain_of(batch.reward.flatten()[places].tolist(), following=following.tolist())
    hand = [0.99 * 0.2, 1 + 0.99 * 0.3, 0.99 * 0.5, 0.99 * 0.2, 1 + 0.99 * 0.3, 0.99 * 0.4, 5 + 0.99 * 0.6]
    assert goals(chain, v) == pytest.approx(hand, abs=1e-6)
    to_go = mc.returns(chain, torch.tensor([0.5, 0.6], dtype=torch.float64), gamma=0.5)
    assert to_go.tolist() == pytest.approx([0.5625, 1.125, 0.25, 1.1625, 2.325, 2.65, 5.3], abs=1e-6)
    batch = unseen_cut()
    done = replace(batch, cut=torch.zeros(2, dtype=torch.bool))
    assert torch.equal(with_known_ends(done).mask, done.mask)
    assert torch.equal(with_known_ends(done).attention, done.attention)


@pytest.fixture
def services(tmp_path):
    with services_of(chain_policy(), tmp_path) as made:
        yield made


def episodes_of(services, context=None):
    engine = services.engine() if context is None else Engine(context=context)
    found = source.played(engine, services.policy, Uniform(16).draw(0, POOL))
    return [services.ended(each) for each in found]


def small(module, **changes):
    return module.Args(**{"base": "small", "lr": 3e-3, "minibatches": 1, "autocast": False, **changes})


@pytest.mark.parametrize("base", ["small", "own", "policy"])
def test_equal_rows_are_computed_once_and_have_the_states_of_all(services, base):
    batch = collate(episodes_of(services, MarkovState(task=False)), ends=True)
    rows, copy_of = distinct(batch)
    assert len(rows) < len(batch)
    assert all(torch.equal(batch.ids[row], batch.ids[rows[copy]]) for row, copy in enumerate(copy_of.tolist()))
    made = ilql.Implicit(services, small(ilql, base=base))
    chain = made.chain(batch)
    positions, _, cut = links(batch)
    every = made.trunk(batch.ids, batch.attention).flatten(0, 1)
    ends = cut * batch.mask.shape[1] + batch.lengths[cut] - 1
    assert len(chain.states) < len(chain.place)
    assert (chain.states[chain.place] - every[torch.cat([positions - 1, ends])]).abs().max() < 1e-5
    assert (chain.slow - chain.states).abs().max() < 1e-5  # the target network begins as the other


@pytest.mark.parametrize(("module", "critic"), [(ilql, ilql.Implicit), (mc, mc.MonteCarlo)])
def test_rows_cut_into_micro_batches_have_the_same_gradient(services, module, critic):
    batch, found = collate(episodes_of(services, Window(2)), ends=True), []
    assert len(batch) > 16
    assert batch.cut.any()
    for tokens in (1, 100, 10_000):
        made = critic(services, small(module, bias=0.3))
        for head in [*made.net.online.q.modules()]:
            if isinstance(head, nn.Linear):
                nn.init.normal_(head.weight, generator=torch.Generator().manual_seed(1))
        made.tokens, made.net.clip = tokens, 0.0
        made.net.optimiser.step = lambda: None
        found.append(made.learn(batch, HERE, seed=(0,)))
    for other in found[1:]:
        assert other == pytest.approx(found[0], rel=1e-4)


@pytest.mark.parametrize(("module", "critic"), [(ilql, ilql.Implicit), (mc, mc.MonteCarlo)])
def test_the_rate_falls_over_the_stage(services, module, critic):
    batch = collate(episodes_of(services, Window(2)), ends=True)
    made = critic(services, small(module, lr=1e-3, final_lr=0.1, norm=True))
    for share, rate in ((0.0, 1e-3), (0.5, 5.5e-4), (1.0, 1e-4)):
        made.learn(batch, StageProgress(0, share), seed=(0,))
        assert made.net.optimiser.param_groups[0]["lr"] == pytest.approx(rate)
    assert any(isinstance(part, nn.LayerNorm) for part in made.net.online.q.modules())


@pytest.mark.parametrize("tau", [0.5, 0.9])
def test_the_critic_fits_v_to_an_expectile_of_its_targets(services, tau):
    made = ilql.Implicit(services, small(ilql, tau=tau))
    with torch.no_grad():
        for weight in made.net.slow.q.parameters():
            weight.add_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(0)))
    chain = made.chain(collate(episodes_of(services), ends=True))
    place = chain.place[: len(chain.ids)]
    least = torch.minimum(*(head(chain.slow)[place, chain.ids] for head in made.net.slow.q))
    expected = ilql.expectile(least - made.net.online.v(chain.states)[place, 0], tau)
    assert torch.equal(made.losses(chain)[1]["v_loss"], expected)


def test_what_the_environment_says_between_costs_no_discount(services):
    cut = next(e for e in episodes_of(services) if e.truncated)
    won = replace(cut, terminated=True, truncated=False, turns=(*cut.turns[:-1], replace(cut.turns[-1], reward=1.0)))
    batch = collate([won], ends=True)
    made = mc.MonteCarlo(services, small(mc, gamma=0.5))
    goal = mc.returns(made.chain(batch), torch.zeros(0), gamma=0.5)
    tokens = int(batch.mask.sum())
    assert goal.tolist() == pytest.approx([0.5 ** (tokens - 1 - n) for n in range(tokens)])


def test_the_return_of_a_cut_episode_goes_on_with_what_the_policy_would_say(services):
    made = mc.MonteCarlo(services, small(mc, bias=0.4))
    cut = next(e for e in episodes_of(services) if e.truncated)
    chain = made.chain(collate([cut], ends=True))
    assert chain.behaviour.shape[0] == 1
    assert float(chain.behaviour.sum()) == pytest.approx(1.0, abs=1e-5)
    _, figures = made.losses(chain)
    count = len(chain.ids)
    assert figures["critic_return"].tolist() == pytest.approx(
        [0.4 * 0.99 ** (count - n) for n in range(count)], abs=1e-5
    )


def test_values_begin_at_the_mean_return_of_the_first_batch(services):
    paid = [
        replace(e, turns=(replace(e.turns[0], reward=float(n % 2)), *e.turns[1:]))
        for n, e in enumerate(episodes_of(services))
    ]
    batch = collate(paid, ends=True)
    for module, critic in ((ilql, ilql.Implicit), (mc, mc.MonteCarlo)):
        made = critic(services, small(module))
        made.begin_at(-2.0)
        states_ = torch.randn(3, made.trunk.width)
        assert torch.equal(made.quality(states_), torch.full((3, 14), -2.0))
        made = critic(services, small(module))
        made.net.step = lambda ranks: 0.0
        made.learn(batch, HERE, seed=(0,))
        assert made.quality(states_).mean().item() == pytest.approx(0.5)
        assert made.state_dict()["uncentred"] is False


@pytest.mark.parametrize(("module", "critic"), [(ilql, ilql.Implicit), (mc, mc.MonteCarlo)])
def test_an_episode_cut_unseen_is_learnt_up_to_its_last_token(services, module, critic):
    episodes = [e for e in episodes_of(services) if e.truncated]
    unseen = [replace(e, final=None, final_ids=()) for e in episodes]
    batch, made = collate(unseen, ends=True), critic(services, small(module))
    figures = made.learn(batch, HERE, seed=(0,))
    assert figures["critic_tokens"] == int(batch.mask.sum()) - len(unseen)
    assert figures["unseen_cuts"] == len(unseen)
    chain = made.chain(with_known_ends(batch))
    before = [batch.ids[row, : int(length) - 1] for row, length in enumerate(batch.lengths)]
    states_ = [made.trunk(ids[None], torch.ones(1, len(ids)))[0, -1] for ids in before]
    assert (chain.states[chain.place[len(chain.ids) :]] - torch.stack(states_)).abs().max() < 1e-5
    word = [replace(e, turns=e.turns[:1]) for e in unseen]
    one = collate([replace(e, turns=(replace(t, completion=replace(t.completion, ids=t.completion.ids[:1],
                   logprobs=(0.0,), entropy=(0.0,))),)) for e in word for t in e.turns], ends=True)  # fmt: skip
    assert made.learn(one, HERE, seed=(0,)) == {"critic_tokens": 0.0, "unseen_cuts": len(word)}


@pytest.mark.parametrize("base", ["small", "own", "policy"])
def test_a_guided_policy_samples_from_log_pi_plus_beta_q(services, base):
    policy = services.policy
    made = ilql.Implicit(services, small(ilql, base=base, beta=4.0))
    for head in made.net.slow.q:
        nn.init.normal_(head[-1].weight, std=0.3, generator=torch.Generator().manual_seed(3))
    plain = source.played(services.engine(), policy, Uniform(6).draw(1, POOL))
    with made.guide(policy):
        guided = source.played(services.engine(), policy, Uniform(6).draw(1, POOL))
    again = source.played(services.engine(), policy, Uniform(6).draw(1, POOL))
    assert [e.turns for e in again] == [e.turns for e in plain]
    assert [e.turns for e in guided] != [e.turns for e in plain]
    batch = collate(guided)
    with torch.no_grad():
        logits = nn.functional.linear(states(policy.model, batch.ids, batch.attention), policy.model.lm_head.weight)
        wanted = torch.log_softmax(logits, -1) + 4.0 * made.quality(made.net.slow.trunk(batch.ids, batch.attention))
    logprobs = torch.log_softmax(wanted, -1)[:, :-1].gather(-1, batch.ids[:, 1:, None])[..., 0]
    assert (logprobs - batch.logprobs[:, 1:])[batch.mask[:, 1:]].abs().max() < 1e-4


@pytest.mark.parametrize("base", ["small", "own", "policy"])
def test_learning_values_leaves_the_policy_alone(services, base):
    policy = services.policy
    weights = [weight.clone() for weight in policy.model.parameters()]
    made = ilql.Implicit(services, small(ilql, base=base, tau_target=0.005))
    before = [weight.clone() for weight in made.net.slow.parameters()]
    made.learn(collate(episodes_of(services), ends=True), HERE, seed=(0,))
    assert all(torch.equal(a, b) for a, b in zip(weights, policy.model.parameters(), strict=True))
    after = list(made.net.slow.parameters())
    fast = list(made.net.online.parameters())
    moved = [(old, slow, new) for old, slow, new in zip(before, after, fast, strict=True) if not torch.equal(old, new)]
    assert moved
    for old, slow, new in moved:
        assert (slow - (old + 0.005 * (new - old))).abs().max() < 1e-6


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(RecipeError, match="tau_target in"):
        ilql.recipe(ilql.Args(tau=1.0))
    for module in (ilql, mc):
        with pytest.raises(RecipeError, match="name a data set"):
            module.recipe(module.Args(demonstrated=0, sampled=0))
        with pytest.raises(RecipeError, match="gamma"):
            module.recipe(module.Args(gamma=2.0))
