from __future__ import annotations

import pytest

from lmgym.rollout.engine import Engine
from lmgym.rollout.planner import Fork, Planner
from lmgym.types import Job

from .fakes import Bytes, assert_trained_once

DICE = "test/Dice-v0"


def jobs(groups, tries, **fields):
    return [
        Job(task=DICE, index=g, attempt=n, id=f"g{g}-{n}", group=f"g{g}", **fields)
        for g in range(groups)
        for n in range(tries)
    ]


class Watching(Planner):
    """Notes the groups that have ended, and forks each first try once."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, list[str]]] = []

    def after_step(self, node):
        first = node.job.parent is None and node.job.attempt == 0 and len(node.turns) == 2
        return Fork(1) if first and not node.forks else super().after_step(node)

    def after_group(self, group):
        assert group.open == 0
        assert {job.id for job in group.jobs} >= {each.id for each in group.trajectories}
        self.ended.append((group.name, sorted(each.id for each in group.trajectories)))
        return ()


@pytest.mark.parametrize("concurrency", [1, 2, 5, 64])
@pytest.mark.parametrize("lockstep", [False, True])
def test_a_group_ends_once_when_all_its_tries_and_forks_have(concurrency, lockstep):
    planner = Watching()
    list(Engine(planner=planner, concurrency=concurrency, lockstep=lockstep).run(Bytes(pace=2), jobs(3, 3)))
    assert sorted(planner.ended) == [(f"g{g}", [f"g{g}-0", f"g{g}-0+2.0", f"g{g}-1", f"g{g}-2"]) for g in range(3)]


class Filling(Planner):
    """Plays tries until a group has five episodes, and one group of its own after them."""

    def after_group(self, group):
        if group.name.startswith("extra"):
            return []
        if len(group.jobs) < 5:
            return group.tries(2)
        return [Job(task=DICE, index=50 + n, id=f"extra-{group.name}-{n}", group=f"extra-{group.name}") for n in (0, 1)]


def test_a_planner_adds_tries_to_a_group_and_further_groups():
    episodes = list(Engine(planner=Filling()).run(Bytes(), jobs(2, 3, seed=4, budget=2, prompt="Roll.")))
    groups = {name: [e for e in episodes if e.group == name] for name in ("g0", "g1", "extra-g0", "extra-g1")}
    assert [len(members) for members in groups.values()] == [5, 5, 2, 2]
    first, *_, last = groups["g1"]
    assert (last.id, last.attempt, last.index, last.seed, last.prompt, last.stop) == (
        "g1-4",
        4,
        first.index,
        4,
        "Roll.",
        "budget",
    )
    assert len({tuple(turn.action for turn in e.turns) for e in groups["g1"]}) == 5  # each has noise of its own
    assert_trained_once(episodes)


def test_a_job_without_a_group_shares_one_with_its_forks():
    planner = Watching()
    list(Engine(planner=planner).run(Bytes(), [Job(task=DICE, index=0, id="a"), Job(task=DICE, index=1, id="b")]))
    assert planner.ended == [("a", ["a", "a+2.0"]), ("b", ["b", "b+2.0"])]


def test_a_group_whose_episode_was_given_up_ends_without_it(tmp_path):
    planner = Watching()
    mood = {"mood": "break", "every": True, "flag": str(tmp_path / "flag")}
    list(Engine(planner=planner).run(Bytes(), jobs(2, 2, options=mood)))
    assert [(name, len(ids)) for name, ids in sorted(planner.ended)] == [("g0", 3), ("g1", 0)]
