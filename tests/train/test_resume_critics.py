"""Runs with critics, targets, stores and records, interrupted and gone on with, end with the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from lmgym.baselines import archer, grpo, ilql, mc, ppo, refuel, rloo
from lmgym.baselines.recipes import zhongjing
from lmgym.policy.load import load_local
from lmgym.policy.local.lora import adapt
from lmgym.policy.local.sampling import Sampling
from lmgym.train import checkpoint
from tests.train import victim
from tests.train.interrupted import interrupted
from tests.train.test_resume import figures
from tests.train.victim import toy_policy, train

SHORT = {"warmup": 2, "warmup_episodes": 4, "evaluate": 4}
CASES = {
    "archer": (
        archer,
        {"fit": 2, "steps": 3, "rollouts": 4, "hidden": 8, "critic_draws": 12, "critic_batch": 4, "critic_epochs": 2}
        | {"actor_draws": 8, "minibatches": 2, "capacity": 30},
    ),
    "archer, own encoder": (
        archer,
        {"fit": 1, "steps": 2, "rollouts": 4, "hidden": 8, "critic_draws": 8, "critic_epochs": 1, "actor_draws": 8}
        | {"encoder": "own"},
    ),
    "ppo": (
        ppo,
        {"critic_steps": 2, "steps": 3, "instances": 6, "minibatches": 2, "epochs": 2, "kl_target": 0.5}
        | {"critic": "network", "critic_epochs": 1},
    ),
    "ppo, joint critic": (ppo, {"critic_steps": 2, "steps": 3, "instances": 6, "minibatches": 2, "critic": "joint"}),
    "rloo": (rloo, {"steps": 4, "instances": 3, "group": 2, "kl_reward": 0.1, "kl_target": 0.5}),
    "refuel": (refuel, {"steps": 3, "pairs": 6, "minibatches": 2}),
    "zhongjing": (zhongjing, {"reward_steps": 3, "pairs": 6, "critic_steps": 1, "steps": 3, "instances": 4}),
    "mc": (mc, {"steps": 3, "demonstrated": 8, "sampled": 8, "episodes": 6, "base": "small"}),
    "ilql": (ilql, {"steps": 3, "demonstrated": 8, "sampled": 8, "episodes": 6}),
    "grpo, adapters": (grpo, {"steps": 4, "instances": 3, "group": 2, "kl": 0.1, "drop_flat": False, "lr": 1e-2}),
    "ppo, adapters": (
        ppo,
        {"critic_steps": 2, "steps": 3, "instances": 6, "critic": "network", "critic_epochs": 1, "lr": 1e-2},
    ),
    "grpo, halves": (grpo, {"steps": 4, "instances": 3, "group": 2, "kl": 0.1, "drop_flat": False, "autocast": True}),
    "ppo, halves": (
        ppo,
        {"critic_steps": 2, "steps": 3, "instances": 6, "importance": "token_cap", "autocast": True},
    ),
}

QUICK = (
    "ppo",
    "refuel",
    "zhongjing",
    "ilql",
    "grpo, adapters",
)  # in the default suite: each kind of state once


def adapted(folder: Path):
    """A policy that learns by adapters on a base in `folder`."""
    if not folder.exists():
        toy_policy().save(folder)
    policy = load_local(f"hf:{folder}", sampling=Sampling(max_tokens=4))
    adapt(policy.model, rank=2)
    return policy


def halves(folder: Path):
    """A policy that samples in bfloat16."""
    policy = toy_policy()
    policy.dtype = torch.bfloat16
    return policy


POLICIES = {"adapters": adapted, "halves": halves}


def bits(folder: Path) -> list[torch.Tensor]:
    """Everything that learns, as the last checkpoint has it."""
    state = checkpoint.load(folder / "checkpoints")
    found: list[torch.Tensor] = []
    waiting = [state["model"], *(state["learner"][name] for name in ("critic", "reward_model", "store"))]
    while waiting:
        item = waiting.pop()
        if isinstance(item, torch.Tensor):
            found.append(item)
        elif isinstance(item, dict):
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item
        elif isinstance(item, str):
            found.append(torch.tensor(list(item.encode())))
    return found


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CASES]
)
def test_an_interrupted_run_ends_with_the_same_bits(tmp_path, monkeypatch, name):
    module, changes = CASES[name]
    if (make := POLICIES.get(name.rpartition(", ")[2])) is not None:
        monkeypatch.setattr(victim, "toy_policy", lambda: make(tmp_path / "base"))
    args = module.Args(**SHORT, **changes)
    train(tmp_path / "whole", args=args, recipe=module.recipe(args))
    deaths = interrupted(lambda resume: train(tmp_path / "cut", args=args, recipe=module.recipe(args), resume=resume))
    assert deaths >= 3
    assert figures(tmp_path / "cut") == figures(tmp_path / "whole")
    whole, cut = bits(tmp_path / "whole"), bits(tmp_path / "cut")
    assert len(whole) == len(cut) > 10
    assert all(torch.equal(a, b) for a, b in zip(whole, cut, strict=True))
