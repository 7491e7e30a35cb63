"""The base class and its turn limit behave as Gymnasium's own wrappers and generators."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from gymnasium.utils import seeding

from lmgym.env.registry import build, find
from lmgym.errors import InstanceError

from .games import RACE

GUESS = "lmgym/GuessNumber-v0"


@pytest.fixture
def env():
    with gymnasium.make(GUESS, render_mode="ansi") as made:
        yield made


@pytest.mark.parametrize("use", [lambda env: env.step("1"), lambda env: env.render()])
def test_using_an_environment_before_reset_is_gymnasiums_error_and_ours(env, use):
    with pytest.raises(gymnasium.error.ResetNeeded, match=r"lmgym/GuessNumber-v0: no episode is open; call reset\(\)"):
        use(env)
    with pytest.raises(InstanceError):
        use(env)


def test_a_step_after_the_end_needs_a_reset(env):
    env.reset(seed=0, options={"index": 0})
    *_, terminated, _, _ = env.step(next(env.unwrapped.oracle()))
    assert terminated
    assert env.render() == "Correct!"
    with pytest.raises(gymnasium.error.ResetNeeded, match="the episode is over"):
        env.step("1")
    env.reset()
    env.step("1")


@pytest.mark.parametrize("action", [None, 3, b"3", ["3"]])
def test_an_action_that_is_no_string_is_refused(env, action):
    env.reset(seed=0)
    with pytest.raises(InstanceError, match="an action is a str; got"):
        env.step(action)
    env.step("3")


def test_a_vector_is_told_to_reset_as_well():
    envs = gymnasium.make_vec(GUESS, num_envs=2, vectorization_mode="sync")
    with pytest.raises(gymnasium.error.ResetNeeded):
        envs.step(["1", "2"])
    envs.close()


def test_chance_and_an_index_drawn_from_it_are_gymnasiums_for_the_seed(env):
    task = env.unwrapped
    for seed in (0, 7, 2**70):
        env.reset(seed=seed, options={"index": 0})
        assert env.np_random_seed == seed
        assert env.np_random.bit_generator.state == seeding.np_random(seed)[0].bit_generator.state
    state = task.np_random.bit_generator.state
    env.reset(options={"index": 1})
    assert task.np_random.bit_generator.state == state  # no seed: chance goes on
    _, info = env.reset(seed=11)
    assert info["instance"] == f"train/{seeding.np_random(11)[0].integers(1_000_000)}"


def test_chance_made_late_is_in_a_copy_as_in_the_original_and_can_be_set(env):
    env.reset(seed=3, options={"index": 0})
    copies = [copy.deepcopy(env.unwrapped), pickle.loads(pickle.dumps(env.unwrapped))]
    first = env.np_random.random()
    assert [other.np_random.random() for other in copies] == [first, first]
    env.reset(seed=3, options={"index": 0})
    env.unwrapped.np_random = np.random.default_rng(5)
    assert env.np_random.random() == np.random.default_rng(5).random()
    env.reset(seed=4, options={"index": 0})
    env.unwrapped.reseed(6)
    assert env.np_random.random() == np.random.default_rng(6).random()


@pytest.mark.parametrize("seed", [-1, 1.5, "7"])
def test_what_is_no_seed_is_refused_as_gymnasium_does(seed):
    reference = gymnasium.make("CartPole-v1")
    with pytest.raises(gymnasium.error.Error) as theirs:
        reference.reset(seed=seed)
    with pytest.raises(type(theirs.value)) as ours:
        build(RACE).reset(seed=seed)
    assert str(ours.value) == str(theirs.value)


def test_gymnasiums_own_limit_scores_the_cut_episode():
    for options in ({"max_episode_steps": 2}, {"max_turns": 2}, {"max_turns": 5, "max_episode_steps": 2}):
        with gymnasium.make(GUESS, **options) as env:
            assert env.spec.max_episode_steps == 2
            env.reset(seed=0, options={"index": 0})
            assert "score" not in env.step("no number")[-1]
            *_, terminated, truncated, info = env.step("no number")
            assert (terminated, truncated, info["score"], info["success"]) == (False, True, 0.0, False)


def test_the_rules_name_the_limit_whichever_option_sets_it():
    for limit in ("max_episode_steps", "max_turns"):
        with gymnasium.make("lmgym/TwentyQuestions-v0", **{limit: 7}) as env:
            assert "You have 7 questions" in env.reset(seed=0)[0]["text"]


@pytest.mark.parametrize("limit", ["max_episode_steps", "max_turns"])
def test_an_episode_that_terminates_at_its_limit_is_not_truncated(limit):
    with gymnasium.make(GUESS, **{limit: 1}) as env:
        env.reset(seed=0, options={"index": 0})
        *_, terminated, truncated, info = env.step(next(env.unwrapped.oracle()))
        assert (terminated, truncated, info["score"]) == (True, False, 1.0)


def test_tools_see_the_turn_limit_against_which_other_seats_do_not_count():
    limit = find(GUESS).max_turns
    assert gymnasium.spec(GUESS).max_episode_steps == limit
    with gymnasium.make(GUESS) as env, gymnasium.make(env.spec) as again:
        assert type(env).__name__ == "TimeLimit"
        assert env.env is env.unwrapped  # no other wrapper
        assert env.spec.max_episode_steps == again.spec.max_episode_steps == limit
    more = limit + 1
    for options in (
        {"max_turns": more},
        {"max_episode_steps": more},
        {"max_turns": more + 1, "max_episode_steps": more},
    ):
        with gymnasium.make(GUESS, **options) as env, gymnasium.make(env.spec) as again:
            assert env.spec.max_episode_steps == env.max_turns == again.max_turns == more
            env.reset(seed=0)
            for turn in range(more):
                assert env.step("no number")[3] == (turn == limit)
    with gymnasium.make(GUESS, others="caller") as env:
        assert env.spec.max_episode_steps is None


@pytest.mark.parametrize("mode", ["human", "rgb_array", "ansi_list", ""])
def test_an_unknown_render_mode_is_refused(mode):
    with pytest.raises(InstanceError, match=f"unknown render_mode '{mode}' for {GUESS}; choose 'ansi' or None"):
        gymnasium.make(GUESS, render_mode=mode)


def test_seeds_and_indices_may_be_of_numpy_and_an_environment_pickled_before_its_first_reset(env):
    expected = env.reset(seed=3, options={"index": 4})
    assert env.reset(seed=np.int64(3), options={"index": np.uint8(4)}) == expected
    assert type(env.np_random_seed) is int
    copy = pickle.loads(pickle.dumps(env))
    assert copy.reset(seed=3) == env.reset(seed=3)
    assert copy.spec == env.spec
