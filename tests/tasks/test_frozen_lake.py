"""Frozen Lake: maps, slips, RAGEN's turns, and the exact figures of the best and of a random player."""

import numpy as np
import pytest

from lmgym.env.registry import build, specs
from lmgym.tasks.frozen_lake.lake import ACTIONS, Lake, best_play, lake

CORRIDOR = Lake(3, frozenset({(0, 1), (2, 1)}), (1, 0), (1, 2))  # P _ G between two holes


def opened(task="frozen_lake", *, index=0, seed=0, **options):
    env = build(task, split="test", **options)
    return env, env.reset(seed=seed, options={"index": index})[0]["text"]


def random_win(made, steps, *, slippery):
    """Return the probability that uniformly random steps reach the goal, by propagating the distribution."""
    places, won = {made.start: 1.0}, 0.0
    for _ in range(steps):
        after = {}
        for cell, share in places.items():
            for action in range(4):
                outcomes = made.outcomes(cell, action, slippery=slippery)
                for tile in outcomes:
                    after[tile] = after.get(tile, 0.0) + share / 4 / len(outcomes)
        won += after.pop(made.goal, 0.0)
        places = {tile: share for tile, share in after.items() if tile not in made.holes}
    return won


@pytest.mark.parametrize("split", ["train", "test"])
def test_every_map_can_be_crossed(split):
    maps = [lake(split, index, 4) for index in range(200)]
    won = [best_play(made, slippery=False, turns=16, steps=16, per_turn=1).value[16, 16] for made in maps]
    assert all(values[made.start[0] * 4 + made.start[1]] == 1.0 for values, made in zip(won, maps, strict=True))
    assert all(made.start != made.goal and not {made.start, made.goal} & made.holes for made in maps)
    assert 0.1 < np.mean([len(made.holes) / 16 for made in maps]) < 0.2  # fewer than a fifth: some maps are drawn again


def test_a_slip_goes_to_either_side_as_the_best_play_of_a_corridor_knows():
    assert CORRIDOR.outcomes((1, 0), ACTIONS.index("Right"), slippery=True) == [(2, 0), (1, 1), (0, 0)]
    assert CORRIDOR.outcomes((1, 0), ACTIONS.index("Left"), slippery=False) == [(1, 0)]  # the edge stops
    # two steps Right: each goes right one time in three; in the middle the others are holes
    plan = best_play(CORRIDOR, slippery=True, turns=2, steps=2, per_turn=1)
    assert plan.value[2, 2, 3] == pytest.approx(1 / 9)
    # one answer of two actions is chosen in advance, and wins as often here
    assert best_play(CORRIDOR, slippery=True, turns=1, steps=2, per_turn=2).value[1, 2, 3] == pytest.approx(1 / 9)


@pytest.mark.parametrize(
    ("task", "turns", "steps", "most", "slippery"),
    [("FrozenLake", 30, 30, 1, True), ("FrozenLakeFirm", 30, 30, 1, False), ("FrozenLakeRAGEN", 5, 10, 5, True)],
)
def test_the_references_are_the_exact_means_over_the_test_split(task, turns, steps, most, slippery):
    references = specs()[f"lmgym/{task}-v0"].references
    maps = [lake("test", index, 4) for index in range(200)]
    plans = [best_play(made, slippery=slippery, turns=turns, steps=steps, per_turn=most) for made in maps]
    best = [plan.value[turns, steps, m.start[0] * 4 + m.start[1]] for plan, m in zip(plans, maps, strict=True)]
    assert np.mean(best) == pytest.approx(references["oracle"], abs=5e-4)
    chance = [random_win(made, turns, slippery=slippery) for made in maps]  # one action a turn
    assert np.mean(chance) == pytest.approx(references["random"], abs=5e-4)


def test_the_oracle_plans_for_the_turns_that_it_has():
    first = {}
    for limit in (5, 30):  # on this map the best first step depends on it
        env, _ = opened(index=4, max_turns=limit)
        made = env.unwrapped.lake
        plan = best_play(made, slippery=True, turns=limit, steps=limit, per_turn=1)
        (action,) = plan.sequences[plan.answer[limit, limit, made.start[0] * made.side + made.start[1]]]
        first[limit] = next(env.unwrapped.oracle())
        assert first[limit] == ACTIONS[action]
    assert first[5] != first[30]


def test_the_oracle_plans_at_most_thirty_steps_ahead():
    """The cost of a plan grows with the square of its steps, and a client of a server asks for 10,000."""
    env, _ = opened(index=4, max_turns=10_000)
    advice = env.unwrapped.oracle()
    assert next(advice) == next(opened(index=4)[0].unwrapped.oracle())
    env.step(next(advice))
    assert env.unwrapped.left == 9_999


def test_the_tries_of_a_group_slip_alike():
    def walk(seed):
        env, _ = opened(seed=seed)
        return env.step("Left")[0]["text"]

    assert walk(3) == walk(3)
    assert len({walk(seed) for seed in range(12)}) > 1


def test_a_hole_ends_the_episode_with_0_and_the_goal_with_1():
    env, _ = opened("FrozenLakeFirm-v0")
    env.unwrapped.lake, env.unwrapped.cell = CORRIDOR, (1, 0)
    assert env.step("Right")[0]["text"] == "_ O _\n_ P G\n_ O _"
    observation, reward, terminated, _, info = env.step("right")
    assert (observation["text"], reward, terminated, info["score"]) == ("_ O _\n_ _ √\n_ O _", 1.0, True, 1.0)
    env.reset(seed=0, options={"index": 0})
    env.unwrapped.lake, env.unwrapped.cell = CORRIDOR, (1, 1)
    observation, reward, terminated, _, info = env.step("Up")
    assert (observation["text"], reward, terminated, info["score"]) == ("_ X _\n_ _ G\n_ O _", 0.0, True, 0.0)


def turns(*answers):
    env, _ = opened("FrozenLakeRAGEN-v0", slippery=False)
    env.unwrapped.lake = Lake(4, frozenset(), (0, 0), (3, 3))
    env.unwrapped.cell = (0, 0)
    return [env.step(answer) for answer in answers]


def test_ragens_answers_hold_several_actions():
    first, last = turns(
        "<think>go</think><answer>Right || fly || down</answer>", "<answer>down||down||right||right</answer>"
    )
    assert first[0]["text"].startswith("Reward:\n0\n\nTurn 2:\nState:\n_ _ _ _\n_ P _ _\n_ _ _ _\n_ _ _ G\n")
    assert "You have 8 actions left." in first[0]["text"]
    assert (last[1], last[2], last[4]["score"]) == (1.0, True, 1.0)


def test_an_answer_without_an_action_costs_a_tenth_and_ten_actions_or_five_answers_are_all():
    (_, reward, _, _, info), *_ = turns("Right")
    assert (reward, info["valid"], info["reward_terms"]) == (-0.1, False, {"reward": 0.0, "format": -0.1})
    five = "<answer>" + "Left || " * 7 + "Left</answer>"  # only five are played
    assert [step[2] for step in turns(five, five)] == [False, True]
    assert [step[2] for step in turns(*["nothing"] * 5)] == [False] * 4 + [True]
