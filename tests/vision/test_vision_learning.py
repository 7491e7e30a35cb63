"""What the card of click target says of training: imitation, then GRPO, then the same policy blindfolded."""

from __future__ import annotations

import pytest
import torch

from lmgym.baselines import grpo
from lmgym.evaluation import runner
from lmgym.policy.load import load_local
from lmgym.rollout.engine import Engine
from lmgym.train import loop

TASK = "lmgym/ClickTarget-v0"


@pytest.fixture(autouse=True)
def _one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.slow
def test_grpo_adds_to_imitation_what_only_eyes_can(tmp_path):
    """One of four places: 256 episodes of a guesser have an error of 0.027."""
    args = grpo.Args(warmup=10, interject=0.0, observation_weight=0.0, steps=25, negative=1.0, lr=7e-4, evaluate=256)
    policy = load_local("tiny-vl", seed=0, device="cpu")
    result = loop.run(grpo.recipe(args), policy, task=TASK, folder=tmp_path, quiet=True)
    assert result.gain.low > 0
    assert result.gain.mean >= 0.1
    jobs = runner.episodes(TASK, split="test", size=1000, count=256, options={"blank": True})
    blind = runner.evaluate(load_local(f"hf:{result.policy}", device="cpu"), jobs, engine=Engine())
    assert sum(outcome.score for outcome in blind.outcomes) / len(blind.outcomes) < 0.25 + 4 * 0.027
