"""Self-play from random legal play: Kuhn poker becomes less exploitable, two players of Hanabi score more.

Every run is bounded by steps, so that it is the same on every machine up to the last bits of its arithmetic. The
figures are written to `figures.json` in each test's folder:

    pytest -m "slow or whole" --basetemp=runs/self_play tests/baselines/test_self_play.py
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from lmgym.baselines import bc
from lmgym.baselines.recipes import mars
from lmgym.evaluation import runner
from lmgym.evaluation.exact import exact_figures
from lmgym.rollout import dataset
from lmgym.rollout.context import MarkovState
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.train import loop
from lmgym.train.load import load_policy
from lmgym.train.seats import is_trained
from lmgym.train.stage import Evaluate
from tests.baselines.test_learning import small
from tests.sampled import sampled

KUHN, HANABI = "lmgym/KuhnPoker-v0", "lmgym/MiniHanabi-v0"
RANDOM = 11 / 24  # exploitability of random actions in Kuhn poker


def random_games(path, task, *, games, tries, seat, seed):
    """Record games of random legal actions in both seats, as the first seat sees them."""
    jobs = runner.episodes(task, split="train", size=games, count=games, tries=tries, seed=seed, options={})
    policy, other = load_policy("random", 1.0, seed), load_policy("random", 1.0, seed + 100)
    with Engine(seats={seat: SeatConfig(policy=other, trained=False)}) as engine:
        episodes = [episode for episode in engine.run(policy, jobs) if is_trained(episode)]
    dataset.write(path, [dataset.labelled(episode, policy) for episode in episodes])


@dataclass
class Run:
    """A policy in training on a task, in a folder of its own for each part of it."""

    task: str
    play: Any  # recipe of the self-play
    seed: int
    folder: Any
    figures: dict[str, float] = field(default_factory=dict)

    def __post_init__(self):
        self.policy = load_policy("tiny:1m", 1.0, self.seed)

    def warm(self, args, **games):
        random_games(self.folder / "random.jsonl", self.task, seed=self.seed, **games)
        self.stages("warm", [bc.sft(replace(args, recorded=str(self.folder / "random.jsonl")))])

    def self_play(self):
        self.stages("run", [stage for stage in self.play.stages if stage.name == "rl"])

    def stages(self, name, stages):
        begun = time.perf_counter()
        recipe, options = replace(self.play, stages=stages), {"seed": self.seed, "quiet": True, "save_seconds": 1e9}
        result = loop.run(recipe, self.policy, task=self.task, folder=self.folder / name, **options)
        self.figures[f"seconds_{name}"] = time.perf_counter() - begun
        return result

    def write(self):
        (self.folder / "figures.json").write_text(json.dumps(self.figures, indent=1), encoding="utf-8")


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("seed", sampled(range(3)))
def test_kuhn_poker_ends_below_the_exploitability_of_random_play(seed, tmp_path):
    # the divergence from the start, which is nearly random, keeps the last policy from cycling (MMD, arXiv 2206.05825)
    run = Run(KUHN, mars.recipe(mars.Args(steps=40, instances=12, kl=0.5)), seed, tmp_path)
    run.warm(small(bc, steps=40, interject=0.0), games=120, tries=4, seat="opponent")
    before = exact_figures(KUHN, run.policy)
    run.self_play()
    after = exact_figures(KUHN, run.policy)
    for when, figures in (("before", before), ("after", after)):
        run.figures |= {f"{when}_{name}": value for name, value in figures.items()}
    run.write()
    assert min(before["legal_answers"], after["legal_answers"]) > 0.8
    assert before["exploitability"] == pytest.approx(RANDOM, abs=0.12), "the start plays nearly at random"
    assert after["exploitability"] < RANDOM


@pytest.mark.whole
@pytest.mark.timeout(3600)
def test_two_players_of_hanabi_score_more_than_at_random(tmp_path):
    args = mars.Args(steps=20, seat="partner", instances=8, group=4)
    run = Run(HANABI, replace(mars.recipe(args), context=MarkovState()), 0, tmp_path)
    evaluation = Evaluate(name="test", episodes=200, others="seats")
    run.warm(small(bc, steps=40, episodes=16, interject=0.0), games=120, tries=1, seat="partner")
    before = run.stages("before", [evaluation]).reports["test"]
    run.self_play()
    after = run.stages("after", [evaluation]).reports["test"]
    gain = after.since(before, of="score")
    run.figures |= {"before": before.score.mean, "after": after.score.mean, "low": gain.low, "high": gain.high}
    run.write()
    assert gain.low > 0, f"paired gain {gain} over the test instances"
