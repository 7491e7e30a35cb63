"""Recommender: the mindset's rules, the two rewards, the user's protocol, and what instructions are worth."""

import math
import statistics
from functools import partial

import episodes
import numpy as np
import pytest

from lmgym.env.golden import play
from lmgym.env.registry import build
from lmgym.tasks.recommender.mindset import Mindset


class Fixed:
    """Chance that always draws the same number."""

    def __init__(self, number):
        self.number = number

    def random(self):
        return self.number

    def integers(self, high):
        return 0


opened = partial(episodes.opened, "recommender", split="test")


def random_slates(task):
    chance = np.random.default_rng(1)
    while True:
        yield "SHOW " + ", ".join(str(number + 1) for number in chance.permutation(10)[:3])


def figures(player, **options):
    env = build("recommender", split="test", **options)
    return [play(env, player, index=index, seed=index).infos[-1] for index in range(200)]


def test_unshuffled_rounds_have_the_same_items_in_one_order_of_categories():
    for index in range(10):
        fixed, mixed = (opened(index, shuffled=each).unwrapped.rounds for each in (False, True))
        assert len({tuple(item.category for item in items[:8]) for items in fixed}) == 1
        assert [set(map(repr, items)) for items in fixed] == [set(map(repr, items)) for items in mixed]
        assert fixed != mixed


def test_liked_items_are_clicked_until_they_tire():
    mind = Mindset(["music", "travel", "comedy"])
    assert mind.clicks(["music", "music", "music", "music", "sports"]) == [True, True, True, False, False]


def test_the_hazard_is_the_sigmoid_of_the_mood():
    mind = Mindset(["music", "travel", "comedy"], mood=0.0)
    # no clicks: mood = -0.5, hazard = sigmoid(-1 + 1.5) = 0.6225
    hazard = 1 / (1 + math.exp(-0.5))
    assert mind.live_on([False] * 3, Fixed(hazard - 1e-9))[0]
    mind.mood = 0.0
    leaves, instruction = mind.live_on([False] * 3, Fixed(hazard + 1e-9))
    assert not leaves
    assert instruction.startswith("Enough ")
    mind.mood = 0.5
    assert mind.live_on([True, True, False], Fixed(0.999)) == (False, "")  # mood 0.417: nobody leaves


def test_the_oracle_keeps_everybody_and_instructions_help_a_player_who_reads_them():
    def mean(results, name="score"):
        return statistics.mean(info[name] if name == "score" else info["figures"][name] for info in results)

    assert mean(figures(lambda task: task.oracle())) == 1.0
    reading = figures(lambda task: task.demonstrator())
    deaf = figures(lambda task: task.demonstrator(), instructions=False)
    blind = figures(random_slates)
    assert (mean(reading), mean(reading, "retention")) == (pytest.approx(0.848, abs=5e-4), pytest.approx(0.805))
    assert (mean(deaf), mean(deaf, "retention")) == (pytest.approx(0.781, abs=5e-4), pytest.approx(0.72))
    assert mean(blind) == pytest.approx(0.220, abs=5e-4)


@pytest.mark.parametrize(
    "action",
    ["", "SHOW", "SHOW 1, 2", "SHOW 1, 1, 2", "SHOW 0, 1, 2", "SHOW 1, 2, 11", "1 click\nLEAVE", "SHOW 1," * 300_000],
)
def test_an_invalid_slate_costs_a_round_and_earns_nothing(action):
    env = opened()
    observation, reward, terminated, _, info = env.step(action)
    assert (reward, terminated, info["valid"]) == (0.0, False, False)
    assert "The user saw nothing." in observation["text"]


@pytest.mark.parametrize(("rewards", "earned"), [("session", 1.0), ("clicks", 2 / 3)])
def test_a_model_as_user_speaks_the_protocol(rewards, earned):
    env = build("recommender", others="caller", rewards=rewards)
    env.reset(seed=0, options={"index": 0})
    assert env.step("show: 4, 1, 9")[4]["seat"] == "user"
    observation, _, _, _, info = env.step("4 click\n1: skip\n9 CLICK\nINSTRUCTION: more music\nother words")
    assert info["seat_rewards"]["agent"] == pytest.approx(earned)
    assert observation["text"].count("clicked") == 2
    assert 'The user says: "more music"' in observation["text"]
    env.step("SHOW 1, 2, 3")
    *_, terminated, _, info = env.step("1 click\nLEAVE")
    assert terminated
    assert info["score"] == pytest.approx(1 / 12)
    assert info["figures"]["session_length"] == 1.0
