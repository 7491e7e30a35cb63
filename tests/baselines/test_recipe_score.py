"""SCoRe: two attempts of Frozen Lake, credit of each attempt, and the stage that holds the first one."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines.recipes import score
from lmgym.env.registry import build
from lmgym.rollout.context import Window
from lmgym.train import loop
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.log import read_metrics
from lmgym.train.parts.turns import by_number
from lmgym.train.schedule import StageProgress, Until
from lmgym.train.stages import Rl
from tests.train.batches import make_batch
from tests.train.test_parts import EPISODE, TURN
from tests.train.victim import toy_policy

TWICE = {"protocol": "twice", "slippery": False}
HERE = StageProgress(0, 0.0)


def pair(first: float, second: float):
    return replace(EPISODE, turns=(replace(TURN, reward=first), replace(TURN, reward=second)))


def stages(**args):
    recipe = score.recipe(score.Args(**args))
    return recipe, next(stage for stage in recipe.stages if stage.name == "first").parts


def test_the_second_attempt_is_scored_and_the_first_is_a_figure():
    env = build("frozen_lake", **TWICE)
    for index in range(3):
        env.reset(options={"index": index})
        way = next(iter(env.unwrapped.oracle()))
        texts = []
        for first, second in (("Up", way), (way, "Up"), (way, way), ("", "no way")):
            env.reset(options={"index": index})
            told = env.step(first)
            texts.append(told[0]["text"])
            assert (told[1], told[2]) == (float(first == way), False)
            _, reward, done, _, info = env.step(second)
            assert (reward, done, info["score"]) == (float(second == way), True, float(second == way))
            assert info["figures"] == {"first_attempt": float(first == way)}
            assert info["reward_terms"] == {"attempt": float(second == way)}
        assert len(set(texts)) == 1  # nothing tells how the first attempt ended
    env.close()


def test_the_bonus_is_the_second_attempts_alone():
    recipe, first = stages(alpha=10.0)
    expected = {(0, 0): (0, 0), (0, 1): (0, 11), (1, 0): (1, -10), (1, 1): (1, 1)}
    for attempts, rewards in expected.items():
        (shaped,) = recipe.reward[0]([pair(*attempts)], None, HERE)
        assert tuple(turn.reward for turn in shaped.turns) == rewards
        (held,) = first.reward[0]([pair(*attempts)], None, HERE)
        assert tuple(turn.reward for turn in held.turns) == (0, attempts[1])


def test_a_good_first_attempt_is_not_blamed_for_what_it_leaves_to_improve():
    rewards = torch.tensor([[0, 0.0, 0, 0], [0, 0, 0, 11], [0, 1, 0, -10], [0, 1, 0, 1]])  # of the four pairs above
    batch = make_batch([[0, 1, 0, 1]] * 4, turn=[[-1, 0, -1, 1]] * 4, reward=rewards)
    assert by_number(batch)[:, 1].tolist() == [-0.5, -0.5, 0.5, 0.5]
    assert by_number(batch)[:, 3].tolist() == [-0.5, 10.5, -10.5, 0.5]
    whole = batch.returns()  # credited with sums, the first attempt would have learned to fail
    assert whole[2:].mean() < whole[:2].mean()


def test_the_strong_divergence_is_of_first_attempts_in_the_first_stage():
    recipe, first = stages()
    batch = make_batch([[0, 1, 0, 1]], turn=[[-1, 0, -1, 1]])
    (hold,) = (term for term in first.loss if term.name == "first_kl")
    assert hold.tokens(batch).tolist() == [[False, True, False, False]]
    assert "first_kl" not in [term.name for term in recipe.loss]
    logprobs = torch.full((1, 4), 0.5, requires_grad=True)
    losses, _ = hold.loss(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros(1, 4)))
    losses.sum().backward()
    assert logprobs.grad.tolist() == [[0.0, 0.5, 0.0, 0.0]]  # the second attempt is free


def test_both_stages_share_a_time_limit_and_a_context():
    recipe = score.recipe(score.Args(first_steps=20, steps=60, seconds=80.0)).seeing(Window(1))
    first, second = (stage for stage in recipe.stages if isinstance(stage, Rl))
    assert (first.until, second.until) == (Until(steps=20, seconds=20.0), Until(steps=60, seconds=60.0))
    assert recipe.context == first.parts.context == Window(1)
    alone = next(stage for stage in score.recipe(score.Args(first_steps=0, seconds=9.0)).stages if stage.name == "rl")
    assert alone.until.seconds == 9.0
    first, second = (each for each in score.recipe(score.Args(steps=0, seconds=9.0)).stages if isinstance(each, Rl))
    assert (first.until.seconds, second.until.seconds) == (9.0, 0.0)


@pytest.mark.parametrize(("kl", "moves"), [(1e3, False), (0.0, True)])
def test_a_strong_divergence_holds_the_first_attempt_in_the_first_stage(tmp_path, kl, moves):
    """Attempts of a toy policy earn nothing, so a made-up reward of the second attempt drives the weights."""
    args = score.Args(warmup=0, first_steps=6, steps=0, instances=2, group=4, evaluate=1, minibatches=1, autocast=False)
    recipe = score.recipe(replace(args, lr=3e-3, kl=0.0, first_kl=kl))

    def paid(trajectories, services, progress):
        """Pay second attempts, and by mistake first ones too, for an even first token."""
        return [
            replace(t, turns=tuple(replace(u, reward=float(u.completion.ids[0] % 2)) for u in t.turns))
            for t in trajectories
        ]

    found = next(stage for stage in recipe.stages if stage.name == "first")
    learned = replace(found, parts=replace(found.parts, reward=[paid]))
    recipe = replace(recipe, stages=[learned if stage is found else stage for stage in recipe.stages])
    loop.run(recipe, toy_policy(), task="frozen_lake", options=TWICE, folder=tmp_path / "run", quiet=True)
    rows = [row for row in read_metrics(tmp_path / "run") if row["stage"] == "first"]
    assert len(rows) == 6
    assert (rows[-1]["first_kl"] > 0.01) is moves, [row["first_kl"] for row in rows]
    assert rows[-1]["kl_start"] > 0.01  # of both attempts: the second is free
