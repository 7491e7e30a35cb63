"""ARPO for GUI agents and DART: replayed successes are trained as if played now; what a task has shown decides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines import bc
from lmgym.baselines.recipes import arpo_gui, dart
from lmgym.train import loop, trained
from lmgym.train.log import read_metrics
from lmgym.train.parts.tasks import Bank, Uniform
from lmgym.train.state import InstancePool
from tests.baselines.test_learning import WARMUP
from tests.train.chain import SPEC, chain_policy
from tests.train.test_parts import TURN, episode

POOL = InstancePool(task="t", size=3)
SHORT = {
    "invalid_cost": 0.0,
    "steps": 5,
    "instances": 4,
    "group": 3,
    "tasks": 4,
    "evaluate": 1,
    "minibatches": 1,
    "autocast": False,
}


def rows(module, args, folder):
    """The trained rows of RL by (episode, segment), and the figures of its steps."""
    recipe = module.recipe(args)
    warmup = replace(WARMUP, steps=16)
    recipe = replace(recipe, stages=[bc.sft(warmup), *recipe.stages[2:]])
    loop.run(recipe, chain_policy(), task=SPEC.id, folder=folder, keep_episodes=range(16, 21), quiet=True)
    files = sorted((folder / trained.FOLDER).iterdir())
    found = [row for path in files for row in trained.read(path).values()]
    return found, [row for row in read_metrics(folder) if row["stage"] == "rl"]


@pytest.mark.parametrize("module", [arpo_gui, dart])
def test_a_replayed_success_is_the_best_of_its_group_and_its_ratio_begins_at_one(module, tmp_path):
    found, figures = rows(module, module.Args(**SHORT), tmp_path / "run")
    replayed = [row for row in found if ">" in row.episode]
    assert replayed, "no group failed whose instance was won before"
    for row in replayed:
        assert max(row.advantage) > 0
        assert min(row.advantage) >= 0
    for row in figures:  # one optimiser step: the trainer's log-probs before it are the old ones
        if row["trained_tokens"]:
            assert row["ratio_min"] == pytest.approx(1.0, abs=1e-4)
            assert row["ratio_max"] == pytest.approx(1.0, abs=1e-4)


def test_without_a_replay_there_is_none(tmp_path):
    found, _ = rows(arpo_gui, arpo_gui.Args(**SHORT, capacity=0), tmp_path / "run")
    assert found
    assert not [row for row in found if ">" in row.episode]


def played(index: int, *wins: bool, turns: int = 4):
    return [
        replace(episode(f"{index}-{n}", "g", float(won), index=index, info={"success": won}), turns=(TURN,) * turns)
        for n, won in enumerate(wins)
    ]


def test_a_bank_plays_what_is_won_less_often_and_not_for_long():
    bank = Bank(Uniform(3, tries=8, budget=9), fewest=2, margin=2)
    first = bank.draw(0, POOL)
    assert len(first) == 24
    assert {job.budget for job in first} == {9}
    won = [*played(0, *(True,) * 8, turns=3), *played(1, *(False,) * 8), *played(2, True, *(False,) * 3, turns=8)]
    bank.observe([*won, *played(2, *(False,) * 4, turns=9)], None)
    again = Bank(Uniform(3, tries=8, budget=9), fewest=2, margin=2)
    again.load_state_dict(bank.state_dict())
    for each in (bank, again):
        jobs = {index: [job for job in each.draw(1, POOL) if job.index == index] for index in range(3)}
        assert {index: len(of) for index, of in jobs.items()} == {0: 2, 1: 8, 2: 7}
        assert {index: of[0].budget for index, of in jobs.items()} == {0: 5, 1: 9, 2: 9}
        assert len({job.id for of in jobs.values() for job in of}) == 17
