"""The night's gains: the commands of every run, and the table that their reports make."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product

import pytest

from lmgym.baselines.curves import comparison, night, players
from lmgym.baselines.curves.night import GUESS, LEARNERS, TASKS
from lmgym.baselines.curves.players import NAMES, OBJECTS, guess_that_fits, mixed_question
from lmgym.cli.curves import experiments
from lmgym.cli.train import settings
from lmgym.env.registry import build
from tests.command import command
from tests.sampled import sampled


@pytest.mark.parametrize("task", TASKS, ids=lambda each: each.name)
@pytest.mark.parametrize("learner", LEARNERS)
def test_learners_start_with_the_imitated_policy_and_the_same_optimiser(task, learner, tmp_path):
    start = settings(night.start_words(task, 1, tmp_path)).arguments
    words = night.words(task, 1, learner, tmp_path)
    arguments = settings(words).arguments
    assert start["recorded"] == str(night.data_of(task, 1, tmp_path))
    assert f"hf:{night.start_of(task, 1, tmp_path)}/policy" in words
    rates = {"guess_number": 1e-3, "maze": 5e-4, "coin": 3e-4, "twenty_questions": 1e-3, "alfworld": 3e-4}
    name, _, size = task.name.partition("-")
    assert start["policy"] == {"": "tiny:1m", "2.5m": "tiny", "10m": "tiny:10m"}[size]
    own = {
        ("guess_number", "archer"): 5e-4,
        ("coin", "refuel"): 1e-4,
        ("twenty_questions", "archer"): 5e-4,
        ("twenty_questions", "refuel"): 5e-4,
    }
    rate = own.get((name, learner), rates[name])
    assert (arguments["lr"], arguments["adam_eps"], arguments["final_norm_lr"]) == (rate, 1e-5, None)
    assert (arguments["tokens"], arguments["context"]) == (task.tokens[learner], start["context"])


@pytest.fixture
def seeded(monkeypatch):
    """Let the imitated players draw the same in any order of the tests."""
    monkeypatch.setattr(players, "CHANCE", random.Random(0))


@pytest.mark.usefixtures("seeded")
def test_the_imitated_player_of_guess_number_guesses_what_fits():
    task = "I think of a whole number from 1 to 16. Answer with one number; I say higher, lower or correct."
    texts = [task, "12", "lower", "5", "higher", "9", "lower"]
    messages = [{"content": text} for text in texts]
    assert {guess_that_fits(messages) for _ in range(100)} == {"6", "7", "8"}
    assert {guess_that_fits(messages[:1]) for _ in range(500)} == {str(number) for number in range(1, 17)}


@pytest.mark.usefixtures("seeded")
def test_the_imitated_player_of_twenty_questions_names_or_bisects_all_game_long():
    env, names, wins = build("twenty_questions", only=OBJECTS, max_turns=8), set(NAMES), {True: [], False: []}
    for word in OBJECTS * 6:
        env.reset(seed=0, options={"instance": {"word": word}})
        game, messages, over = env.unwrapped, [{"content": ""}], False
        while not over:
            left = len(game.left)
            question = mixed_question(messages)
            observation, _, terminated, truncated, info = env.step(question)
            over = terminated or truncated
            assert info["valid"]
            hasty = (messages[1]["content"] if messages[1:] else question) in names
            assert question in names if hasty else over or len(game.left) <= left - left // 3
            messages += [{"content": question}, {"content": observation["text"]}]
        wins[hasty].append(info["score"] == 1)
    assert all(wins[False])
    assert 58 < len(wins[True]) < 86
    assert 15 < sum(wins[True]) < 45


def test_a_table_has_gains_at_both_temperatures_paired_by_game(tmp_path):
    for seed, wins in ((0, 3), (1, 4)):
        for temperature in night.TEMPERATURES:
            for run, count in ((night.start_of(GUESS, seed, tmp_path), 1), (_run(seed, tmp_path), wins + temperature)):
                path = night.report_of(run, temperature)
                path.parent.mkdir()
                outcomes = [{"index": game, "success": game < count} for game in range(10)]
                path.write_text(json.dumps({"outcomes": outcomes}))
    text = night.table([GUESS], ["grpo"], range(2), tmp_path)
    assert "| guess_number | grpo | 200,000 | 2 | 1 | 10.0 to 45.0 % | +35.0 [" in text
    assert "| guess_number | grpo | 200,000 | 2 | 0 | 10.0 to 35.0 % | +25.0 [" in text
    assert "| +20.0 [" in text
    assert ", +30.0 [" in text


def test_seeds_that_play_different_games_weigh_the_same(tmp_path):
    for seed, games in ((0, range(10)), (1, range(5, 15))):
        for run, wins in ((night.start_of(GUESS, seed, tmp_path), 0), (_run(seed, tmp_path), 2 + 4 * seed)):
            path = night.report_of(run, 1)
            path.parent.mkdir()
            outcomes = [{"index": game, "success": number < wins} for number, game in enumerate(games)]
            path.write_text(json.dumps({"outcomes": outcomes}))
    starts, ends = (
        [night.start_of(GUESS, seed, tmp_path) for seed in range(2)],
        [_run(seed, tmp_path) for seed in range(2)],
    )
    assert night.gain_cells(starts, ends, 1).startswith("0.0 to 40.0 % | +40.0 [")


@pytest.mark.parametrize(
    ("task", "change"), [pytest.param(task, change, id=change) for task in TASKS for change in task.changes]
)
def test_a_changed_run_differs_in_what_is_changed_alone(task, change, tmp_path):
    arguments = task.changes[change]
    before = settings(night.words(task, 1, night.unchanged(change), tmp_path)).arguments
    after = settings(night.words(task, 1, change, tmp_path)).arguments
    options = {word.removeprefix("--no-").removeprefix("--").replace("-", "_") for word in arguments if "--" in word}
    assert {name for name in after if after[name] != before[name]} == options


def test_the_table_of_changes_compares_with_the_unchanged_learner(tmp_path):
    task = replace(GUESS, changes={"grpo-eps": GUESS.changes["grpo-eps"]})
    for seed, temperature, (name, wins) in product(range(2), night.TEMPERATURES, (("grpo", 6), ("grpo-eps", 4))):
        path = night.report_of(night.run_of(task, seed, name, tmp_path), temperature)
        path.parent.mkdir()
        outcomes = [{"index": game, "success": game < wins + seed} for game in range(10)]
        path.write_text(json.dumps({"outcomes": outcomes}))
    text = night.table_of_changes([task, replace(GUESS, changes={})], range(2), tmp_path)
    assert "| guess_number | `--adam-eps 1e-8` | grpo | 1 | 65.0 to 45.0 % | -20.0 [" in text


def test_episodes_are_counted_until_the_latest_of_them_reach_the_level():
    steps = [
        {"episodes": 128, "success": success, "environment_steps": 500 * (number + 1)}
        for number, success in enumerate((0.9, 0.1, 0.4, 0.6, 0.7))
    ]
    assert night.played_to(steps, 0.5) == (256, 1000)  # one step of 128 is too few, two of them win 0.5 of their games
    assert night.played_to(steps, 0.55) == (640, 2500)
    assert night.played_to(steps, 0.7) is None
    assert night.played_to([{"episodes": 512, "success": 0.6, "environment_steps": 9}], 0.6) == (512, 9)


def test_the_table_of_episodes_has_a_level_of_15_points_above_each_start(tmp_path):
    for seed, wins in ((0, 1), (1, 5)):
        report = night.report_of(night.start_of(GUESS, seed, tmp_path), 1)
        report.parent.mkdir()
        report.write_text(json.dumps({"outcomes": [{"index": game, "success": game < wins} for game in range(10)]}))
        run = _run(seed, tmp_path)
        run.mkdir()
        steps = [
            {"episodes": 256, "success": number / 10, "environment_steps": 700 * number, "action_tokens": 1}
            for number in (1, 3, 6)
        ]
        (run / "metrics.jsonl").write_text("".join(json.dumps(step) + "\n" for step in steps))
    text = night.table_of_episodes([GUESS], ["grpo"], range(2), tmp_path)
    assert "| guess_number | grpo | 256 | 512, - | 2,100, - |" in text


def _run(seed, folder):
    return night.run_of(GUESS, seed, "grpo", folder)


def test_a_name_that_is_also_a_task_is_the_experiment_of_that_name():
    assert [each.name for each in experiments(TASKS, ["guess_number"], "task")] == ["guess_number"]
    assert [each.name for each in experiments(TASKS, ["lmgym/TextWorldCoin-v0", "maze"], "task")] == ["maze", "coin"]


def test_an_unknown_task_lists_what_there_is(capsys):
    assert command("curves", "--size", "night", "--task", "maze", "--task", "chess") != 0
    assert (
        "no task is chess; known: guess_number, guess_number-2.5m, guess_number-10m, maze, coin, lmgym/TextWorldCoin-v0"
        in capsys.readouterr().err
    )


def test_an_unknown_algorithm_lists_what_there_is(capsys):
    assert command("curves", "--size", "night", "--algorithm", "ppo", "--algorithm", "dpo") != 0
    assert "no algorithm is dpo; known: ppo, grpo, rloo, archer, refuel" in capsys.readouterr().err


def test_causes_of_a_task_without_any_lists_those_with(capsys):
    assert command("curves", "--size", "causes", "--task", "maze") != 0
    known = "guess_number, guess_number-10m, twenty_questions, alfworld"
    assert f"no task is maze; known: {known}" in capsys.readouterr().err


@pytest.mark.parametrize("task", sampled(TASKS, name=lambda each: each.name))
def test_a_seed_is_made_by_the_real_commands(task, tmp_path, monkeypatch):
    """The commands in this process, with less of everything; what is finished is not made again."""
    calls = []

    def call(folder, arguments, name):
        calls.append(name)
        assert command(*arguments) == 0

    monkeypatch.setattr(night, "call", call)
    monkeypatch.setattr(comparison, "call", call)
    few, short = (*task.data, "--episodes", "4", "--tries", "1"), ("--steps", "1", "--episodes", "4")
    task = replace(task, data=few, start=short, tokens={"grpo": 50}, episodes=2, tries=1)
    told = []
    for _ in range(2):
        night.make_all([task], ["grpo"], [0], tmp_path, at_once=1, tell=told.append, settings=settings)
    assert told == 2 * [f"{task.name}-start-0", f"{task.name}-grpo-0"]
    assert len(calls) == len(set(calls)) == 7
    assert f"| {task.name} | grpo | 50 | 1 | 0 |" in night.table([task], ["grpo"], [0], tmp_path)
