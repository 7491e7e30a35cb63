"""UI-S1: whose action is played, where an episode ends, and what its turns earn."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines.recipes import ui_s1
from lmgym.errors import RecipeError
from lmgym.policy.scripted import hinted
from lmgym.rollout.engine import Engine
from lmgym.rollout.replay import replay
from lmgym.train.collate import collate
from lmgym.train.parts.filters import drop_even
from lmgym.train.parts.planners import Patch, matches
from lmgym.train.parts.rewards import step_reward, to_go_by_expert
from lmgym.train.parts.tasks import Uniform
from lmgym.train.preflight import check
from lmgym.train.state import InstancePool
from tests.train import tt
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy

pytestmark = pytest.mark.usefixtures("chain")


def play(patches, policy=None):
    jobs = Uniform(6, tries=4).draw(0, InstancePool(task=SPEC.id, size=1000, stage="rl"))
    return list(Engine(planner=Patch(patches)).run(policy or chain_policy(), jobs))


@pytest.mark.parametrize("patches", [0, 1, 2])
def test_the_expert_acts_and_the_episode_ends_after_so_many_mismatches(patches):
    for episode in play(patches):
        assert [turn.action for turn in episode.turns] == list("acb")[: len(episode.turns)]
        wrong = [number for number, turn in enumerate(episode.turns) if not matches(turn)]
        if episode.stop == "patches":
            assert len(wrong) == patches + 1
            assert wrong[-1] == len(episode.turns) - 1
        else:
            assert episode.success
        assert all(turn.kind == "act" for turn in episode.turns)
        replay(episode)  # the record has the actions that were played


def test_a_patched_answer_is_trained_as_it_was_sampled_unless_its_group_has_like_returns():
    episodes = play(2)
    assert any(turn.action != turn.completion.text for each in episodes for turn in each.turns)
    batch = collate(episodes)
    assert int(batch.mask.sum()) == sum(len(turn.completion.ids) for each in episodes for turn in each.turns)
    first, second = (replace(each, group="g", turns=(replace(each.turns[0], reward=r),))
                     for each, r in zip(episodes, (0.0, 0.4), strict=False))  # fmt: skip
    assert drop_even([first, second], least=0.3).drop == {first.id, second.id}  # a deviation of 0.28
    assert not drop_even([first, second], least=0.28).drop


def test_rewards_are_summed_until_a_mismatch():
    (episode, *_) = play(2, hinted("demonstrator"))
    right, alike, other = "click('5')", "click('7')", "type('5', 'a')"
    texts = [(right, right), (alike, right), (other, right), (right, right), ("", right)]
    turn = episode.turns[0]
    turns = [
        replace(turn, completion=replace(turn.completion, text=own), info={"expert": expert}) for own, expert in texts
    ]
    assert [step_reward(each) for each in turns] == pytest.approx([1.0, 0.55, 0.19, 1.0, 0.0])
    earned = to_go_by_expert(replace(episode, turns=tuple(turns)), gamma=0.5)
    assert [each.reward for each in earned.turns] == pytest.approx([1.275, 0.55, 0.19, 1.0, 0.0])
    assert earned.turns[0].terms == {"to_go": earned.turns[0].reward}


def test_the_advantage_is_that_of_the_episode_and_of_the_turn():
    turn = torch.tensor([[0, 1], [0, 1], [0, -1]])
    reward = [[3.0, 1.0], [1.0, 2.0], [2.0, 0.0]]
    batch = make_batch((turn >= 0).tolist(), turn=turn, reward=reward)
    # turn 0: 3, 1, 2 have mean 2 and deviation 1; turn 1: 1 and 2 have mean 1.5 and deviation sqrt(1/2)
    expected = [[2.0, 1.0 - 0.5**0.5], [-2.0, -1.0 + 0.5**0.5], [0.0, 0.0]]
    assert ui_s1.credit(batch).tolist() == [pytest.approx(row, abs=1e-5) for row in expected]


def test_a_task_without_an_expert_is_refused(tmp_path):
    recipe = ui_s1.recipe(ui_s1.Args(warmup=0))
    with pytest.raises(RecipeError, match="neither demonstrator nor oracle, and this recipe corrects actions by one"):
        check(replace(recipe, stages=recipe.stages[2:3]), tt.SPEC.id, {}, tmp_path)
