"""The practitioner's guide: one set of options makes three algorithms, each with its own parts."""

from __future__ import annotations

import pytest

from lmgym.baselines.recipes import practitioner
from lmgym.errors import RecipeError
from lmgym.train.state import InstancePool


@pytest.mark.parametrize("algorithm", ["ppo", "rloo", "grpo"])
def test_all_algorithms_play_as_many_episodes_at_the_same_temperature(algorithm):
    recipe = practitioner.recipe(practitioner.Args(estimator=algorithm, instances=3, group=4))
    jobs = recipe.tasks.draw(0, InstancePool(task="t", size=100))
    assert len(jobs) == 12
    assert len({job.group for job in jobs}) == (12 if algorithm == "ppo" else 3)
    assert recipe.temperature == 0.7


def test_each_algorithm_has_its_own_critic_and_penalty():
    made = {name: practitioner.recipe(practitioner.Args(estimator=name)) for name in ("ppo", "rloo", "grpo")}
    assert [name for name, recipe in made.items() if recipe.critic] == ["ppo"]
    assert [name for name, recipe in made.items() if recipe.reward_kl] == ["ppo", "rloo"]
    assert [name for name, recipe in made.items() if any(term.reference for term in recipe.loss)] == ["grpo"]


def test_an_algorithm_that_the_guide_does_not_have_is_refused():
    with pytest.raises(RecipeError, match="estimator is ppo or rloo or grpo; got dpo"):
        practitioner.Args(estimator="dpo")


def test_arms_differ_in_rewards_algorithm_imitation_or_world():
    arms = {arm.name: arm for arm in practitioner.EXPERIMENT.arms}
    assert list(arms)[:2] == ["ppo, dense", "ppo, sparse"]
    assert arms["ppo, dense"].words == arms["ppo, sparse"].words
    assert len(arms) == 6
