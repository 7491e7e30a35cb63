"""Episodes of a store: trained beside the fresh ones with their own credit, or in the place of failures."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.errors import RecipeError
from lmgym.train.batch import joined
from lmgym.train.interfaces import Optimiser, Term
from lmgym.train.parts.losses import nll, surrogate
from lmgym.train.parts.stores import SelfImitation, Successes
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import StageProgress, Until, constant
from lmgym.train.stages import Rl
from lmgym.train.update import Updater
from tests.train.batches import make_batch
from tests.train.test_parts import episode
from tests.train.toys import Bigram

HERE = StageProgress(0, 0.0)


def clip(scored):
    return surrogate(scored, low=0.2, high=0.2)


def rows(count: int, width: int, *, seed: int):
    """Rows of ids with an advantage and old log-probs of their own."""
    chance = torch.Generator().manual_seed(seed)
    ids = torch.randint(1, 13, (count, width), generator=chance)
    numbers = [torch.rand(count, width, generator=chance, dtype=torch.float64) for _ in range(2)]
    mask = [[0] + [1] * (width - 1)] * count
    return make_batch(mask, ids=ids, turn=torch.zeros(count, width).long(), advantage=numbers[0], logprobs=-numbers[1])


def gradient(batch, terms, *, single: bool = False):
    """The gradient of one optimiser step."""
    model = Bigram()
    updater = Updater(model, model.score, Optimiser(lr=0.0, clip=0.0), terms)
    updater.scores_old = single
    found = []
    updater.optimisers[0].register_step_pre_hook(lambda *_: found.append(model.table.grad.clone()))
    updater.update(batch, HERE, seed=(0,))
    return found[0]


def test_terms_see_their_own_rows_alone_and_stored_ones_keep_their_log_probs():
    fresh, stored = rows(3, 5, seed=0), rows(2, 7, seed=1)
    own = [Term(loss=clip), Term(loss=nll, name="imitation", coef=constant(0.5), source="store")]
    both = gradient(joined(fresh, stored), own)
    apart = gradient(fresh, own[:1]) + gradient(stored, [Term(loss=nll, coef=constant(0.5))])
    assert torch.allclose(both, apart, atol=1e-12)
    assert not torch.allclose(both, gradient(fresh, own[:1]), atol=1e-3)
    terms = [Term(loss=clip), Term(loss=clip, name="stored", source="store")]
    both = gradient(joined(fresh, stored), terms, single=True)
    apart = gradient(fresh, terms[:1], single=True) + gradient(stored, terms[:1], single=False)
    assert torch.allclose(both, apart, atol=1e-12)


def test_joined_batches_keep_episodes_groups_and_parents_apart():
    fresh = make_batch([[0, 1], [0, 1]], group=[0, 3])
    stored = make_batch([[0, 1, 1], [0, 1, 1]], turn=[[-1, 0, 0]] * 2, parent=[-1, 0], group=[0, 0])
    both = joined(fresh, stored)
    assert both.episode.tolist() == [0, 1, 2, 3]
    assert both.group.tolist() == [0, 3, 4, 4]
    assert both.parent.tolist() == [-1, -1, -1, 2]
    assert both.stored.tolist() == [False, False, True, True]
    assert both.ids.shape == (4, 3)
    assert both.turn[0].tolist() == [0, 0, -1]


@pytest.mark.parametrize(
    ("stage", "term", "store", "words"),
    [
        ({}, {"source": "store"}, None, "give the recipe a store"),
        ({"updates_per_step": 2}, {"source": "store"}, SelfImitation, "set updates_per_step to 1"),
        ({}, {"source": "store", "reference": True}, SelfImitation, "set reference=False"),
        ({"parts": replace(Recipe(stages=[]), temperature=0.5)}, {}, None, "samples as the recipe does"),
    ],
    ids=["store", "updates", "reference", "context"],
)
def test_a_recipe_that_cannot_mix_is_refused(stage, term, store, words):
    with pytest.raises(RecipeError, match=words):
        Recipe(loss=[Term(loss=nll, **term)], store=store, stages=[Rl(until=Until(steps=1), **stage)])


def tries(index: int, group: str, *returns: float):
    return [episode(f"{group}-{n}", group, reward, index=index) for n, reward in enumerate(returns)]


def test_a_stored_success_takes_the_place_of_a_failure():
    store = Successes(capacity=2)
    store.put([*tries(7, "a", 1.0, 0.0), *tries(8, "b", 0.0, 0.0)])
    assert [each.id for each in store.draw(None, seed=(0,))] == ["a-0", "a-1", "b-0", "b-1"]
    store.put([*tries(7, "c", 0.0, 0.0), *tries(8, "d", 0.0, 0.0), *tries(7, "e", 1.0, 0.0)])
    restored = Successes(capacity=2)
    restored.load_state_dict(store.state_dict())
    restored.latest = store.latest
    for each in (store, restored):
        drawn = each.draw(None, seed=(0,))
        assert [t.id for t in drawn] == ["e-0>c", "c-1", "d-0", "d-1", "e-0", "e-1"]
        assert drawn[0].group == "c"
        assert drawn[0].reward == 1.0
    store.drop = True
    assert [t.id for t in store.draw(None, seed=(0,))] == ["e-0>c", "c-1", "e-0", "e-1"]
    assert len(store.kept["train/7"]) == 2


@pytest.mark.parametrize(
    ("returns", "failed"),
    [((0.0, 0.0), True), ((0.1, 0.19), True), ((0.0, 0.11), False), ((0.2, 0.2), False), ((0.3, 0.2), False)],
)
def test_a_group_has_failed_by_both_thresholds(returns, failed):
    """Deviations of 0, 0.045, 0.055, 0 and 0.05 around means of 0, 0.145, 0.055, 0.2 and 0.25; below 0.05 and 0.2."""
    store = Successes()
    store.put(tries(7, "a", 0.5, 0.1))
    assert [each.id for each in store.kept["train/7"]] == ["a-0"]  # 0.1 is no success
    store.put(tries(7, "b", *returns))
    assert any(">" in each.id for each in store.draw(None, seed=(0,))) is failed


def test_episodes_with_an_invalid_action_stay_out_of_the_store_that_wants_none():
    first, second = tries(1, "a", 1.0, 0.0)
    slip = replace(first, turns=(*first.turns[:-1], replace(first.turns[-1], info={"valid": False})))
    for void, kept in ((True, ["a-0"]), (False, [])):
        store = SelfImitation(void=void)
        store.put([slip, second])
        assert [each.id for _, each in store.kept] == kept


def test_episodes_better_than_their_group_are_imitated_until_they_are_old():
    store = SelfImitation(age=2, count=8, window=3)
    store.put([*tries(1, "a", 1.0, 0.0, 0.5), *tries(2, "b", 2.0, 2.0)])  # means 0.5 and 2
    assert store.draw(None, seed=(0,)) == []  # those of this step come later
    store.put(tries(1, "c", 0.0, 0.25))
    drawn = store.draw(None, seed=(0,))
    assert [each.id for each in drawn] == ["a-0"]
    assert drawn[0].reward == pytest.approx(1.0 - 0.5)  # the median of 0.5, 2 and 0.125
    restored = SelfImitation(age=2, count=8, window=3)
    restored.load_state_dict(store.state_dict())
    for each in (store, restored):
        each.put(tries(1, "d", 3.0, 3.0))
        assert [t.id for t in each.draw(None, seed=(0,))] == []  # c-1 is below the median of 2, 0.125 and 3
        assert [t.id for _, t in each.kept] == ["a-0", "c-1"]
        each.put(tries(1, "e", 0.0, 0.0))
        assert [t.id for _, t in each.kept] == ["c-1"]  # a-0 is three steps old
