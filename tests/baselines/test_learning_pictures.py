"""GRPO as it is tuned for the two picture tasks: it gains at least ten points, and what was learned is seen."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines import grpo
from lmgym.env.registry import find
from lmgym.evaluation import runner
from lmgym.policy.load import load_local
from lmgym.rollout.engine import Engine
from lmgym.train import loop
from lmgym.train.presets import tuned
from tests.sampled import sampled
from tests.threads import one_thread

CHANCE = {"click_target": 0.26, "visual_search": 0.25}  # one click for all; one letter of four


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


@pytest.mark.timeout(1200)
@pytest.mark.parametrize("task", sampled(CHANCE))
def test_grpo_learns_to_see_and_is_at_chance_blindfolded(tmp_path, task):
    """256 test episodes before and after; in fp32, which is the same on every machine up to rounding."""
    spec = find(task)
    own = tuned("grpo", spec.id, None)
    policy = load_local(own.model, seed=0, device="cpu")
    recipe = grpo.recipe(replace(grpo.Args(), **own.args, autocast=False))
    result = loop.run(recipe, policy, task=spec.id, folder=tmp_path / "run", quiet=True)
    assert result.paired_gain.mean >= 0.1
    assert result.paired_gain.low > 0
    options = {"blank": True}
    jobs = runner.episodes(spec.id, split="test", size=1000, count=256, options=options)
    blind = runner.evaluate(load_local(f"hf:{result.policy}", device="cpu"), jobs, engine=Engine())
    assert blind.success.mean < CHANCE[task] + 0.08  # three standard errors of 256 episodes
