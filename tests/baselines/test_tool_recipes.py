"""SimpleTIR and ReTool: which turns are trained on, what an episode earns, and where results stand in the loss."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines import grpo
from lmgym.baselines.recipes import retool, simpletir
from lmgym.policy.load import load_local
from lmgym.rollout.engine import Engine
from lmgym.train import source
from lmgym.train.collate import collate
from lmgym.train.parts.tasks import Uniform
from lmgym.train.state import InstancePool
from tests.components import bubblewrap
from tests.train.batches import make_batch
from tests.train.test_parts import TURN, episode

VOID = replace(TURN, info={"valid": False})


def group(*outcomes: float, void: int):
    """Return a group of two-turn episodes, of which the last `void` end in a void turn."""
    names = [f"e{n}" for n in range(len(outcomes))]
    whole = [
        episode(name, "g", 0.0, reward, root=name, info={"success": reward > 0})
        for name, reward in zip(names, outcomes, strict=True)
    ]
    first = len(whole) - void
    return [each if n < first else replace(each, turns=(TURN, VOID)) for n, each in enumerate(whole)]


def decisions(episodes, **args):
    """Return the episodes dropped and the turns masked by all filters in turn."""
    dropped, masked = set(), set()
    for each in simpletir.recipe(simpletir.Args(**args)).filter:
        found = each([trajectory for trajectory in episodes if trajectory.id not in dropped])
        dropped |= found.drop
        masked |= found.mask
    return dropped, masked


@pytest.mark.parametrize(
    ("void", "dropped", "masked"),
    [
        ("episode", set(), {("e3", 0), ("e3", 1)}),
        ("turn", set(), {("e3", 1)}),
        ("drop", {"e3"}, set()),
        ("train", set(), set()),
    ],
)
def test_a_void_turn_takes_its_episode_out_of_training_but_not_out_of_its_group(void, dropped, masked):
    assert decisions(group(1.0, 0.0, 1.0, 0.0, void=1), void=void) == (dropped, masked)


def test_the_failure_of_a_void_turn_counts_in_the_mean_of_its_group():
    """Returns 1, 1, 0 and a void 0: the mean is 1/2 as long as the void episode stays in the statistics."""
    credit = simpletir.recipe(simpletir.Args()).credit
    kept = make_batch([[0, 1]] * 4, reward=[[0, 1.0], [0, 1.0], [0, 0.0], [0, 0.0]])
    without = make_batch([[0, 1]] * 3, reward=[[0, 1.0], [0, 1.0], [0, 0.0]])
    assert torch.equal(credit(kept), grpo.credit(kept, std=True))
    assert credit(kept)[0, 1] > credit(without)[0, 1]


def test_groups_too_easy_or_too_hard_are_dropped():
    assert len(decisions(group(*[1.0] * 10, 0.0, void=0))[0]) == 11  # ten of eleven
    assert len(decisions(group(1.0, *[0.0] * 10, void=0))[0]) == 11
    assert not decisions(group(1.0, 0.0, 0.0, void=0))[0]


def test_cut_episodes_are_masked_while_four_others_remain():
    episodes = group(1.0, 0.0, 1.0, 0.0, 0.0, void=0)
    cut = [*episodes[:4], replace(episodes[4], truncated=True)]
    assert simpletir.mask_overlong(cut).mask == {("e4", 0), ("e4", 1)}
    assert not simpletir.mask_overlong([replace(each, truncated=True) for each in cut]).mask
    assert not simpletir.mask_overlong([*cut[1:]]).mask  # three others


def test_retool_pays_for_the_outcome_alone_and_neither_imitates_results_nor_stays_near_the_start():
    rewards = [0.3, 0.2]
    for won, last in ((True, 1.0), (False, -1.0)):
        changed = retool.signed_outcome(episode("a", "g", *rewards, info={"success": won}))
        assert [turn.reward for turn in changed.turns] == [0.0, last]
        assert changed.turns[-1].terms == {"answer": last}
    cut = retool.signed_outcome(episode("a", "g", 0.0, truncated=True, info={"success": False}))
    assert cut.reward == -1.0
    assert not retool.signed_outcome(replace(cut, turns=())).turns  # the first prompt did not fit into the context
    args = retool.Args()
    recipe = retool.recipe(args)
    assert recipe.stages[0].observation_weight == 0.0
    assert recipe.reward_kl is None
    assert [term.name for term in recipe.loss] == [term.name for term in retool.ppo.recipe(args).loss]


def test_results_and_problems_are_in_no_loss():
    bubblewrap()
    policy = load_local("tiny:1m?words=python_math", device="cpu")
    with Engine() as engine:
        task = "lmgym/PythonMath-v0"
        jobs = Uniform(2).draw(0, InstancePool(task=task, size=100, options={"level": 1}))
        played = source.demonstrated(engine, policy, jobs)
    batch = collate(played, trained="given")
    for row, each in enumerate(played):
        trained = policy.tokenizer.decode(batch.ids[row][batch.mask[row]].tolist())
        assert "<code>" in trained
        assert "<interpreter>" not in trained
        assert trained.count("boxed") == 1  # the answer's, not the prompt's
        assert "<interpreter>" in each.turns[1].observation.text
