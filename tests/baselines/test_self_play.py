"""Self-play on Kuhn poker leaves random play behind, measured exactly from the policy's action probabilities."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines import bc
from lmgym.baselines.recipes import mars
from lmgym.evaluation import runner
from lmgym.evaluation.exact import exact_figures
from lmgym.rollout import dataset
from lmgym.rollout.engine import Engine
from lmgym.train import loop
from lmgym.train.load import load_policy

TASK = "lmgym/KuhnPoker-v0"
RANDOM = 11 / 24  # exploitability of random actions
SECONDS = 480.0  # of self-play
WARMUP = bc.Args(steps=40, episodes=64, interject=0.0, evaluate=0)


def random_games(path, seed):
    """Record 480 games of random legal actions in both seats."""
    jobs = runner.episodes(TASK, split="train", size=120, count=120, tries=4, seed=seed, options={"opponent": "random"})
    policy = load_policy("random", 1.0, seed)
    with Engine() as engine:
        dataset.write(path, [dataset.labelled(episode, policy) for episode in engine.run(policy, jobs)])


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", range(3))
def test_self_play_ends_below_the_exploitability_of_random_play(seed, tmp_path):
    random_games(tmp_path / "random.jsonl", seed)
    policy = load_policy("tiny:1m", 1.0, seed)
    play = mars.recipe(mars.Args(steps=None, seconds=SECONDS, kl=0.0))
    warmup = bc.sft(replace(WARMUP, recorded=str(tmp_path / "random.jsonl")))
    self_play = [stage for stage in play.stages if stage.name == "rl"]
    figures = []
    for name, stages in (("warm", [warmup]), ("run", self_play)):
        recipe = replace(play, stages=stages)
        loop.run(recipe, policy, task=TASK, folder=tmp_path / name, seed=seed, quiet=True, save_seconds=1e9)
        figures.append(exact_figures(TASK, policy))
    before, after = figures
    assert min(before["legal_answers"], after["legal_answers"]) > 0.9
    assert before["exploitability"] == pytest.approx(RANDOM, abs=0.1), "the start plays nearly at random"
    assert after["exploitability"] < RANDOM
