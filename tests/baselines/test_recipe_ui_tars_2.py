"""UI-TARS-2: lambda by the length of an episode, values before the policy moves, and successes imitated in between."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from types import MappingProxyType

import pytest
import torch

from lmgym.baselines import bc
from lmgym.baselines.recipes import ui_tars_2
from lmgym.env import registry
from lmgym.rollout import dataset
from lmgym.train import curve, loop
from lmgym.train.parts.credit import gae, length_adaptive
from lmgym.train.parts.filters import drop_failures
from lmgym.train.recipe import Recipe
from tests.baselines.test_learning import WARMUP
from tests.oracles import gae as oracle
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy

SMALL = {"evaluate": 20, "instances": 32, "minibatches": 1, "lr": 5e-3, "critic_lr": 1e-2}


@pytest.fixture(autouse=True)
def _chain(monkeypatch):
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC})
    monkeypatch.setattr(registry, "specs", lambda: known)
    monkeypatch.setattr(curve, "draw", lambda folder: folder)


def rows(recipe: Recipe, folder) -> list[dict[str, float]]:
    """Train on the chain, after a short imitation, and return the lines of the log."""
    recipe = replace(recipe, stages=[bc.sft(WARMUP), *recipe.stages[1:]])
    loop.run(recipe, chain_policy(), task=SPEC.id, folder=folder, quiet=True, save_seconds=1e9)
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_lambda_grows_with_the_tokens_of_an_episode():
    assert [length_adaptive(n, alpha=0.05) for n in (1, 20, 40, 200)] == pytest.approx([0.0, 0.0, 0.5, 0.9])
    reward, value = torch.rand(2, 61, dtype=torch.float64), torch.rand(2, 61, dtype=torch.float64)
    mask = torch.tensor([[0] + [1] * 60, [0] + [1] * 25 + [0] * 35])
    reward, value = reward * mask, value * mask
    batch = make_batch(mask.tolist(), reward=reward, value=value)
    found = gae(batch, gamma=1.0, lam=partial(length_adaptive, alpha=0.05))
    for row, (length, lam) in enumerate(((60, 2 / 3), (25, 0.2))):
        columns = (column[row, 1 : length + 1].tolist() for column in (reward, value))
        expected = oracle(*columns, gamma=1.0, lam=lam, boot=0.0)
        assert found[row, 1 : length + 1].tolist() == pytest.approx(expected)


def test_the_critic_learns_whole_returns_and_the_policy_is_told_another_lambda():
    args = ui_tars_2.Args()
    recipe = ui_tars_2.recipe(args)
    batch = make_batch([[0] + [1] * 40], reward=[[0.0] * 40 + [1.0]])
    plain = gae(batch, gamma=1.0, lam=0.5)
    assert torch.allclose(recipe.credit(batch), ui_tars_2.ppo.credit(ui_tars_2.Args(lam=0.5))(batch)), (
        "40 tokens have a lambda of 0.5"
    )
    assert not torch.allclose(plain, gae(batch, gamma=1.0, lam=0.95))
    assert args.critic_lam == 1.0


def test_values_learned_first_take_the_bias_from_the_first_advantages(tmp_path):
    def bias(steps: int) -> float:
        args = ui_tars_2.Args(**SMALL, steps=2, critic_steps=steps, rounds=1, value_bias=1.0)
        lines = rows(ui_tars_2.recipe(args), tmp_path / str(steps))
        first = next(line for line in lines if line["stage"] == "rl" and line["step"] == 1)
        return abs(first["target_mean"] - first["value_mean"])

    assert bias(12) < 0.3 * bias(0)


def test_rounds_imitate_the_successes_so_far_and_nothing_else(tmp_path):
    args = ui_tars_2.Args(**SMALL, steps=6, critic_steps=1, rounds=3, imitated=2)
    lines = rows(ui_tars_2.recipe(args), tmp_path)
    order = list(dict.fromkeys(line["stage"] for line in lines))
    rounds = [f"{name} {n}" for n in (1, 2) for name in ("rl", "generate", "imitate")]
    assert order == ["sft", "before RL", "critic", *rounds, "rl", "after RL"]
    assert [sum(line["stage"] == name for line in lines) for name in ("rl 1", "imitate 1", "rl")] == [2, 2, 2]
    kept = [line["kept_episodes"] for line in lines if line["stage"].startswith("generate")]
    files = sorted((tmp_path / "successes").glob("*.jsonl"))
    stored = [list(dataset.read(path)) for path in files]
    assert [len(each) for each in stored] == kept
    assert all(episode.success for each in stored for episode in each)
    assert 0 < kept[0] < 32
    imitated = [line for line in lines if line["stage"].startswith("imitate")]
    assert all(line["trained_tokens"] > 0 and line["demonstrated_success"] == 1.0 for line in imitated)


def test_rounds_draw_other_instances_and_imitate_no_failures_of_earlier_rounds(tmp_path):
    recipe = ui_tars_2.recipe(ui_tars_2.Args(**SMALL, steps=4, rounds=2, imitated=1, critic_steps=1))
    rounds = [stage for stage in recipe.unrolled() if stage.name in ("rl 1", "rl")]
    assert [stage.drawn for stage in rounds] == [0, 2]
    assert next(stage for stage in recipe.unrolled() if stage.name == "imitate 1").select is drop_failures
    kept = {"keep_episodes": range(99), "task": SPEC.id, "quiet": True, "save_seconds": 1e9}
    recipe = replace(recipe, stages=[bc.sft(WARMUP), *recipe.stages[1:]])
    loop.run(recipe, chain_policy(), folder=tmp_path, **kept)
    episodes = [each for path in sorted((tmp_path / "episodes").glob("*.jsonl")) for each in dataset.read(path)]
    first, last = ({each.index for each in episodes if each.id.startswith(name)} for name in ("rl 1-", "rl-"))
    assert len(first) == len(last) == 64
    assert not first & last
