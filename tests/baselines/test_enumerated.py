"""Policy gradients of episodes as they are played, cut and collated, against all episodes enumerated."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from torch import nn

from lmgym.baselines import grpo, rloo
from lmgym.errors import RecipeError
from lmgym.rollout.context import Full, MarkovState, Summarise
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import fork
from lmgym.train.collate import collate
from lmgym.train.interfaces import Optimiser, Term
from lmgym.train.parts.credit import gae
from lmgym.train.parts.kl import RewardKl
from lmgym.train.parts.losses import entropy_bonus, reinforce, surrogate, unit_surrogate, value_loss
from lmgym.train.parts.trees import Paths, tree_credit
from lmgym.train.schedule import StageProgress, constant
from lmgym.train.update import Updater
from lmgym.types import Job
from tests import oracles
from tests.train.batches import make_batch
from tests.train.tt import SPEC, Speller, Table

WORDS = ["".join(word) for word in itertools.product("ab", repeat=2)]
HERE = StageProgress(0, 0.0)
MARKOV = MarkovState(task=False)
SUMMARISE = Summarise(limit=3, words="?", heading="#")
CLIP = partial(surrogate, low=0.2, high=0.28, dual=3.0)


def chance_of(first, seen):
    p_x = 0.8 if first == "ab" else 0.3
    return p_x if seen == "x" else 1 - p_x


def value_of(seen, second):
    return -0.1 + oracles.final_reward(seen, second)


def choices(context, first, seen, second, summary=""):
    """Return the choices of an episode: the text before each letter of the policy, and the letter."""
    begun = [("G", first[0]), (f"G{first[0]}", first[1])]
    shown = {MARKOV: seen, Full(): f"G{first}{seen}", SUMMARISE: f"G\n\n#\n{summary}\n\n{seen}"}[context]
    asked = [(f"G{first}{seen}\n\n?", summary)] if summary else []
    return [*begun, *asked, (shown, second[0]), (shown + second[0], second[1])]


def enumerated(context):
    """All episodes as (words said, choices, chance of the sign, return)."""
    summaries = "ab" if context == SUMMARISE else [""]
    for first, seen, summary, second in itertools.product(WORDS, "xy", summaries, WORDS):
        said = [first, *([summary] if summary else []), second]
        yield said, seen, choices(context, first, seen, second, summary), chance_of(first, seen), value_of(seen, second)


def log_odds(context):
    """Return the log-odds of each possible context: the published ones where the policy sees the sign alone."""
    if context == MARKOV:
        known = dict(zip(oracles.CONTEXTS, oracles.LOG_ODDS, strict=True))
        return {(f"G{name}" if name == "" or name in "ab" else name): odds for name, odds in known.items()}
    names = dict.fromkeys(name for _, _, chosen, _, _ in enumerated(context) for name, _ in chosen)
    return {name: float(np.random.default_rng([7, number]).normal()) for number, name in enumerate(names)}


def probability(chosen, odds):
    return math.prod(1 / (1 + math.exp(-odds[c] if token == "a" else odds[c])) for c, token in chosen)


def played(context, odds):
    """All episodes, and the probability of each."""
    found, chances = [], []
    with Engine(context=context) as engine:
        for number, (said, seen, chosen, chance, value) in enumerate(enumerated(context)):
            job = Job(task=SPEC.id, index="xy".index(seen), id=f"e{number}", group="all")
            (episode,) = engine.run(Speller(said), [job])
            assert episode.reward == pytest.approx(value)
            found.append(episode)
            chances.append(chance * probability(chosen, odds))
    assert sum(chances) == pytest.approx(1, abs=1e-12)
    return found, chances


def exact(context, odds, cost=None):
    episodes = [
        (chosen, chance, value if cost is None else value - cost(chosen))
        for _, _, chosen, chance, value in enumerated(context)
    ]
    return oracles.tabular_gradient(episodes, odds)[1]


def gradient(episodes, chances, odds, credit, loss=reinforce, prepare=lambda batch: batch, micro_tokens=None):
    """Expected gradient of what an update maximises, by context; `chances` are of the episodes."""
    table = Table(odds)
    batch = collate(episodes)
    reward = (batch.reward.double() * 10).round() / 10  # as it was before it became a float32
    batch = replace(batch, reward=reward, value=torch.zeros_like(reward), logprobs=table.score(batch)[0].detach())
    batch = prepare(batch)
    batch = replace(batch, advantage=credit(batch))
    weight = torch.tensor(chances, dtype=torch.float64)[batch.episode][:, None] * len(episodes)
    batch = replace(batch, weight=batch.mask * weight)
    updater = Updater(
        table, table.score, Optimiser(clip=0, micro_tokens=micro_tokens), [Term(loss=loss, aggregation="seq_sum")]
    )
    updater.optimisers = []
    updater.update(batch, HERE, seed=(0,))
    return {context: -value for context, value in table.gradient().items()}


def whole_return(batch):
    """The return of an episode on all of its tokens."""
    return batch.returns()[batch.episode][:, None] * batch.mask


def with_values(values):
    """Give each token the value of the text before it."""

    def valued(batch):
        value = torch.zeros_like(batch.value)
        for row, column in batch.mask.nonzero().tolist():
            value[row, column] = values["".join(map(chr, batch.ids[row, :column].tolist()))]
        return replace(batch, value=value)

    return valued


def assert_same(found, expected, tolerance=1e-12):
    assert found.keys() == expected.keys()
    assert max(abs(found[c] - expected[c]) for c in found) < tolerance
    assert max(map(abs, expected.values())) > 1e-2


def test_the_enumeration_is_the_published_one():
    found = exact(MARKOV, log_odds(MARKOV))
    assert list(found.values()) == pytest.approx(oracles.exact_gradient(oracles.LOG_ODDS), abs=1e-12)


@pytest.mark.parametrize("context", [MARKOV, Full(), SUMMARISE], ids=lambda c: type(c).__name__)
def test_the_gradient_through_the_segments_of_episodes_is_the_enumerated_one(context):
    odds = log_odds(context)
    episodes, chances = played(context, odds)
    expected = exact(context, odds)
    for micro_tokens in (7, 4096):
        assert_same(gradient(episodes, chances, odds, whole_return, micro_tokens=micro_tokens), expected)
    noise = {name: float(np.random.default_rng([9, n]).normal()) for n, name in enumerate(odds)}
    ahead = partial(gae, gamma=1.0, lam=1.0)
    assert_same(gradient(episodes, chances, odds, ahead, CLIP, with_values(noise)), expected)  # any values will do


@pytest.mark.parametrize("lam", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("loss", [CLIP, reinforce])
def test_the_gradient_of_ppo_with_exact_values_is_the_enumerated_one(lam, loss):
    odds = log_odds(MARKOV)
    episodes, chances = played(MARKOV, odds)
    known = oracles.state_values(oracles.LOG_ODDS)
    values = dict(zip(odds, (known[name] for name in oracles.CONTEXTS), strict=True))
    found = gradient(episodes, chances, odds, partial(gae, gamma=1.0, lam=lam), loss, with_values(values))
    assert_same(found, exact(MARKOV, odds))


@pytest.mark.parametrize("loss", [reinforce, partial(unit_surrogate, unit="sequence", low=0.2, high=0.2)])
def test_the_gradient_of_rloo_over_all_pairs_is_the_enumerated_one(loss):
    odds = log_odds(MARKOV)
    single, chance = played(MARKOV, odds)
    pairs = list(itertools.product(range(len(single)), repeat=2))
    episodes = [
        replace(single[which], id=f"{number}.{place}", group=str(number))
        for number, pair in enumerate(pairs)
        for place, which in enumerate(pair)
    ]
    # gradient() averages over episodes: a pair has two, and its probability is that of both
    chances = [chance[first] * chance[second] / 2 for first, second in pairs for _ in range(2)]
    found = gradient(episodes, chances, odds, rloo.credit, loss)
    assert_same(found, exact(MARKOV, odds))


def test_a_divergence_in_the_reward_is_part_of_the_objective():
    odds, cost = log_odds(MARKOV), 0.3
    start = {context: 0.5 * value for context, value in odds.items()}
    episodes, chances = played(MARKOV, odds)

    def charged(batch):
        batch = replace(batch, reference=Table(start).score(batch)[0].detach())
        return RewardKl(cost).apply(batch)[0]

    def kl(chosen):
        return cost * (math.log(probability(chosen, odds)) - math.log(probability(chosen, start)))

    found = gradient(episodes, chances, odds, whole_return, prepare=charged)
    expected = exact(MARKOV, odds, kl)
    assert_same(found, expected)
    assert max(abs(found[c] - exact(MARKOV, odds)[c]) for c in found) > 1e-3


@pytest.mark.parametrize("context", [MARKOV, Full()], ids=lambda c: type(c).__name__)
def test_the_gradient_through_forked_episodes_is_the_enumerated_one(context):
    odds = log_odds(context)
    single, chance = played(context, odds)
    expected, total = exact(context, odds), dict.fromkeys(odds, 0.0)
    with Engine(context=context) as engine:
        for (said, seen, *_), root, p in zip(enumerated(context), single, chance, strict=True):
            for word in WORDS:
                (branch,) = engine.run(Speller([word]), [fork(root, 1)])
                assert branch.forked_at == 1
                again = probability(choices(context, said[0], seen, word)[2:], odds)
                tree = [root, branch]
                # gradient() takes the mean over episodes for their sum; a tree is one root
                for name, part in gradient(tree, [p * again / 2] * 2, odds, spread).items():
                    total[name] += part
    assert_same(total, expected)


class Values(nn.Module):
    """A value for each context."""

    def __init__(self, numbers, count):
        super().__init__()
        self.numbers = numbers  # (B, T)
        self.known = nn.Parameter(torch.zeros(count, dtype=torch.float64))

    def score(self, batch):
        """Zeros and values (B, T); the ids of a batch say which places of the whole it has."""
        value = self.known[self.numbers.flatten()[batch.ids]]
        return torch.zeros_like(value), torch.zeros_like(value), value


@pytest.mark.parametrize("lam", [1.0, 0.5, 0.0])
def test_values_trained_towards_their_returns_come_to_be_those_of_dynamic_programming(lam):
    odds = log_odds(MARKOV)
    episodes, chances = played(MARKOV, odds)
    batch = collate(episodes)
    names = {name: number for number, name in enumerate(odds)}
    numbers = torch.zeros_like(batch.ids)
    for row, column in batch.mask.nonzero().tolist():
        numbers[row, column] = names["".join(map(chr, batch.ids[row, :column].tolist()))]
    values = Values(numbers, len(names))
    weight = batch.mask * torch.tensor(chances, dtype=torch.float64)[batch.episode][:, None] * len(episodes)
    batch = replace(batch, weight=weight, ids=torch.arange(batch.ids.numel()).view(batch.ids.shape))
    term = Term(loss=partial(value_loss, clip=None), aggregation="seq_sum")
    updater = Updater(values, values.score, Optimiser(clip=0), [term])
    updater.optimisers = [torch.optim.SGD(values.parameters(), lr=1.0)]
    updater.optimisers[0].param_groups[0]["peak"] = 1.0
    for _ in range(150):
        valued = replace(batch, value=(values.score(batch)[2] * batch.mask).detach())
        target = gae(valued, gamma=1.0, lam=lam) + valued.value
        updater.update(replace(valued, target=target), HERE, seed=(0,))
    known = oracles.state_values(oracles.LOG_ODDS)
    assert values.known.tolist() == pytest.approx([known[name] for name in oracles.CONTEXTS], abs=1e-4)


def spread(batch):
    paths = Paths(batch)
    return paths.spread(paths.returns())


def tree_batch():
    """Tree A: an episode of two turns that returns 1, and a fork at its second that returns 0. B: a lone 0."""
    return make_batch(
        [[0, 1, 1], [0, 0, 1], [0, 1, 1]],
        turn=torch.tensor([[-1, 0, 1], [-1, -1, 1], [-1, 0, 1]]),
        reward=torch.tensor([[0, 0, 1.0], [0, 0, 0], [0, 0, 0]]),
        parent=[-1, 0, -1],
        forked=[0, 1, 0],
    )


def test_trees_are_compared_with_the_values_worked_by_hand():
    # A is worth 1/2, B 0: paths get 1/2 + 1 - 1/2, 1/2 + 0 - 1/2 and -1/2; those of A weigh 1/2; 3 paths, 2 trees
    expected = [[0, 0.75, 0.75], [0, 0, 0], [0, -0.75, -0.75]]
    assert tree_credit(tree_batch()).tolist() == [pytest.approx(row) for row in expected]


@pytest.mark.parametrize("credit", [rloo.credit, partial(grpo.credit, std=False)])
def test_credit_of_whole_episodes_refuses_forks(credit):
    with pytest.raises(RecipeError, match="tree_credit"):
        credit(tree_batch())


def test_a_fork_of_a_fork_weighs_by_whose_turns_it_shares():
    batch = make_batch(
        [[0, 1, 1, 1], [0, 0, 0, 1], [0, 0, 1, 1]],
        turn=torch.tensor([[-1, 0, 1, 2], [-1, -1, -1, 2], [-1, -1, 1, 2]]),
        reward=torch.tensor([[0, 1.0, 2, 4], [0, 0, 0, 8], [0, 0, 16, 32]]),
        parent=[-1, 0, 1],
        forked=[0, 2, 1],  # the last left at a turn that its parent has from the first
    )
    paths = Paths(batch)
    assert paths.weight().tolist() == [0.25, 0.25, 0.5]
    assert paths.returns().tolist() == [7, 11, 49]
    assert (paths.spread(torch.ones(3)) / 3).tolist() == [[0, 1, 0.5, 0.25], [0, 0, 0, 0.25], [0, 0, 0.5, 0.5]]


class TwoLayers(nn.Module):
    """Logits and a value of the state after a token, in float64."""

    def __init__(self) -> None:
        super().__init__()
        random = torch.Generator().manual_seed(3)
        shapes = {"embed": (5, 4), "hidden": (4, 6), "out": (6, 5), "value": (6, 1)}
        for name, shape in shapes.items():
            weight = torch.randn(shape, generator=random, dtype=torch.float64)
            self.register_parameter(name, nn.Parameter(weight))

    def score(self, batch):
        state = torch.tanh(self.embed[batch.ids[:, :-1]] @ self.hidden)
        logp = torch.log_softmax(state @ self.out, -1)
        chosen = logp.gather(-1, batch.ids[:, 1:, None])[..., 0]
        columns = (chosen, -(logp.exp() * logp).sum(-1), (state @ self.value)[..., 0])
        return tuple(nn.functional.pad(column, (1, 0)) for column in columns)


def loss_by_hand(weights, batch):
    tokens = []
    for row, column in batch.mask.nonzero().tolist():
        before, token = batch.ids[row, column - 1], batch.ids[row, column]
        state = np.tanh(weights["embed"][before] @ weights["hidden"])
        logits = state @ weights["out"]
        logp = logits - np.log(np.exp(logits).sum())
        tokens.append(
            {
                "logp": float(logp[token]),
                "entropy": float(-(np.exp(logp) * logp).sum()),
                "value": float((state @ weights["value"])[0]),
                "old": float(batch.logprobs[row, column]),
                "advantage": float(batch.advantage[row, column]),
                "before": float(batch.value[row, column]),
                "target": float(batch.target[row, column]),
            }
        )
    return oracles.ppo_loss(tokens, low=0.2, high=0.28, dual=3.0, entropy=0.05, coef=0.5, value_clip=0.2)


def test_the_gradient_of_the_whole_loss_is_that_of_finite_differences():
    random = torch.Generator().manual_seed(0)
    mask = (torch.rand(6, 9, generator=random) < 0.6).int()
    mask[:, 0], mask[:, 1] = 0, 1
    draw = partial(torch.randn, 6, 9, generator=random, dtype=torch.float64)
    model = TwoLayers()
    batch = make_batch(
        mask.tolist(), ids=torch.randint(0, 5, (6, 9), generator=random), advantage=draw(), value=draw(), target=draw()
    )
    logprobs = model.score(batch)[0].detach()
    batch = replace(batch, weight=batch.weight.double(), logprobs=logprobs + 0.3 * draw())
    terms = [
        Term(loss=CLIP),
        Term(loss=entropy_bonus, name="entropy_bonus", coef=constant(0.05)),
        Term(loss=partial(value_loss, clip=0.2), name="value_loss", coef=constant(0.5)),
    ]
    updater = Updater(model, model.score, Optimiser(clip=0, micro_tokens=20), terms)
    updater.optimisers = []
    updater.update(batch, HERE, seed=(0,))
    weights = {name: weight.detach().numpy().copy() for name, weight in model.named_parameters()}
    for name, weight in model.named_parameters():
        for place in itertools.islice(np.ndindex(*weight.shape), 0, None, 3):
            change = []
            for step in (1e-6, -1e-6):
                moved = {**weights, name: weights[name].copy()}
                moved[name][place] += step
                change.append(loss_by_hand(moved, batch))
            numeric = (change[0] - change[1]) / 2e-6
            assert weight.grad[place].item() == pytest.approx(numeric, abs=1e-7)
