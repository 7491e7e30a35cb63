"""Runs with one thing changed: their commands and table, and the exact values beside ArCHer's critic."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lmgym.baselines.archer import UtteranceEstimate
from lmgym.baselines.curves import causes, night
from lmgym.baselines.curves.exact_archer import correlation, judge, quality, value
from lmgym.baselines.curves.players import guess_that_fits
from lmgym.cli.train import settings
from lmgym.env.registry import build

TASK = "<|user|>I think of a whole number from 1 to 16. Answer with one number; I say higher, lower or correct."


@pytest.mark.parametrize("change", causes.CHANGES, ids=lambda each: each.name)
def test_a_changed_run_differs_in_what_is_changed_alone(change, tmp_path):
    unchanged = settings(night.words(causes.TASK, 1, change.learner, tmp_path)).arguments
    changed = settings(causes.words(change, 1, tmp_path)).arguments
    options = {word.removeprefix("--no-").removeprefix("--").replace("-", "_") for word in change.words if "--" in word}
    assert {name for name in changed if changed[name] != unchanged[name]} == options
    assert str(causes.run_of(change, 1, tmp_path)) in causes.words(change, 1, tmp_path)[-1]


def test_the_table_compares_with_the_unchanged_learner(tmp_path):
    change = causes.CHANGES[0]
    for seed in range(2):
        for temperature in night.TEMPERATURES:
            runs = ((night.run_of(causes.TASK, seed, "grpo", tmp_path), 6), (causes.run_of(change, seed, tmp_path), 4))
            for run, wins in runs:
                path = night.report_of(run, temperature)
                path.parent.mkdir()
                outcomes = [{"index": game, "success": game < wins + seed} for game in range(10)]
                path.write_text(json.dumps({"outcomes": outcomes}))
    text = causes.table([change], range(2), tmp_path)
    assert "| `--adam-eps 1e-8` | grpo | 1 | 65.0 to 45.0 % | -20.0 [" in text


def test_exact_values_are_the_chances_of_the_player_that_the_starts_imitate():
    random = np.random.default_rng(0)
    wins = 0
    env = build("lmgym/GuessNumber-v0", highest=16, max_turns=4)
    for index in range(400):
        observation, _ = env.reset(seed=int(random.integers(1 << 30)), options={"index": index})
        messages, done = [{"content": observation["text"]}], False
        while not done:
            guess = guess_that_fits(messages)
            observation, reward, terminated, truncated, _ = env.step(guess)
            messages += [{"content": guess}, {"content": observation["text"]}]
            wins, done = wins + reward, terminated or truncated
    env.close()
    assert abs(wins / 400 - value(16, 4)) < 0.1


def test_guesses_are_judged_by_what_the_answers_allow():
    before = f"{TASK}<|assistant|>8<|end|><|user|>higher<|assistant|>12<|end|><|user|>lower<|assistant|>"
    assert judge(before, "10", 4) == (quality(3, 1, 2), value(3, 2)) == (1.0, pytest.approx(7 / 9))
    assert judge(before, "9", 4)[0] == pytest.approx(2 / 3)
    assert judge(before, "12", 4)[0] == judge(before, "ten", 4)[0] == pytest.approx(1 / 3)
    assert judge(f"{TASK}<|assistant|>", "8", 1) == (1 / 16, 1 / 16)


def test_the_correlation_is_within_observations():
    def estimates(*qualities):
        return [UtteranceEstimate(n, 0, (n // 2,), each, 0.0) for n, each in enumerate(qualities)]

    truth = estimates(0.1, 0.2, 0.8, 0.9)
    assert correlation(estimates(5.0, 6.0, 1.0, 2.0), truth) == pytest.approx(1.0)
    assert correlation(estimates(6.0, 5.0, 2.0, 1.0), truth) == pytest.approx(-1.0)
    assert correlation(estimates(0.0, 0.0, 1.0, 1.0), truth) is None
