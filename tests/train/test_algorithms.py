"""Algorithms are found by file, by plug-in and by path, and run from Python as from the command line."""

from __future__ import annotations

import json
import re
import sys

import pytest

import lmgym.train
from lmgym.baselines import recipes
from lmgym.errors import RecipeError
from lmgym.rollout import dataset
from lmgym.train import algorithms, curve, log
from tests.command import command
from tests.train.victim import toy_policy

RECIPE = '''"""Nothing: an algorithm that only evaluates."""

from dataclasses import dataclass

from lmgym.train.recipe import Recipe
from lmgym.train.stage import Evaluate


@dataclass(frozen=True, kw_only=True)
class Args:
    episodes: int = 3


def recipe(args):
    return Recipe(stages=[Evaluate(name="alone", episodes=args.episodes)])
'''


BASELINES = {"archer", "bc", "filtered_bc", "grpo", "ilql", "mc", "ppo", "refuel", "rloo"}


def test_the_baselines_and_the_recipes_are_listed():
    found = algorithms.algorithms()
    assert {name for name, module in found.items() if module == f"lmgym.baselines.{name}"} == BASELINES
    published = [name for name, module in found.items() if module == f"lmgym.baselines.recipes.{name}"]
    assert len(published) >= 21
    assert all(algorithms.summary(name) for name in found)


def test_a_file_among_the_recipes_is_an_algorithm(tmp_path, monkeypatch):
    (tmp_path / "nothing.py").write_text(RECIPE)
    monkeypatch.setattr(recipes, "__path__", [*recipes.__path__, str(tmp_path)])
    assert algorithms.algorithms()["nothing"] == "lmgym.baselines.recipes.nothing"
    assert algorithms.summary("nothing") == "Nothing: an algorithm that only evaluates."
    assert algorithms.load("nothing").Args().episodes == 3
    sys.modules.pop("lmgym.baselines.recipes.nothing")


def test_a_plugin_brings_an_algorithm_and_replaces_none(tmp_path, monkeypatch):
    (tmp_path / "elsewhere.py").write_text(RECIPE)
    (tmp_path / "elsewhere-1.dist-info").mkdir()
    points = "[lmgym.recipes]\nplugged = elsewhere\ngrpo = elsewhere\n"
    (tmp_path / "elsewhere-1.dist-info" / "entry_points.txt").write_text(points)
    (tmp_path / "elsewhere-1.dist-info" / "METADATA").write_text("Name: elsewhere\nVersion: 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert algorithms.load("plugged").__name__ == "elsewhere"
    monkeypatch.setattr(curve, "draw", lambda folder: folder)
    result = lmgym.train.run("plugged", task="guess_number", model=toy_policy(), out=tmp_path / "run", max_tokens=2)
    assert len(result.reports["alone"].outcomes) == 3
    assert algorithms.algorithms()["grpo"] == "lmgym.baselines.grpo"


def test_a_file_by_its_path_is_run_and_an_option_without_a_named_algorithm_refused(tmp_path):
    (tmp_path / "own.py").write_text(RECIPE)
    path = str(tmp_path / "own.py")
    result = lmgym.train.run(path, task="guess_number", model="tiny:1m", out=tmp_path / "run", quiet=True, episodes=2)
    assert len(result.reports["alone"].outcomes) == 2
    with pytest.raises(RecipeError, match="does not exist"):
        algorithms.load(str(tmp_path / "missing.py"))
    module = algorithms.load(str(tmp_path / "own.py"))
    with pytest.raises(RecipeError, match="episodes belong to a named algorithm"):
        lmgym.train.run(module.recipe(module.Args()), task="guess_number", out=tmp_path / "run", episodes=2)


def test_an_option_with_the_name_of_a_setting_of_every_run_is_refused(tmp_path):
    where = {"task": "guess_number", "model": "tiny:1m", "out": tmp_path / "run", "quiet": True}
    (tmp_path / "own.py").write_text(RECIPE)
    lmgym.train.run(str(tmp_path / "own.py"), **where)
    recorded = json.loads((tmp_path / "run" / "run.json").read_text())["arguments"]
    assert set(recorded) - {"episodes"} == algorithms.SETTINGS
    for setting in ("algorithm", "seed", "tokens"):
        (tmp_path / "own.py").write_text(RECIPE.replace("episodes: int", f"{setting}: int = 1\n    episodes: int"))
        with pytest.raises(RecipeError, match=f"an option {setting!r}, which is a setting of every run: rename it"):
            lmgym.train.run(str(tmp_path / "own.py"), **{**where, "out": tmp_path / setting})


def test_a_run_shows_the_policy_the_history_that_it_is_given(tmp_path):
    steps = {"warmup": 0, "steps": 1, "instances": 2, "group": 2, "budget": 3, "evaluate": 1, "keep_episodes": [0]}
    where = {"task": "guess_number", "model": "tiny:1m", "out": tmp_path / "run", "quiet": True}
    lmgym.train.run("grpo", context="latest", **where, **steps)
    episodes = list(dataset.read(tmp_path / "run" / "episodes"))
    assert any(len(episode.turns) == 3 for episode in episodes)
    assert all(turn.fresh for episode in episodes for turn in episode.turns)
    assert json.loads((tmp_path / "run" / "run.json").read_text())["arguments"]["context"] == "latest"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--list"], "ppo +PPO: "),
        (["ppo", "--help"], r"--whiten-floor +0\.0"),
        (["--model", "tiny", "ppo", "--help"], r"--whiten-floor +0\.0"),
        (["--model", "tiny", "--help"], "--model"),
    ],
)
def test_the_command_tells_algorithms_and_their_options(capsys, words, line):
    assert command("train", *words) == 0
    assert re.search(line, capsys.readouterr().out)


@pytest.mark.parametrize(("first", "left"), [(0.0, "100 s"), (0.4, "500 s")], ids=["new", "resumed"])
def test_progress_is_plain_lines_where_there_is_no_terminal(tmp_path, monkeypatch, capsys, first, left):
    monkeypatch.setattr(log, "PLAIN_SECONDS", 0.01)
    now = [0.0]
    monkeypatch.setattr(log.time, "monotonic", lambda: now[0])
    writer = log.Log(tmp_path)
    writer.show("rl", first, "")
    now[0] = 100.0
    writer.show("rl", 0.5, "loss 1")
    while "50%" not in (printed := capsys.readouterr().err):
        pass
    writer.close()
    assert f"rl: 50%, 100 s, {left} left  loss 1" in printed


def test_progress_follows_the_limit_of_tokens(tmp_path, monkeypatch):
    shown = []
    monkeypatch.setattr(log.Log, "show", lambda self, stage, share, words: shown.append((stage, share)))
    steps = {"warmup": 0, "steps": 1000, "tokens": 50, "instances": 1, "group": 2, "budget": 2, "evaluate": 1}
    lmgym.train.run("grpo", task="guess_number", model=toy_policy(), out=tmp_path / "run", max_tokens=2, **steps)
    shares = [share for stage, share in shown if stage == "rl"]
    assert shares[0] == 0
    assert shares[-1] == 1
    assert len(shares) > 3
    assert shares == sorted(shares)
