"""LMRL-Gym's tables: the commands of every run, and the table that their reports make."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import product

import pytest

from lmgym.baselines.curves import comparison, lmrl
from lmgym.baselines.curves.lmrl import BENCHMARKS, IMITATION, METHODS
from lmgym.baselines.curves.players import fitting_word, spaced_word
from lmgym.cli.train import settings
from lmgym.tasks.wordle.env import Wordle
from tests.command import command
from tests.sampled import sampled

MAZE = BENCHMARKS[0]
FEW = {
    "bc": ("--episodes", "4", "--steps", "1"),
    "filtered_bc": ("--instances", "4", "--steps", "1"),
    "mc": ("--episodes", "4", "--steps", "1"),
    "ilql": ("--episodes", "4", "--steps", "1"),
    "ppo": ("--instances", "2", "--tries", "1", "--steps", "1", "--critic-steps", "1", "--budget", "3"),
}


@pytest.mark.parametrize("benchmark", BENCHMARKS, ids=lambda each: each.name)
@pytest.mark.parametrize("method", [IMITATION, *METHODS], ids=lambda each: each.name)
def test_every_row_has_a_published_return_and_the_history_of_its_task(benchmark, method, tmp_path):
    arguments = settings(lmrl.words(benchmark, method, 1, tmp_path)).arguments
    assert method.name in benchmark.published
    assert arguments["context"] == benchmark.context
    assert ("recorded" in arguments and arguments["recorded"] is not None) is method.recorded
    assert f"--context {benchmark.context}" in " ".join(lmrl.evaluation_words(benchmark, method, 1, tmp_path, 1))


def test_a_table_has_the_mean_over_starts_and_seeds(tmp_path):
    for seed, temperature, method in product(range(2), lmrl.TEMPERATURES, (IMITATION, *METHODS)):
        path = lmrl.report_of(lmrl.run_of(MAZE, method, seed, tmp_path), temperature)
        path.parent.mkdir()
        rest = -4.0 * seed - 50 * (1 - temperature) - (method is IMITATION)
        outcomes = [{"index": start, "reward": -10.0 * start + miss + rest} for start, miss in product((1, 2), (-1, 1))]
        path.write_text(json.dumps({"outcomes": outcomes}))
    text = lmrl.table(MAZE, range(2), tmp_path)
    ilql = "-17.0 [-22.0, -12.0] | -15.0, -19.0 | -67.0 [-72.0, -62.0] | +1.0 [+1.0, +1.0]"
    assert f"| ILQL | 2 | {ilql} | -6.97 |" in text
    assert "| BC | 2 | -18.0 [-23.0, -13.0] | -16.0, -20.0 | -68.0 [-73.0, -63.0] |  | -72.1 |" in text


def guesses_of(player, tries):
    """Yield a guess at every fifth word of wordle after the tries, and whether it fits their colours."""
    game = Wordle()
    for secret in game.words[::5]:
        messages = [{"content": "the task"}]
        for word in tries:
            messages += [{"content": " ".join(word)}, {"content": " ".join(game.colour(word, secret)) + "\n"}]
        spaced = player(messages)
        assert len(spaced) == 9
        guess = spaced.replace(" ", "")
        assert guess in game.words
        yield guess, all(game.colour(word, secret) == game.colour(word, guess) for word in tries)


def test_the_player_of_lmrl_gyms_data_names_a_word_that_fits_in_a_third_of_its_turns_and_any_word_else():
    fits = [fit for _, fit in guesses_of(spaced_word, ("crane", "moist"))]
    assert 0.2 < sum(fits) / len(fits) < 0.5


def test_the_player_of_words_that_fit_draws_among_all_of_them():
    guesses = list(guesses_of(fitting_word, ("crane",)))
    assert all(fit for _, fit in guesses)
    assert len({guess for guess, _ in guesses}) > len(guesses) / 2


@pytest.mark.parametrize("benchmark", sampled(BENCHMARKS, name=lambda each: each.name))
def test_a_seed_is_made_by_the_real_commands(benchmark, tmp_path, monkeypatch):
    """The commands in this process, with less of everything; what is finished is not made again."""
    said = []

    def call(folder, arguments, name):
        said.append(name)
        few = (*FEW[arguments[1]], "--evaluate", "2") if arguments[0] == "train" else ()
        assert command(*arguments, *few, "--option", "max_turns=4") == 0

    few = ("--episodes", str(min(benchmark.starts, 25)), "--tries", "1", "--wander", "0:")
    monkeypatch.setattr(lmrl, "call", call)
    monkeypatch.setattr(comparison, "call", call)
    monkeypatch.setattr(lmrl, "make", lambda folder, words, out: call(folder, words, out.name))
    monkeypatch.setattr(lmrl, "METHODS", METHODS[1:])
    benchmark = replace(benchmark, data=few, starts=2, tries=1)
    told = []
    lmrl.make_all([benchmark], [0], tmp_path, at_once=1, tell=told.append, settings=settings)
    assert len(told) == 4
    assert "| PPO | 1 |" in lmrl.table(benchmark, [0], tmp_path)
    runs = lmrl.runs(benchmark, 0, tmp_path)
    assert all(lmrl.report_of(run, temperature).exists() for run in runs for temperature in lmrl.TEMPERATURES)
