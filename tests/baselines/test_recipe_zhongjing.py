"""Zhongjing: pairs of answers, the loss of a pair, and PPO on the score of the reward model alone."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest
import torch

from lmgym.baselines import bc
from lmgym.baselines.recipes import zhongjing
from lmgym.env import registry
from lmgym.errors import RecipeError
from lmgym.train import curve, loop
from lmgym.train.interfaces import Optimiser, ScoredBatch, Term
from lmgym.train.learner import Learner
from lmgym.train.log import read_metrics
from lmgym.train.math import aggregation
from lmgym.train.parts import preference
from lmgym.train.schedule import StageProgress
from lmgym.train.stages import FitCritic
from lmgym.types import Completion
from tests.baselines.test_learning import WARMUP
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy, services_of
from tests.train.small_tasks import SPECS, TWICE
from tests.train.test_parts import EPISODE, TURN

HERE = StageProgress(0, 0.0)
ANSWER = replace(TURN, completion=Completion(text="x", ids=(5, 1), prompt_ids=(3, 4)))


@pytest.fixture(autouse=True)
def _small_tasks(monkeypatch):
    known = MappingProxyType({**registry.specs(), **{spec.id: spec for spec in (SPEC, *SPECS)}})
    monkeypatch.setattr(registry, "specs", lambda: known)
    monkeypatch.setattr(curve, "draw", lambda folder: folder)


def episode(name: str, *rewards: float, **fields):
    turns = tuple(replace(ANSWER, reward=reward) for reward in rewards)
    return replace(EPISODE, id=name, root=name.partition("+")[0], turns=turns, **fields)


def test_answers_that_the_task_pays_differently_make_a_pair():
    first = episode("a", 1.0, 2.0, 3.0)
    better = episode("a+1.0", 1.0, 5.0, -9.0, parent="a", forked_at=1)
    equal = episode("a+1.1", 1.0, 2.0, 7.0, parent="a", forked_at=1)
    cut = episode("a+1.2", 1.0, parent="a", forked_at=1)
    pairs = preference.ranked([first, better, equal, cut, episode("b", 0.0)])
    assert [(each.id, each.group, each.forked_at) for each in pairs] == [("a", "a+1.0", 1), ("a+1.0", "a+1.0", 1)]
    assert [[turn.reward for turn in each.turns] for each in pairs] == [[1.0, 2.0], [1.0, 5.0]]


def test_the_loss_of_a_pair_is_that_of_bradley_and_terry():
    """Three pairs of answers of two turns, of which the second is ranked; scores elsewhere do not matter."""
    chance = np.random.default_rng(0)
    turn = torch.tensor([[-1, -1, -1, 1, 1, -1]] * 6)
    score = chance.normal(size=(6, 6))
    paid = np.array([1.0, 0.0, -2.0, 3.0, 0.5, 0.0])
    reward = torch.zeros(6, 6)
    reward[:, 4] = torch.tensor(paid)
    batch = make_batch((turn >= 0).tolist(), turn=turn, reward=reward, group=[7, 7, 2, 2, 4, 4])
    value = torch.tensor(score, requires_grad=True)
    term = Term(loss=preference.bradley_terry, counted=preference.won)
    tokens, figures = term.loss(ScoredBatch(batch=batch, logprobs=value, entropy=value, value=value))
    loss = (tokens * aggregation(term.tokens(batch), batch.episode, "token_mean")).sum()
    loss.backward()
    winner, loser = np.array([0, 3, 4]), np.array([1, 2, 5])
    gap = score[winner, 4] - score[loser, 4]
    expected = np.zeros((6, 6))
    expected[winner, 4] = -(1 - 1 / (1 + np.exp(-gap))) / 3
    expected[loser, 4] = -expected[winner, 4]
    assert float(loss.detach()) == pytest.approx(np.log1p(np.exp(-gap)).mean(), abs=1e-12)
    assert np.abs(value.grad.numpy() - expected).max() < 1e-12
    assert figures["pairs_right"][term.tokens(batch)].tolist() == (gap > 0).tolist()


def test_an_answer_earns_the_score_of_the_conversation_up_to_it(tmp_path):
    with services_of(chain_policy(), tmp_path) as services:
        model = preference.RewardModel(services, Optimiser())
        with torch.no_grad():
            model.head[0].weight.copy_(torch.arange(16.0) - 7.0)  # it begins with zeros
        turns = tuple(replace(ANSWER, completion=replace(ANSWER.completion, ids=(n, 1)), reward=9.0) for n in (6, 7, 8))
        played = replace(EPISODE, turns=(*turns, replace(TURN, reward=9.0)))
        untrained = replace(played, id="user", seat="user", tags={"trained": False})
        scored, other = model([played, untrained], services, HERE)
        ids = [(3, 4, 6, 1), (3, 4, 6, 1, 3, 4, 7, 1), (3, 4, 6, 1, 3, 4, 7, 1, 3, 4, 8, 1)]
        alone = [torch.tensor([each]) for each in ids]
        with torch.no_grad():
            expected = [float(model.head(model.trunk(x, torch.ones_like(x).bool()))[0, -1]) for x in alone]
    assert [turn.reward for turn in scored.turns] == pytest.approx([*expected, 0.0], abs=1e-5)
    assert all(turn.terms == {"preference": turn.reward} for turn in scored.turns)
    assert len({round(value, 4) for value in expected}) == 3
    assert sum(turn.reward for turn in other.turns) == 0.0


def test_a_reward_model_can_recompute_its_activations(tmp_path):
    with services_of(chain_policy(), tmp_path) as services:
        model = preference.RewardModel(services, Optimiser(checkpointing=True))
        assert any(getattr(part, "gradient_checkpointing", False) for part in model.trunk.modules())


def test_no_credit_passes_from_one_answer_to_the_next():
    credit = zhongjing.recipe(zhongjing.Args(whiten=False, lam=1.0)).credit
    turn = torch.tensor([[-1, 0, 0, -1, 1, 1]] * 2)
    reward = torch.tensor([[0, 0, 2.0, 0, 0, 5.0], [0, 0, 2.0, 0, 0, -5.0]])
    value = torch.tensor([[0, 0.5, 0.25, 0, 1.0, 3.0]] * 2)
    advantage = credit(make_batch((turn >= 0).tolist(), turn=turn, reward=reward, value=value))
    assert advantage.tolist() == [[0, 1.5, 1.75, 0, 4.0, 2.0], [0, 1.5, 1.75, 0, -6.0, -8.0]]


def test_a_stage_without_a_reward_model_or_before_it_is_refused(tmp_path):
    args = zhongjing.Args(warmup=0, reward_steps=1, pairs=2, critic_steps=1, steps=1, instances=2, evaluate=1)
    recipe = zhongjing.recipe(args)
    run = {"task": TWICE.id, "quiet": True}
    with pytest.raises(RecipeError, match="set Recipe\\(reward_model="):
        loop.run(replace(recipe, reward_model=None), chain_policy(), folder=tmp_path / "none", **run)
    late = [stage for stage in recipe.stages if not isinstance(stage, preference.FitReward)]
    with pytest.raises(RecipeError, match="put a FitReward stage before"):
        loop.run(replace(recipe, stages=late), chain_policy(), folder=tmp_path / "late", **run)


def test_ppo_is_paid_the_score_before_other_rewards(tmp_path):
    recipe = zhongjing.recipe(zhongjing.Args(invalid_cost=0.1))
    with services_of(chain_policy(), tmp_path) as services:
        learner = Learner(recipe, services)
        model = learner.begin_reward()
        assert len(recipe.reward) == 1
        assert learner.rewards == [model, *recipe.reward]


def test_ppo_on_the_payments_of_the_task_has_no_reward_model():
    recipe = zhongjing.recipe(zhongjing.Args(reward="task"))
    assert recipe.reward_model is None
    assert [type(stage) for stage in recipe.stages].count(FitCritic) == 1
    assert not any(isinstance(stage, preference.FitReward) for stage in recipe.stages)


@pytest.mark.slow
@pytest.mark.parametrize("inverted", [False, True])
def test_the_reward_model_ranks_new_pairs_right_and_leads_ppo(tmp_path, monkeypatch, inverted):
    """Each pair is judged before the model has learned from it; a model of inverted ranks teaches to fail."""

    def upside_down(episodes):
        turned = [replace(each, turns=tuple(replace(t, reward=-t.reward) for t in each.turns)) for each in episodes]
        return ranked(turned)

    ranked = preference.ranked
    if inverted:
        monkeypatch.setattr(preference, "ranked", upside_down)
    args = zhongjing.Args(
        **{"reward_steps": 12, "pairs": 64, "reward_lr": 1e-2, "critic_steps": 2, "critic_lr": 1e-2},
        **{"steps": 12, "instances": 64, "lr": 5e-3, "evaluate": 100, "autocast": False},
    )
    recipe = zhongjing.recipe(args)
    recipe = replace(recipe, stages=[bc.sft(WARMUP), *recipe.stages[1:]])
    result = loop.run(recipe, chain_policy(), task=TWICE.id, folder=tmp_path / "run", quiet=True, save_seconds=1e9)
    rows = read_metrics(tmp_path / "run")
    fitted = [row for row in rows if "pairs_right" in row]
    assert len(fitted) == 12
    assert np.mean([row["pairs_right"] for row in fitted[-4:]]) > 0.8  # of some 100 pairs; chance is 0.5
    played = [row for row in rows if row["stage"] == "rl"]
    assert played[-1]["learned_return"] > played[0]["learned_return"] + 1.0
    before, after = (report.success.mean for report in result.reports.values())
    assert after < before - 0.3 if inverted else after > before + 0.1
