"""ViGoRL: the tree of a group, where UCT continues it, and the trace in which a wrong branch stays."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.baselines.recipes import vigorl
from lmgym.policy.scripted import Scripted, hinted
from lmgym.rollout.engine import Engine
from lmgym.rollout.planner import Group
from lmgym.train.parts.search import (
    DOUBT,
    TRACE,
    SearchNode,
    SearchTraces,
    shortest_success,
    successful_traces,
    tree,
)
from lmgym.train.parts.tasks import Uniform
from lmgym.train.state import InstancePool
from lmgym.types import Completion, Trajectory
from tests.train.test_parts import EPISODE, TURN

TASK = "lmgym/VisualSearchViGoRL-v0"
POOL = InstancePool(task=TASK, size=50)


def crop(x: int, y: int) -> str:
    call = f'{{"name": "search_coordinate", "arguments": {{"coordinate": [{x}, {y}]}}}}'
    return f"<think>Perhaps ({x}, {y}).</think><tool_call>{call}</tool_call>"


def answer(letter: str) -> str:
    return f"<think>The letter is {letter}.</think><answer>{letter}</answer>"


def episode(*actions: str, won: bool) -> Trajectory:
    turns = tuple(replace(TURN, completion=Completion(text=a, ids=(1,)), action=a) for a in actions)
    return replace(EPISODE, id="-".join(actions), turns=turns, info={"success": won, "score": float(won)})


EPISODES = [
    episode("right", "A", won=True),
    episode("wrong", "B", won=False),
    episode("wrong", "again", "A", won=True),
    episode("C", won=False),
]


def test_every_episode_counts_for_all_nodes_on_its_path():
    root = tree(EPISODES)
    assert (root.visits, root.successes) == (4, 2)
    assert {action: (n.visits, n.successes) for action, n in root.children.items()} == {
        "right": (1, 1),
        "wrong": (2, 1),
        "C": (1, 0),
    }
    assert root.children["C"].through is None
    assert shortest_success(root) == ["right", "A"]
    assert shortest_success(SearchNode()) is None


def test_a_simulation_descends_by_mean_success_and_what_was_seldom_tried():
    episodes = [replace(each, id=f"g-{n}") for n, each in enumerate(EPISODES)]
    group = Group("g", jobs=Uniform(1, tries=4).draw(0, POOL), trajectories=episodes)
    root = tree(episodes)
    wide = SearchTraces(9, width=4).simulation(group, root)
    assert wide.parent is None  # the root may have a fourth child: another try
    greedy = SearchTraces(9, width=3, explore=0.0).simulation(group, root)
    assert (greedy.parent, len(greedy.prefix)) == ("g-0", 1)  # below "right", which always won
    curious = SearchTraces(9, width=3, explore=9.0).simulation(group, root)
    assert len(curious.prefix) == 1


@pytest.mark.parametrize(("explore", "descends"), [(2.0, "often"), (2.03, "once")])
def test_uct_weighs_what_won_against_what_was_seldom_tried(explore, descends):
    """1 + c sqrt(ln 4 / 3) against 0 + c sqrt(ln 4 / 1), which are equal at c = 2.0094."""
    won = [replace(episode("often", "A", won=True), id=f"g-{n}") for n in range(3)]
    episodes = [*won, replace(episode("once", "B", won=False), id="g-3")]
    group = Group("g", jobs=Uniform(1, tries=4).draw(0, POOL), trajectories=episodes)
    job = SearchTraces(9, width=2, explore=explore).simulation(group, tree(episodes))
    assert [turn.action for turn in job.prefix] == [descends]


@pytest.mark.parametrize(
    ("episodes", "options", "expected"),
    [
        (EPISODES, {"wrong": 0}, ["right", "A"]),
        (EPISODES, {"wrong": 1}, ["wrong", "right", "A"]),
        (EPISODES, {"wrong": 3}, ["wrong", "right", "A"]),
        (EPISODES, {"wrong": 1, "turns": 2}, ["right", "A"]),  # it keeps within the limit
        ([EPISODES[1]], {}, []),  # and needs a success
    ],
)
def test_a_trace_has_a_wrong_branch_before_the_right_one(episodes, options, expected):
    assert SearchTraces(9, **options).trace(tree(episodes)) == expected


def search(answers: Scripted, **options) -> list[Trajectory]:
    planner = SearchTraces(5, **options)
    return list(Engine(planner=planner, lockstep=True).run(answers, Uniform(3).draw(0, POOL)))


def test_a_search_of_real_pictures_ends_in_traces_that_go_back_and_win():
    def guess(conversation) -> str:
        """Crop the four corners in turn, by the noise of the episode, then guess."""
        looked = len(conversation.messages) > 2
        place = sum(conversation.noise) % 4
        return answer("?") if looked else crop(16 + 32 * (place % 2), 16 + 32 * (place // 2))

    episodes = search(Scripted("guess", guess))
    traces = [each for each in episodes if TRACE in each.tags]
    assert len(episodes) == 3 * (5 + 1)
    assert len(traces) == 3
    assert all(each.success for each in traces)
    assert {each.id for each in episodes} - successful_traces(episodes).drop == {each.id for each in traces}
    doubts = [[DOUBT in turn.action for turn in each.turns] for each in traces]
    assert any(any(each) for each in doubts)
    for each, doubted in zip(traces, doubts, strict=True):
        assert all(turn.kind == "given" for turn in each.turns)
        assert not doubted[0]
        assert len(each.turns) == 2 + sum(doubted)


def test_without_the_expert_a_group_without_success_has_no_trace():
    episodes = search(Scripted("no", lambda _: answer("?")), expert=False)
    assert len(episodes) == 3 * 5
    assert len(successful_traces(episodes).drop) == len(episodes)
    assert all(each.success for each in search(hinted("demonstrator"), expert=False))


def test_the_stages_are_search_traces_and_rl():
    recipe = vigorl.recipe(vigorl.Args())
    assert [stage.name for stage in recipe.stages] == ["sft", "before RL", "search", "traces", "rl", "after RL"]
    straight = vigorl.recipe(vigorl.Args(wrong=0)).stages[2]
    assert straight.planner.wrong == 0
