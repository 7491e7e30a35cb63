"""Exact values beside ArCHer's critic."""

from __future__ import annotations

import random

import pytest

from lmgym.baselines.archer import UtteranceEstimate
from lmgym.baselines.curves import players
from lmgym.baselines.curves.exact_archer import correlation, exact_values, quality, value
from lmgym.env.registry import build

TASK = "<|user|>I think of a whole number from 1 to 16. Answer with one number; I say higher, lower or correct."


def test_exact_values_are_the_chances_of_the_player_that_the_starts_imitate(monkeypatch):
    monkeypatch.setattr(players, "CHANCE", random.Random(0))
    wins = 0
    env = build("lmgym/GuessNumber-v0", highest=16, max_turns=4)
    for index in range(400):
        observation, _ = env.reset(seed=0, options={"index": index})
        messages, done = [{"content": observation["text"]}], False
        while not done:
            guess = players.guess_that_fits(messages)
            observation, reward, terminated, truncated, _ = env.step(guess)
            messages += [{"content": guess}, {"content": observation["text"]}]
            wins, done = wins + reward, terminated or truncated
    env.close()
    assert abs(wins / 400 - value(16, 4)) < 0.1


def test_guesses_are_judged_by_what_the_answers_allow():
    before = f"{TASK}<|assistant|>8<|end|><|user|>higher<|assistant|>12<|end|><|user|>lower<|assistant|>"
    assert exact_values(before, "10", 4) == (quality(3, 1, 2), value(3, 2)) == (1.0, pytest.approx(7 / 9))
    assert exact_values(before, "9", 4)[0] == pytest.approx(2 / 3)
    assert exact_values(before, "12", 4)[0] == exact_values(before, "ten", 4)[0] == pytest.approx(1 / 3)
    assert exact_values(f"{TASK}<|assistant|>", "8", 1) == (1 / 16, 1 / 16)


def test_the_correlation_is_within_observations():
    def estimates(*qualities):
        return [UtteranceEstimate(n, 0, (n // 2,), each, 0.0) for n, each in enumerate(qualities)]

    truth = estimates(0.1, 0.2, 0.8, 0.9)
    assert correlation(estimates(5.0, 6.0, 1.0, 2.0), truth) == pytest.approx(1.0)
    assert correlation(estimates(6.0, 5.0, 2.0, 1.0), truth) == pytest.approx(-1.0)
    assert correlation(estimates(0.0, 0.0, 1.0, 1.0), truth) is None
