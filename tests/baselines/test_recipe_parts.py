"""The parts that recipes run with, whose mechanisms other tests prove: each does what the options of its recipe say."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines import grpo
from lmgym.baselines.recipes import (
    aepo,
    arpo,
    arpo_gui,
    dart,
    epo_adviser,
    gra,
    igpo,
    mars,
    mgpo,
    practitioner,
    retool,
    spear,
    supo,
    ui_s1,
    vigorl,
    webagent_r1,
)
from lmgym.rollout.fork import PLY
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.parts.planners import BalancedFork, EntropyFork, Patch
from lmgym.train.parts.turns import by_turn
from lmgym.train.schedule import StageProgress
from lmgym.train.state import InstancePool
from lmgym.types import Completion
from tests.baselines.test_recipe_igpo import Scorer
from tests.baselines.test_recipe_igpo import played as answered
from tests.train.batches import make_batch
from tests.train.test_parts import EPISODE, TURN, episode

HERE = StageProgress(0, 0.0)
POOL = InstancePool(task="t", size=3)
PLAYED = torch.tensor([[-1, 0, 0, -1, 1]] * 4)
BATCH = make_batch(
    (PLAYED >= 0).tolist(),
    turn=PLAYED,
    reward=[[0, 0, 0, 0, float(won)] for won in (1, 0, 0, 1)],
    entropy=[[0, 0.1 * n, 1.0, 0, 0.5] for n in range(4)],
)


def uncertain(*entropies: float):
    """An episode whose turns have answers of these entropies."""
    turns = (replace(TURN, completion=Completion(text="x", ids=(1,), entropy=(value,))) for value in entropies)
    return replace(EPISODE, turns=tuple(turns))


def test_arpo_and_aepo_fork_as_their_options_say():
    options = {"instances": 2, "group": 12, "base": 0.4, "weight": 0.3}
    forks, balanced = arpo.recipe(arpo.Args(roots=5, **options)), aepo.recipe(aepo.Args(roots=3, beta=2.0, **options))
    assert forks.planner == EntropyFork(paths=12, roots=5, base=0.4, weight=0.3)
    assert balanced.planner == BalancedFork(paths=12, roots=3, base=0.4, weight=0.3, beta=2.0, in_a_row=3)
    assert [len(each.tasks.draw(0, POOL)) for each in (forks, balanced)] == [2 * 5, 2]
    assert torch.equal(forks.credit(BATCH), arpo.credit(BATCH))
    assert torch.equal(balanced.credit(BATCH), aepo.credit(BATCH, entropy_weight=0.3))
    assert not torch.equal(balanced.credit(BATCH), forks.credit(BATCH))


def test_aepo_keeps_the_gradient_of_what_is_clipped_from_above():
    logprobs = torch.full(BATCH.mask.shape, 1.0, requires_grad=True)  # a ratio of e
    batch = replace(BATCH, advantage=BATCH.mask.float())
    for recipe, kept in ((aepo.recipe(aepo.Args()), True), (arpo.recipe(arpo.Args()), False)):
        loss = recipe.loss[0].loss(ScoredBatch(batch=batch, logprobs=logprobs, entropy=BATCH.entropy))[0]
        (gradient,) = torch.autograd.grad(loss.sum(), logprobs)
        assert bool(gradient[BATCH.mask].abs().min() > 0) is kept


def test_dart_plays_by_what_was_shown_and_trains_the_uncertain_turns():
    recipe = dart.recipe(dart.Args(instances=1, tasks=1, group=8, fewest=2, margin=1, budget=9, uncertain=0.5))
    tasks = recipe.tasks
    tasks.observe([replace(episode(f"e{n}", "g", 1.0, 1.0), index=0, info={"success": True}) for n in range(4)], None)
    jobs = tasks.draw(1, replace(POOL, size=1))
    assert [(job.index, job.budget) for job in jobs] == [(0, 3)] * 2
    masked = [each([uncertain(0.1, 0.9, 0.2, 0.8)]).mask for each in recipe.filter]
    assert {("e", 0), ("e", 2)} in masked
    assert recipe.importance is not None


def test_arpo_for_gui_agents_leaves_out_what_was_never_won():
    tasks = arpo_gui.recipe(arpo_gui.Args(instances=4, group=2, attempts=5, tasks=3)).tasks
    tasks.observe([replace(episode(f"e{n}", "g", 0.0), index=1) for n in range(5)], None)
    assert {job.index for job in tasks.draw(0, POOL)} == {0, 2}


def test_ui_s1_patches_sums_and_drops_by_its_options():
    recipe = ui_s1.recipe(ui_s1.Args(patches=3, gamma=0.25, least=0.5))
    assert recipe.planner == Patch(3)
    acted = replace(TURN, completion=Completion(text="click('5')"), info={"expert": "click('5')"})
    (summed,) = recipe.reward[0]([replace(EPISODE, turns=(acted, acted))], None, HERE)
    assert [turn.reward for turn in summed.turns] == pytest.approx([1.25, 1.0])
    group = [episode("a", "g", 0.0), episode("b", "g", 0.6)]  # a deviation of 0.42
    assert recipe.filter[0](group).drop == {"a", "b"}
    assert torch.equal(recipe.credit(BATCH), ui_s1.credit(BATCH))


def test_retool_gra_and_igpo_pay_what_they_say():
    won = episode("a", "g", 0.3, 0.2, info={"success": True})
    (signed,) = retool.recipe(retool.Args()).reward[0]([won], None, HERE)
    assert [turn.reward for turn in signed.turns] == [0.0, 1.0]
    terms = replace(EPISODE, turns=(replace(TURN, reward=0.7, terms={"done": 0.2, "steps": 0.5}),))
    gate, direct = (gra.recipe(gra.Args(terms="done,steps", thresholds="0.5", direct=d)) for d in (False, True))
    assert gate.reward[0]([terms], None, HERE)[0].reward == pytest.approx(0.2)
    assert direct.reward == []
    recipe = igpo.recipe(igpo.Args(gamma=0.5))
    (gained,) = recipe.reward[0]([answered("a", "b")], Scorer(), HERE)
    assert gained.turns[0].reward == pytest.approx(1 / 3 - 1 / 7)
    assert torch.equal(recipe.credit(BATCH), igpo.credit(BATCH, gamma=0.5))


class Judge:
    """Services whose judge names the first answer."""

    def judge(self, texts, *, model=None, max_tokens=64):
        return [f"Answer 1, says {model}." for _ in texts]


def test_the_adviser_alone_is_paid_for_answers_that_the_judge_names():
    recipe = epo_adviser.recipe(epo_adviser.Args(judge="oracle"))
    seats = [episode(name, "g", 0.0, 0.0, 1.0, seat=name) for name in ("adviser", "agent")]
    advised, played = recipe.reward[0](seats, Judge(), HERE)
    assert [turn.reward for turn in advised.turns] == pytest.approx([1.0, 0.0, 0.1])
    assert [turn.reward for turn in played.turns] == [0.0, 0.0, 1.0]


def test_mars_compares_by_who_moved_first_and_charges_invalid_actions():
    slip = {"valid": False}
    seats = [
        replace(EPISODE, seat=seat, turns=(replace(TURN, info={PLY: ply, **slip}),))
        for ply, seat in ((1, "agent"), (0, "opponent"))
    ]
    for change in mars.recipe(mars.Args()).reward:
        seats = change(seats, None, HERE)
    assert [(each.seat, each.reward) for each in seats] == [("second", -0.05), ("first", -0.05)]


def test_vigorl_imitates_the_traces_that_its_search_wrote():
    search, traces = (s for s in vigorl.recipe(vigorl.Args()).stages if s.name in ("search", "traces"))
    assert str(traces.recorded) == search.into
    assert traces.planner is None


def test_webagent_r1_averages_over_turns():
    recipe, plain = webagent_r1.recipe(webagent_r1.Args()), grpo.recipe(grpo.Args())
    assert torch.equal(recipe.credit(BATCH), by_turn(BATCH, credit=plain.credit))
    assert not torch.equal(recipe.credit(BATCH), plain.credit(BATCH))


@pytest.mark.parametrize(("module", "options", "kind"), [(mgpo, "boxes", "act"), (supo, "summaries", "summary")])
def test_an_ablation_masks_what_the_system_trains(module, options, kind):
    turns = (replace(TURN, kind=kind), TURN)
    for trained, masked in (("trained", set()), ("fixed", {("e", 0)})):
        filters = module.recipe(module.Args(**{options: trained})).filter
        assert set().union(*(each([replace(EPISODE, turns=turns)]).mask for each in filters)) == masked


def test_spear_clips_fresh_and_stored_episodes_by_covariance():
    every = {"covariance_share": 1.0, "covariance_low": -1e9, "covariance_high": 1e9}
    clipped, plain = spear.recipe(spear.Args(**every)), spear.recipe(spear.Args(covariance_share=0.0))
    batch = replace(BATCH, logprobs=-torch.arange(20.0).view(4, 5))
    for part in ("credit", "store_credit"):
        assert not getattr(clipped, part)(batch).any()
        assert getattr(plain, part)(batch).any()


def test_the_practitioners_ppo_discounts_nothing():
    """Without a critic's values the advantage is the return, whitened: the same on all tokens of an episode."""
    advantage = practitioner.recipe(practitioner.Args(estimator="ppo")).credit(BATCH)
    for row in range(4):
        own = advantage[row][BATCH.mask[row]]
        assert own.tolist() == pytest.approx([float(own[0])] * 3, abs=1e-6)
    assert float(advantage[0, 1]) > 0 > float(advantage[1, 1])
