"""INSPO: the mass of instructions moves to the best, the worst is rewritten, and evaluations play the best."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from lmgym.baselines.recipes import inspo
from lmgym.errors import RecipeError
from lmgym.rollout.episodes import read
from lmgym.train import loop
from lmgym.train.parts.tasks import Population, Uniform
from lmgym.train.state import InstancePool
from lmgym.types import Completion
from tests.train.chain import SPEC, chain_policy, services_of
from tests.train.test_parts import episode

POOL = InstancePool(task="t", size=50)


class Reflector:
    """Services that answer with a counted instruction and keep the questions."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.questions = list(answers), []

    def judge(self, texts, *, model=None, max_tokens=64):
        self.questions += texts
        return [self.answers.pop(0) for _ in texts]


def played(population: Population, step: int, worth: dict[str, float]):
    """Episodes of the jobs of a step whose returns are what their instruction is worth."""
    jobs = population.draw(step, POOL)
    return [episode(job.id, job.group, worth[job.prompt], prompt=job.prompt) for job in jobs]


def test_the_mass_moves_to_the_best_instruction():
    population = Population(Uniform(8, tries=2), ["good", "bad", "worse"], every=0)
    worth = {"good": 1.0, "bad": 0.5, "worse": 0.0}
    for step in range(12):
        episodes = played(population, step, worth)
        assert all(len({e.prompt for e in episodes if e.group == group}) == 1 for group in {e.group for e in episodes})
        population.observe(episodes, None)
    late = Counter(job.prompt for step in range(12, 16) for job in population.draw(step, POOL))
    assert late["good"] > 0.9 * sum(late.values())
    assert population.prompt == "good"


def test_weights_are_moving_averages_and_draws_follow_their_softmax():
    """Numpy's: with eta 0.25, weights of 0.8 and 0.2 begin as they are, then 0.4 and 0.6 move them by a quarter."""
    population = Population(Uniform(400), ["x", "y"], temperature=0.5, rate=0.25, every=0)
    for returns in ({"x": 0.8, "y": 0.2}, {"x": 0.4, "y": 0.6}):
        population.observe([episode(name, name, value, prompt=name) for name, value in returns.items()], None)
    expected = np.array([0.75 * 0.8 + 0.25 * 0.4, 0.75 * 0.2 + 0.25 * 0.6])
    assert [population.weights[name] for name in "xy"] == pytest.approx(expected.tolist())
    chances = np.exp(expected / 0.5) / np.exp(expected / 0.5).sum()
    drawn = Counter(job.prompt for step in range(5) for job in population.draw(step, POOL))
    assert drawn["x"] / 2000 == pytest.approx(chances[0], abs=0.04)  # four standard errors


@pytest.mark.parametrize("worth", [-5.0, 5.0])
def test_an_instruction_without_a_group_is_neither_the_best_nor_forgotten(worth):
    population = Population(Uniform(1000), ["tried", "better", "new"])
    population.weights = {"tried": worth - 0.1, "better": worth}
    assert population.prompt == "better"
    drawn = Counter(job.prompt for job in population.draw(0, POOL))
    assert drawn["tried"] < drawn["new"] < drawn["better"]


def test_the_worst_gives_way_to_what_the_reflector_writes():
    population = Population(Uniform(8, tries=2), ["good", "bad"], temperature=10.0, every=2)
    services, worth = Reflector("  a new\none ", "good"), {"good": 1.0, "bad": 0.0, "a new one": 0.5}
    for step in range(4):
        population.observe(played(population, step, worth), services)
        if step == 1:
            assert sorted(population.instructions) == ["a new one", "good"]
            assert population.weights["a new one"] == pytest.approx(population.weights["good"])
    assert sorted(population.instructions) == ["a new one", "good"]  # one that is there already changes nothing
    assert len(services.questions) == 2
    assert "good" in services.questions[0]
    again = Population(Uniform(8, tries=2), ["good", "bad"], temperature=10.0, every=2)
    again.load_state_dict(population.state_dict())
    assert again.draw(4, POOL) == population.draw(4, POOL)
    assert again.prompt == population.prompt


def test_a_judge_is_asked_once_and_its_answers_outlive_the_run(tmp_path):
    policy, calls = chain_policy(), []

    def act(conversations):
        calls.append([each.messages[0].text for each in conversations])
        return [Completion(text=f"about {each.messages[0].text}") for each in conversations]

    policy.act = act
    for expected in ([["a", "b"], ["c"]], [["a", "b"], ["c"]]):
        with services_of(policy, tmp_path) as services:
            assert services.judge(["a", "b", "a"]) == ["about a", "about b", "about a"]
            assert services.judge(["c", "a"]) == ["about c", "about a"]
            assert calls == expected
    policy.update()
    services.judge(["a"])  # of other weights
    assert calls[-1] == ["a"]


def test_training_and_evaluation_play_under_instructions(tmp_path, monkeypatch):
    args = inspo.Args(instructions="a|b", warmup=0, steps=1, instances=2, group=2, evaluate=1, autocast=False)
    seen, outcomes = [], loop.runner.outcomes
    monkeypatch.setattr(
        loop.runner, "outcomes", lambda policy, jobs, **more: seen.extend(jobs) or outcomes(policy, jobs, **more)
    )
    loop.run(inspo.recipe(args), chain_policy(), task=SPEC.id, folder=tmp_path / "run", keep_episodes=[0], quiet=True)
    (path,) = (tmp_path / "run" / "episodes").iterdir()
    assert {each.prompt for each in read(path)} <= {"a", "b"}
    assert {job.prompt for job in seen} <= {"a", "b"}
    with pytest.raises(RecipeError, match="texts with bars"):
        inspo.recipe(replace(args, instructions=" | "))
