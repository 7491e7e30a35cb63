"""Forks that start from a saved state make the same trajectories as forks by replay."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from lmgym.errors import InstanceError
from lmgym.rollout.engine import Engine
from lmgym.rollout.env_handle import EnvHandle, Setting
from lmgym.rollout.episode_state import SeatConfig
from lmgym.rollout.planner import Fork, Planner
from lmgym.types import Job

from .fakes import CONTEXTS, Bytes, Dicing, assert_rescored, assert_trained_once

DICE, TRIO = "test/SavedDice-v0", "test/SavedTrio-v0"


class Saving(Dicing):
    def saves(self, node):
        return True


class Branching(Planner):
    """Forks at the present turn and before the latest answer, with fresh chance and without."""

    def __init__(self, *, saving):
        self.saving = saving

    def saves(self, node):
        return self.saving

    def after_step(self, node):
        turns = len(node.turns)
        if len(node.job.id) > 10 or not 2 <= turns <= 3:
            return super().after_step(node)
        return Fork(2, reseed=7) if turns == 2 else Fork(turn=turns - 1)


def jobs(count, task=DICE, **fields):
    return [Job(task=task, index=i, seed=i, id=f"j{i}", prompt="Roll.", **fields) for i in range(count)]


def played(planner, given, *, policy=None, **engine):
    """Return the trajectories by id and seat, and the counts of the run."""
    made = Engine(planner=planner, lockstep=True, **engine)
    trajectories = list(made.run(policy or Bytes(), given))
    return {(each.id, each.seat): each for each in trajectories}, made.stats


def assert_same(restored, replayed):
    assert restored.keys() == replayed.keys()
    for key, trajectory in restored.items():
        for each in fields(trajectory):
            assert getattr(trajectory, each.name) == getattr(replayed[key], each.name), (key, each.name)


@pytest.mark.parametrize("player", ["inline", "thread", "process"])
def test_a_restored_fork_is_the_same_as_a_replayed_one(player):
    restored, stats = played(Branching(saving=True), jobs(4), player=player, concurrency=3)
    replayed, none = played(Branching(saving=False), jobs(4), player=player, concurrency=3)
    assert (stats.restored, none.restored) == (len(restored) - 4, 0)
    assert stats.restored > 12
    assert stats.steps < none.steps
    assert list(restored) == list(replayed)  # in the same order
    assert_same(restored, replayed)
    assert_trained_once(list(restored.values()))


@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_planner_does_restored_forks_are_the_same(seed, context):
    given = jobs(12, options={"saved": "even"})
    restored, stats = played(Saving(seed), given, context=context, concurrency=5)
    replayed, _ = played(Dicing(seed), given, context=context, concurrency=5)
    assert stats.restored
    assert_same(restored, replayed)
    assert_trained_once(list(restored.values()))
    assert_rescored(restored.values())


def test_a_restored_fork_has_the_seat_on_turn_and_the_rewards_of_all():
    class EachSeat(Branching):
        def after_step(self, node):
            if node.job.parent is None and len(node.turns) == 1:
                return Fork(turn=1 if node.seat == "black" else None)
            return Planner.after_step(self, node)

    engine = {"seats": {"black": SeatConfig(prompt="You are black."), "red": SeatConfig(trained=False)}}
    restored, stats = played(EachSeat(saving=True), jobs(2, TRIO), **engine)
    replayed, _ = played(EachSeat(saving=False), jobs(2, TRIO), **engine)
    assert stats.restored == len(restored) / 3 - 2 > 0
    assert_same(restored, replayed)


def test_a_fork_that_breaks_when_it_is_restored_is_replayed():
    class OneFork(Branching):
        def after_step(self, node):
            return Fork() if node.job.id == "j0" and len(node.turns) == 2 else Planner.after_step(self, node)

    given = jobs(15, options={"saved": "lost"})
    restored, stats = played(OneFork(saving=True), given)
    replayed, _ = played(OneFork(saving=False), given)
    assert (stats.restored, stats.retried, stats.latest) == (1, 1, "the saved dice are lost")
    assert_same(restored, replayed)


def test_an_oracle_that_is_followed_is_not_saved():
    restored, stats = played(Branching(saving=True), jobs(2), policy=Bytes(wants=frozenset({"oracle"})))
    replayed, _ = played(Branching(saving=False), jobs(2), policy=Bytes(wants=frozenset({"oracle"})))
    assert stats.restored == 0
    assert_same(restored, replayed)
    restored, stats = played(Branching(saving=True), jobs(2), policy=Bytes(wants=frozenset({"admissible"})))
    assert stats.restored == len(restored) - 2


def test_states_are_kept_for_the_present_turn_and_before_the_latest_answer_only():
    seen = []

    class Watching(Branching):
        def after_step(self, node):
            seen.append([result.state is not None for result in node.results])
            return Planner.after_step(self, node)

    played(Watching(saving=True), jobs(1))
    assert seen == [[False, True], [False, True, True], [False, False, True, True]]


def test_a_state_keeps_nothing_of_the_environment_that_saved_it():
    setting = Setting(task=DICE, split="train", options={})
    first, second = EnvHandle(setting), EnvHandle(setting)
    first.reset(5, {"index": 3}, {})
    saved = first.step("roll", None, True)
    rest = [first.step("roll") for _ in range(3)]
    second.reset(6, {"index": 4}, {})
    assert second.restore(saved, {}) == saved
    assert [second.step("roll") for _ in range(3)] == rest
    assert second.restore(saved, {}).state == saved.state  # as often as asked
    assert [second.step("roll") for _ in range(3)] == rest
    assert rest[-1].truncated
    with pytest.raises(InstanceError, match="has no state"):
        second.restore(replace(saved, state=None), {})
