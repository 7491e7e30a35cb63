from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch

from lmgym.baselines import refuel
from lmgym.env import registry
from lmgym.errors import RecipeError
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import RESEED
from lmgym.train import loop, source
from lmgym.train.collate import collate
from lmgym.train.interfaces import Optimiser, ScoredBatch, Term
from lmgym.train.parts.tasks import Uniform
from lmgym.train.schedule import StageProgress
from lmgym.train.state import InstancePool
from lmgym.train.update import Updater
from tests import oracles, oracles_values
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy
from tests.train.toys import Bigram, gradient

POOL = InstancePool(task=SPEC.id, size=1000)
PI, Q, ETA = [0.2, 0.5, 0.3], [1.0, 0.0, 0.5], 2.0


def all_pairs(count):
    """A batch of all ordered pairs of `count` one-token answers, and which answer each row is."""
    answers = torch.tensor(list(itertools.product(range(count), repeat=2)))
    group = torch.arange(len(answers)).repeat_interleave(2)
    return make_batch([[0, 1]] * len(group), group=group), answers.flatten()


def expected_loss(logprobs, old, q, eta):
    """The mean loss over all pairs by their chance, where an answer always brings the same."""
    return expected_over([(number, value, old[number]) for number, value in enumerate(q)], logprobs, old, eta)


def expected_over(outcomes, logprobs, old, eta):
    """The mean loss over all pairs of `outcomes` (answer, return, chance), through credit and loss of the baseline."""
    batch, outcome = all_pairs(len(outcomes))
    answer = torch.tensor([each[0] for each in outcomes])[outcome]
    reward = torch.zeros(len(answer), 2, dtype=torch.float64)
    reward[:, 1] = torch.tensor([each[1] for each in outcomes], dtype=torch.float64)[outcome]
    spoken = torch.zeros_like(reward)
    spoken[:, 1] = torch.tensor(old, dtype=torch.float64).log()[answer]
    batch = replace(batch, reward=reward, logprobs=spoken)
    batch = replace(batch, advantage=refuel.credit(batch, eta=eta, scale="none"))
    mine = torch.stack([torch.zeros_like(spoken[:, 1]), logprobs[answer]], 1)
    tokens, _ = refuel.regression(ScoredBatch(batch=batch, logprobs=mine, entropy=torch.zeros_like(mine)))
    chance = torch.tensor([each[2] for each in outcomes], dtype=torch.float64)[outcome]
    chance = chance.view(-1, 2).prod(1).repeat_interleave(2)
    return (tokens[:, 1] * chance).sum() / 2  # a pair's loss stands on both of its rows


def minimised(parameters, loss):
    optimiser = torch.optim.LBFGS([parameters], lr=1.0, max_iter=200, tolerance_grad=1e-14, tolerance_change=1e-16)

    def closure():
        optimiser.zero_grad()
        value = loss()
        value.backward()
        return value

    optimiser.step(closure)


def test_the_loss_is_the_enumerated_one_and_ends_at_soft_improvement():
    other = [0.4, 0.4, 0.2]
    mine = expected_loss(torch.tensor(other, dtype=torch.float64).log(), PI, Q, ETA)
    assert float(mine) == pytest.approx(oracles_values.refuel_loss(other, PI, Q, ETA), rel=1e-12)
    logits = torch.tensor(PI, dtype=torch.float64).log().requires_grad_()
    minimised(logits, lambda: expected_loss(torch.log_softmax(logits, -1), PI, Q, ETA))
    found = torch.softmax(logits, -1).tolist()
    assert found == pytest.approx([0.529056, 0.179000, 0.291944], abs=1e-6)
    assert found == pytest.approx(oracles_values.soft_improvement(PI, Q, ETA), abs=1e-7)


def test_the_first_gradient_is_that_of_the_policy_times_minus_four_eta():
    logits = torch.tensor(PI, dtype=torch.float64).log().requires_grad_()
    expected_loss(torch.log_softmax(logits, -1), PI, Q, ETA).backward()
    mean = sum(p * q for p, q in zip(PI, Q, strict=True))
    policy = [p * (q - mean) for p, q in zip(PI, Q, strict=True)]
    assert logits.grad.tolist() == pytest.approx([-4 * ETA * each for each in policy], abs=1e-12)
    assert logits.grad.tolist() == pytest.approx([-1.04, 1.40, -0.36], abs=1e-12)


def test_words_of_two_tokens_end_at_soft_improvement_as_well():
    words, q = oracles_values.WORDS, [oracles.final_reward("x", word) for word in oracles_values.WORDS]
    old = [oracles_values.word_probability("x", word, oracles.LOG_ODDS) for word in words]
    theta = torch.tensor([oracles.LOG_ODDS[oracles.CONTEXTS.index(c)] for c in ("x", "xa", "xb")], dtype=torch.float64)
    theta.requires_grad_()

    def logprobs():
        first, after_a, after_b = (torch.nn.functional.logsigmoid(torch.stack([t, -t])) for t in theta)
        return torch.stack([first[0] + after_a[0], first[0] + after_a[1], first[1] + after_b[0], first[1] + after_b[1]])

    minimised(theta, lambda: expected_loss(logprobs(), old, q, 1.0))
    assert logprobs().exp().tolist() == pytest.approx([0.554755, 0.184662, 0.110893, 0.149690], abs=1e-6)


def test_returns_may_be_noisy_their_means_are_what_counts():
    words, log_odds = oracles_values.WORDS, oracles.LOG_ODDS
    old = [oracles_values.word_probability("", word, log_odds) for word in words]
    exact, values = oracles_values.two_turn_values(log_odds, 1.0)
    outcomes = []
    for number, word in enumerate(words):
        x = oracles_values.chance_of_x(word)
        won = x * values["x"] + (1 - x) * values["y"]
        outcomes += [(number, 0.9, old[number] * won), (number, -0.1, old[number] * (1 - won))]
    logits = torch.tensor(old, dtype=torch.float64).log().requires_grad_()
    minimised(logits, lambda: expected_over(outcomes, torch.log_softmax(logits, -1), old, 3.0))
    best = oracles_values.soft_improvement(old, [exact["", word] for word in words], 3.0)
    assert torch.softmax(logits, -1).tolist() == pytest.approx(best, abs=1e-7)


def test_the_gradient_is_that_of_finite_differences():
    batch = one_pair(logprobs=torch.tensor([[0, -1.0, -2.0], [0, -3.0, -0.5]], dtype=torch.float64))
    batch = replace(batch, advantage=refuel.credit(batch, eta=0.7, scale="none").double())
    mine = (batch.logprobs + 0.3).requires_grad_()

    def loss(logprobs):
        return refuel.regression(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros_like(logprobs)))[0]

    assert torch.autograd.gradcheck(loss, (mine,))


def one_pair(**columns):
    reward = torch.tensor([[0, 0, 3.0], [0, 0, 1.0]])
    batch = make_batch([[0, 1, 1]] * 2, group=[7, 7], reward=reward)
    return replace(batch, **columns)


def loss_of(batch, logprobs, *, eta=0.5):
    batch = replace(batch, advantage=refuel.credit(batch, eta=eta, scale="none"))
    tokens, _ = refuel.regression(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros_like(logprobs)))
    return float(tokens[0, 1])


def test_the_loss_is_the_squared_difference_of_returns_at_first_and_only_it_and_the_answers_count():
    logprobs = torch.tensor([[0, -1.0, -2.0], [0, -3.0, -0.5]])
    assert loss_of(one_pair(logprobs=logprobs), logprobs) == pytest.approx((0.5 * (3 - 1)) ** 2)
    old = torch.tensor([[0, -1.0, -2.0], [0, -3.0, -0.5]])
    batch = one_pair(logprobs=old)
    mine = old + torch.tensor([[0, 0.1, 0.2], [0, -0.3, 0.4]])
    swap = torch.tensor([1, 0])
    swapped = replace(batch, reward=batch.reward[swap], logprobs=old[swap])
    more = replace(batch, reward=batch.reward + torch.tensor([0, 5.0, 0]))
    hand = (0.3 - 0.1 - 0.5 * 2) ** 2
    for other, logprobs in ((batch, mine), (swapped, mine[swap]), (more, mine)):
        assert loss_of(other, logprobs) == pytest.approx(hand, rel=1e-5)
    batch = replace(one_pair(), mask=torch.tensor([[False, True, False]] * 2))
    mine = torch.tensor([[0, 0.1, 0.0], [0, -0.3, 0.0]])
    noise = torch.tensor([[4.0, 0, -5.0], [2.0, 0, 9.0]])
    assert loss_of(batch, mine + noise) == loss_of(batch, mine)


def test_differences_can_be_measured_by_their_own_deviation():
    reward = torch.tensor([[0, 3.0], [0, 0], [0, 1.0], [0, 5.0]])
    batch = make_batch([[0, 1]] * 4, group=[0, 0, 1, 1], reward=reward)
    rms = ((9 + 16) / 2) ** 0.5
    expected = [2 * d / rms for d in (3, -3, -4, 4)]
    assert refuel.credit(batch, eta=2.0, scale="std")[:, 1].tolist() == pytest.approx(expected)
    flat = replace(batch, reward=torch.ones(4, 2))
    assert not refuel.credit(flat, eta=2.0, scale="std").any()


def test_a_pair_cut_into_micro_batches_has_the_same_gradient():
    reward = torch.randn(12, 6, generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[0, 1, 1, 1, 1, 0]] * 12, dtype=torch.bool)
    ids = torch.randint(1, 13, (12, 6), generator=torch.Generator().manual_seed(1))
    batch = make_batch(mask.tolist(), ids=ids, group=torch.arange(12) % 6, reward=reward * mask)
    batch = replace(batch, advantage=refuel.credit(batch, eta=1.0, scale="std"))
    term = Term(loss=refuel.regression, aggregation="seq_mean", together=refuel.together)
    found = []
    for tokens in (1, 30, 1000):
        model = Bigram()
        updater = Updater(model, model.score, Optimiser(clip=0, micro_tokens=tokens), [term])
        updater.optimisers = []
        updater.update(batch, StageProgress(0, 0.0), seed=(0,))
        found.append(gradient(model))
    assert found[0].norm() > 0
    assert all((g - found[0]).norm() < 1e-12 * found[0].norm() for g in found)


@pytest.fixture(scope="module")
def played():
    known = {**registry.specs(), SPEC.id: SPEC}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "specs", lambda: known)
        jobs = Uniform(48).draw(0, POOL)
        return source.played(Engine(planner=refuel.Rewind()), chain_policy(), jobs)


def test_every_episode_is_rewound_once_to_a_uniform_turn_and_goes_on_with_its_own_noise_and_chance(played):
    firsts = {episode.id: episode for episode in played if episode.parent is None}
    seconds = [episode for episode in played if episode.parent is not None]
    assert len(firsts) == len(seconds) == 48
    assert sorted(second.parent for second in seconds) == sorted(firsts)
    long = [second.forked_at for second in seconds if len(firsts[second.parent].turns) == 5]
    assert set(long) == set(range(5))
    assert np.bincount(long).max() < 0.5 * len(long)
    differ = 0
    for second in seconds:
        first, turn = firsts[second.parent], second.forked_at
        assert all(a is b for a, b in zip(first.turns[:turn], second.turns[:turn], strict=True))
        assert second.turns[turn].info[RESEED] == second.reseed is not None
        differ += first.turns[turn].completion.ids != second.turns[turn].completion.ids
    assert differ > 24


def test_a_pair_is_trained_on_its_two_answers_alone_and_earns_all_that_came_after(played):
    store = refuel.Pairs()
    paid = [replace(e, turns=tuple(replace(t, reward=0.5 + n) for n, t in enumerate(e.turns))) for e in played]
    store.put(paid)
    pairs = store.draw(None, seed=(0,))
    batch = collate(pairs)
    assert len(pairs) % 2 == 0
    assert torch.bincount(batch.group).tolist() == [2] * (len(pairs) // 2)
    whole = {episode.id: episode for episode in paid}
    for row, episode in enumerate(pairs):
        turn = episode.forked_at
        assert batch.ids[row][batch.mask[row]].tolist() == list(episode.turns[turn].completion.ids)
        assert float(batch.reward[row].sum()) == sum(t.reward for t in whole[episode.id].turns[turn:])
        assert set(batch.turn[row][batch.mask[row]].tolist()) == {turn}


def test_the_same_answer_twice_is_dropped(played):
    first = next(e for e in played if e.parent is None)
    second = next(e for e in played if e.parent == first.id)
    same = replace(second, turns=(*second.turns[: second.forked_at], *first.turns[second.forked_at :]))
    store = refuel.Pairs()
    store.put([first, same])
    assert store.draw(None, seed=(0,)) == []
    store.put([second])
    assert store.draw(None, seed=(0,)) == []


def test_a_task_that_does_not_replay_is_refused_before_any_work(tmp_path, monkeypatch):
    known = {**registry.specs(), SPEC.id: replace(SPEC, deterministic=False)}
    monkeypatch.setattr(registry, "specs", lambda: known)
    with pytest.raises(RecipeError, match="is not deterministic") as caught:
        loop.run(refuel.recipe(refuel.Args()), chain_policy(), task=SPEC.id, folder=tmp_path / "run", quiet=True)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_eta_and_pairs_are_checked():
    for wrong in ({"eta": 0.0}, {"pairs": 0}):
        with pytest.raises(RecipeError, match="above 0"):
            refuel.recipe(refuel.Args(**wrong))
