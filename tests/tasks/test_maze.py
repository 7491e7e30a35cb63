"""LMRL-Gym's maze: layout, texts, rewards, and exact figures of three players."""

import math

import pytest

from lmgym.env.golden import play
from lmgym.env.registry import build
from lmgym.tasks.maze.layout import FREE, GOAL, MOVES, STARTS, belief_values, distances, moved, observed

TASKS = ("lmgym/Maze-v0", "lmgym/MazePartial-v0")


def opened(task="maze", *, start=(5, 6), **options):
    env = build(task, **options)
    observation, _ = env.reset(seed=0, options={"instance": {"start": list(start)}})
    return env, observation["text"].rpartition("\n\n")[2]


def returns(task, player):
    """Return the return of every start, played by `player(env)`."""
    env = build(task, split="test")
    return [math.fsum(play(env, player, index=index).rewards) for index in range(len(STARTS))]


def test_the_layout_is_the_double_t():
    assert (len(FREE), len(STARTS), GOAL in STARTS) == (26, 25, False)
    assert sum(distances()[cell] for cell in STARTS) / 25 == 7.84
    assert max(distances().values()) == 12


def test_a_fully_observed_episode_reads_as_the_release_writes_it():
    env, first = opened()
    assert first == "The goal is at 8, 6. Your current position is at 5, 6. There is a wall above you.\n"
    steps = [env.step(action) for action in ("move down\n", "move down", "move down")]
    corridor = "There are walls to your right, to your left.\n"
    assert [step[0]["text"] for step in steps] == [
        f"The goal is at 8, 6. Your current position is at 6, 6. {corridor}",
        f"The goal is at 8, 6. Your current position is at 7, 6. {corridor}",
        "Success",
    ]
    assert [step[1] for step in steps] == [-1.0, -1.0, 0.0]
    *_, terminated, truncated, info = steps[-1]
    assert (terminated, truncated, info["score"]) == (True, False, 1.0)


def test_two_digits_are_written_apart():
    assert "at 1, 1 0. There are walls above you, below you." in opened(start=(1, 10))[1]


@pytest.mark.parametrize(("view", "text"), [("walls", ""), ("goal", "The goal is at 8, 6. ")])
def test_less_can_be_shown(view, text):
    walls = "There are walls to your left, above you, below you.\n"
    assert opened(start=(1, 1), view=view)[1] == text + walls


@pytest.mark.parametrize(
    ("action", "cost", "valid"),
    [
        *((action, -4.0, False) for action in ("hello", "", "Move", "move left then move right", "left")),
        ("move  up, please", -4.0, False),
        ("MOVE UP", -1.0, True),  # into a wall
    ],
)
def test_an_invalid_action_costs_four_a_wall_one_and_neither_moves(action, cost, valid):
    env, first = opened()
    observation, reward, terminated, _, info = env.step(action)
    assert (observation["text"], reward, terminated, info["valid"]) == (first, cost, False, valid)


@pytest.mark.parametrize(("rewards", "expected"), [("goal", [-1.0, 0.0, 1.0]), ("penalty", [-100.0, -1.0, 1.0])])
def test_the_release_has_other_schemes_of_reward(rewards, expected):
    env, _ = opened(start=(6, 6), rewards=rewards)
    assert [env.step(action)[1] for action in ("hello", "move down", "move down")] == expected


def test_the_turn_limit_truncates_with_score_0():
    env, _ = opened(max_turns=2)
    env.step("move up")
    *_, terminated, truncated, info = env.step("move up")
    assert (terminated, truncated, info["score"], info["success"]) == (False, True, 0.0, False)


def test_the_oracle_and_the_partial_demonstrator_return_the_optimum_of_what_they_see():
    for task in TASKS:
        assert sum(returns(task, lambda env: env.oracle())) / 25 == pytest.approx(-6.84, abs=1e-12)
    expected = -(sum(len(belief) * belief_values()[belief] for belief in observed(STARTS)) / 25 - 1)
    assert expected == pytest.approx(-7.24, abs=1e-9)
    assert sum(returns(TASKS[1], lambda env: env.demonstrator())) / 25 == pytest.approx(expected, abs=1e-9)


def test_a_random_walker_earns_what_the_card_says():
    success = total = 0.0
    for start in STARTS:
        places = {start: 1.0}
        for _ in range(100):
            after = dict.fromkeys(FREE, 0.0)
            for cell, share in places.items():
                for move in MOVES:
                    after[moved(cell, move)] += share / 4
            arrived = after.pop(GOAL)
            success, total = success + arrived / 25, total - (sum(places.values()) - arrived) / 25
            places = after
    assert success == pytest.approx(0.2468, abs=5e-5)
    assert total == pytest.approx(-85.14, abs=5e-3)


def test_without_explanation_the_first_observation_is_like_the_others():
    env = build("maze", explained=False)
    first, _ = env.reset(seed=0, options={"instance": {"start": [5, 6]}})
    assert first["text"] == "The goal is at 8, 6. Your current position is at 5, 6. There is a wall above you.\n"
