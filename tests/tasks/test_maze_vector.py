"""Many mazes at once answer as single ones in Gymnasium's vector environment do."""

import gymnasium
import numpy as np
import pytest

from lmgym.env.env import ResetNeeded
from lmgym.errors import InstanceError
from lmgym.tasks.maze.layout import MOVES

SAID = (*MOVES, "Move Up", "> move down", "Action: move left", "move", "", "move up\nmove right", "move \ud800")
STEPS, COUNT = 120, 6


def opened(task="Maze", **options):
    many = gymnasium.make_vec(f"lmgym/{task}Vector-v0", num_envs=COUNT, **options)
    single = gymnasium.make_vec(f"lmgym/{task}-v0", num_envs=COUNT, vectorization_mode="sync", **options)
    return many, single


def shown(answers):
    observations, *rest = answers
    return tuple(observations["text"]), *(part.tolist() for part in rest[:-1])


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"task": "MazePartial", "max_turns": 7},
        {"view": "goal", "rewards": "penalty", "explained": False, "split": "test"},
    ],
    ids=str,
)
def test_each_step_is_that_of_single_mazes(options):
    many, single = opened(**options)
    chance = np.random.default_rng(0)
    assert shown(many.reset(seed=3)) == shown(single.reset(seed=3))
    ended = 0
    for _ in range(STEPS):
        actions = [SAID[n] for n in chance.choice(len(SAID), COUNT, p=[0.2] * 4 + [0.2 / 7] * 7)]
        answers, expected = many.step(actions), single.step(actions)
        assert shown(answers) == shown(expected)
        info, wanted = answers[-1], expected[-1]
        assert info["valid"].tolist() == wanted["valid"].tolist()
        over = answers[2] | answers[3]
        ended += over.sum()
        assert ("score" in info) == ("score" in wanted) == over.any()
        if over.any():
            assert info["_score"].tolist() == wanted["_score"].tolist()
            assert info["score"][over].tolist() == wanted["score"][over].tolist()
            assert info["success"][over].tolist() == wanted["success"][over].tolist()
    assert ended > 1
    assert many.single_observation_space == single.single_observation_space


def test_a_reset_opens_an_instance_and_draws_on_where_no_seed_is_given():
    many, single = opened()
    assert shown(many.reset(options={"index": 4})) == shown(single.reset(options={"index": 4}))
    instance = {"instance": {"start": [5, 6]}}
    assert shown(many.reset(options=instance)) == shown(single.reset(options=instance))
    for seed in (7, [1, 2, 3, 4, 5, 6], None):
        assert shown(many.reset(seed=seed)) == shown(single.reset(seed=seed))
    assert many.reset(seed=7)[0] in many.observation_space


def test_errors_are_those_of_the_single_maze():
    with pytest.raises(InstanceError, match="unknown view 'all'"):
        gymnasium.make_vec("lmgym/MazeVector-v0", num_envs=2, view="all")
    with pytest.raises(InstanceError, match="unknown option 'size'"):
        gymnasium.make_vec("lmgym/MazeVector-v0", num_envs=2, size=3)
    with pytest.raises(ResetNeeded, match="call reset"):
        gymnasium.make_vec("lmgym/MazeVector-v0", num_envs=2).step(["", ""])
    many, _ = opened()
    many.reset(seed=0)
    with pytest.raises(ValueError, match="6 mazes need as many actions; got 7"):
        many.step([""] * 7)
    with pytest.raises(ValueError, match="6 mazes need as many seeds; got 2"):
        many.reset(seed=[1, 2])
