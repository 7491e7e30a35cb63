"""Tasks, rewards, losses and stages with state: what they see, and that a resumed run goes on with it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch

from lmgym.baselines import grpo
from lmgym.errors import RecipeError
from lmgym.rollout.segments import segments
from lmgym.train import preflight, source
from lmgym.train.interfaces import Parts, StatefulLoss, Term, no_credit
from lmgym.train.parts.losses import nll, reinforce
from lmgym.train.parts.stores import SelfImitation
from lmgym.train.parts.tasks import Band, Ramp, Uniform
from lmgym.train.recipe import Recipe
from lmgym.train.schedule import Until
from lmgym.train.stages import Rl
from lmgym.train.state import InstancePool
from tests.train.chain import SPEC, chain_policy, services_of
from tests.train.interrupted import Interrupted, dying
from tests.train.test_parts import episode
from tests.train.test_resume import figures, weights
from tests.train.victim import ARGS, train

POOL = InstancePool(task="t", size=5)


@dataclass
class MeanEntropy:
    """A loss that pulls towards the mean entropy of all batches so far."""

    means: list[float] = field(default_factory=list)

    def __call__(self, scored):
        usual = sum(self.means) / max(1, len(self.means))
        return 0.1 * (scored.entropy - usual).square(), {}

    def update(self, batch):
        self.means.append(float(batch.entropy[batch.mask].mean()))

    def state_dict(self) -> dict[str, Any]:
        return {"means": self.means}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.means = state["means"]


def later_is_dearer(trajectories, services, progress):
    """Take a growing cost from the last turn of every episode but the best of all."""
    best = max(trajectories, key=lambda each: each.reward)
    cost = 0.1 * progress.share

    def charged(trajectory):
        *before, last = trajectory.turns
        return replace(trajectory, turns=(*before, replace(last, reward=last.reward - cost)))

    return [each if each is best else charged(each) for each in trajectories]


def returns(batch):
    return (batch.returns()[batch.episode][:, None] * batch.mask).float()


def recipe() -> Recipe:
    """Three RL stages, the second and third with parts of their own; all of them with state."""
    whole = grpo.recipe(replace(ARGS, warmup=1, steps=2))
    before, rl = whole.stages[0], whole.stages[2]
    tasks = Ramp(Band(Uniform(3, tries=4, first=6), low=0.05, high=0.9, attempts=4), ((0, 2), (1, 4)))
    losses = [Term(loss=reinforce), Term(loss=MeanEntropy(), name="usual")]
    imitated = Term(loss=reinforce, name="imitated", source="store")
    second = Parts(
        tasks=tasks.tasks,
        reward=[later_is_dearer],
        credit=whole.credit,
        loss=[*losses, imitated],
        store=SelfImitation,
        store_credit=returns,
    )
    own = Rl(name="second", until=Until(steps=3), parts=second, optimiser=rl.optimiser)
    stages = [before, rl, own, replace(own, name="third", until=Until(steps=1))]
    return replace(whole, tasks=tasks, loss=losses, stages=stages)


def test_a_resumed_run_ends_with_the_same_bits(tmp_path):
    one = recipe()
    train(tmp_path / "whole", recipe=one)
    rows = figures(tmp_path / "whole")
    assert any(row.get("stored_episodes") for row in rows)
    assert {row["stage"] for row in rows} == {"sft", "rl", "second", "third"}
    assert one.tasks.tasks.results == {}  # the recipe keeps no state of the run
    assert all(not term.loss.means for term in one.loss if isinstance(term.loss, StatefulLoss))
    for resume, place in ((False, (1, 1)), (True, (2, 2))):  # in the midst of either stage
        midst = dying(lambda run, place=place: (run.cursor.stage, run.cursor.step) == place, written=True)
        with midst, pytest.raises(Interrupted):
            train(tmp_path / "cut", recipe=recipe(), resume=resume)
    train(tmp_path / "cut", recipe=recipe(), resume=True)
    assert figures(tmp_path / "cut") == rows
    assert torch.equal(weights(tmp_path / "cut"), weights(tmp_path / "whole"))


def test_a_ramp_raises_the_turn_limit_at_its_steps():
    ramp = Ramp(Uniform(1), ((0, 2), (3, 5)))
    assert [ramp.draw(step, POOL)[0].budget for step in range(5)] == [2, 2, 2, 5, 5]
    assert [job.index for job in ramp.draw(1, POOL)] == [job.index for job in Uniform(1).draw(1, POOL)]
    for limits in ((), ((1, 2),), ((0, 2), (0, 3)), ((0, 0),)):
        with pytest.raises(RecipeError, match="turn limits begin at step 0"):
            Ramp(Uniform(1), limits)


def results(index: int, *successes: bool):
    return [episode(f"{index}-{n}", "g", 0.0, index=index, info={"success": won}) for n, won in enumerate(successes)]


def test_a_band_leaves_out_what_is_too_hard_or_too_easy():
    band = Band(Uniform(5), low=0.25, high=0.75, attempts=4)
    assert sorted(job.index for job in band.draw(0, POOL)) == [0, 1, 2, 3, 4]
    played = {0: (False,) * 4, 1: (True,) * 4, 2: (True, False, False, False), 3: (False,) * 3}
    band.observe([each for index, won in played.items() for each in results(index, *won)], None)
    drawn = {job.index for step in range(1, 4) for job in band.draw(step, POOL)}
    assert drawn == {2, 3, 4}
    band.observe([each for index in (2, 3, 4) for each in results(index, *(True,) * 20)], None)
    assert len({job.index for step in range(4, 6) for job in band.draw(step, POOL)}) > 1  # none is left: all again


def test_the_likelihood_of_an_answer_is_that_of_the_sampler(tmp_path):
    with services_of(chain_policy(), tmp_path) as services:
        episodes = source.played(services.engine(), services.policy, Uniform(5).draw(0, services.pool))
        rows = [segments(each)[0] for each in episodes]
        asked = [(row.ids[: row.sampled.index(True)], row.ids[row.sampled.index(True) :][:2]) for row in rows]
        found = services.likelihoods(asked, tokens=30)
        for row, logprobs in zip(rows, found, strict=True):
            first = row.sampled.index(True)
            sampled = [p for p, own in zip(row.logprobs[first:][:2], row.sampled[first:], strict=False) if own]
            assert logprobs[: len(sampled)].tolist() == pytest.approx(sampled, abs=1e-4)
        assert services.likelihoods([]) == []


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"requires": frozenset({"answer"})}, "tells no answer"),
        ({"reward_terms": frozenset({"progress"})}, "reads the reward term 'progress', and test/Chain-v0 gives reward"),
    ],
)
def test_a_task_that_lacks_what_a_stage_needs_is_refused(tmp_path, parts, words):
    stage = Rl(until=Until(steps=1), parts=Parts(credit=no_credit, loss=[Term(loss=nll)], **parts))
    with pytest.raises(RecipeError, match=words):
        preflight.check(Recipe(stages=[stage]), SPEC.id, {}, tmp_path)
    preflight.check(Recipe(stages=[replace(stage, until=Until(steps=0))]), SPEC.id, {}, tmp_path)
