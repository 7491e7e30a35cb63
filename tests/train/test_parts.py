from __future__ import annotations

import itertools
import json
from dataclasses import replace

import pytest

from lmgym.errors import RecipeError
from lmgym.train import curve
from lmgym.train.figures import of_demonstrations, of_play
from lmgym.train.interfaces import NoTasks
from lmgym.train.log import Log, read_metrics, replace_file
from lmgym.train.parts.filters import (
    drop_flat_groups,
    drop_lone_episodes,
    drop_outside,
    keep_best,
    keep_top,
    keep_uncertain,
    keep_varied,
    mask_truncated,
    mask_void,
)
from lmgym.train.parts.rewards import invalid_cost, limit_ends
from lmgym.train.schedule import Until, linear
from lmgym.train.state import InstancePool
from lmgym.types import Completion, Message, Trajectory, Turn

TURN = Turn(observation=Message(role="user", text="?"), completion=Completion(text="x"), action="x")
EPISODE = Trajectory(id="e", root="e", task="t", split="train", info={"score": 0.0, "success": False})


def episode(name: str, group: str, *rewards: float, **fields) -> Trajectory:
    turns = tuple(replace(TURN, reward=reward) for reward in rewards)
    return replace(EPISODE, id=name, group=group, turns=turns, **fields)


def test_groups_without_variance_or_that_lost_an_episode_are_dropped():
    found = [episode("a", "1", 0.1, 0.2), episode("b", "1", 0.3), episode("c", "2", 0.0), episode("d", "2", 1.0)]
    assert drop_flat_groups(found).drop == {"a", "b"}
    found = [episode("a", "1", 0.1), episode("b", "1", 0.3), episode("c", "2", 1.0), episode("d", "3", 0.0)]
    found += [episode("e", "3", 1.0, seat="other")]  # seats are compared among themselves
    found = [replace(each, root=each.id) for each in found]
    found += [replace(episode("f", "2", 0.0), root="c", parent="c", forked_at=1)]  # no try of its own
    assert drop_lone_episodes(found).drop == {"c", "d", "e", "f"}


def test_cut_episodes_are_masked_and_those_with_an_invalid_action_or_cost():
    found = [episode("a", "1", 0, 0, truncated=True), episode("b", "1", 1)]
    assert mask_truncated(found).mask == {("a", 0), ("a", 1)}
    assert not mask_truncated(found).drop
    found = [replace(EPISODE, id="a", turns=(TURN, replace(TURN, info={"valid": False}))), episode("b", "1", 1)]
    assert mask_void(found).mask == {("a", 0), ("a", 1)}
    assert not mask_void(found).drop
    turns = (replace(TURN, info={"valid": False}, reward=0.5, terms={"reward": 0.5}), TURN)
    charged = invalid_cost(replace(EPISODE, turns=turns), cost=0.2)
    assert charged.turns[0].reward == pytest.approx(0.3)
    assert charged.turns[0].terms == {"reward": 0.5, "invalid": -0.2}
    assert charged.turns[1] is TURN


def played(group: str, *successes: bool):
    return [episode(f"{group}{n}", group, float(won), info={"success": won}) for n, won in enumerate(successes)]


def test_groups_are_kept_by_their_successes_or_variance_and_turns_by_their_entropy():
    found = [*played("a", True, True), *played("b", True, False, False, False), *played("c", False, False)]
    assert drop_outside(found, low=0.0, high=0.9).drop == {"a0", "a1"}
    assert drop_outside(found, low=0.3, high=1.0).drop == {"b0", "b1", "b2", "b3", "c0", "c1"}
    found = [
        episode(f"{g}{n}", g, r) for g, rs in {"a": (0, 1), "b": (0, 3), "c": (2, 2)}.items() for n, r in enumerate(rs)
    ]
    assert keep_varied(found, share=0.3).drop == {"a0", "a1", "c0", "c1"}
    assert keep_varied(found, share=0.7).drop == {"c0", "c1"}
    turns = [replace(TURN, completion=Completion(text="x", ids=(1, 2), entropy=(e, e + 0.2))) for e in (0.5, 0.1, 0.9)]
    found = [replace(EPISODE, id="a", turns=(*turns, TURN)), replace(EPISODE, id="b", turns=(turns[1],))]
    assert keep_uncertain(found, share=0.5).mask == {("a", 1), ("b", 0)}
    assert keep_uncertain(found, share=0.1).mask == {("a", 0), ("a", 1), ("b", 0)}


def test_only_limits_of_turns_count_as_ends():
    for stop, ends in (("max_turns", True), ("budget", True), ("context", False)):
        found = limit_ends(episode("a", "1", 0, truncated=True, stop=stop))
        assert (found.terminated, found.truncated) == (ends, not ends)


def test_a_stage_needs_an_end_and_ends_at_the_first_of_its_limits():
    assert Until(steps=0).reached(0, 0)
    with pytest.raises(RecipeError, match="needs an end"):
        Until()
    with pytest.raises(RecipeError, match="Uniform"):
        NoTasks().draw(0, InstancePool(task="t", size=1))
    until = Until(steps=10, seconds=60)
    assert until.progress(3, 45).share == 0.75
    assert until.expected(3, 45) == 4  # the fourth ends at the limit
    assert until.expected(1, 1) == 10
    assert until.expected(0, 0) is None
    assert until.expected(1, 90) == 1
    assert Until(steps=10).expected(3, 45) is None
    assert until.progress(8, 6).share == 0.8
    assert until.progress(1, 9).share == until.progress(1, 5).share == 0.1  # a slow start, not measured yet
    assert until.progress(2, 12).share == 0.2  # all steps fit into the time, which changes nothing
    assert Until(seconds=60).progress(3, 45).share == 0.75
    assert not until.reached(9, 59)
    assert until.reached(10, 0)
    assert until.reached(0, 60)
    assert linear(1.0, 0.0)(until.progress(100, 0)) == 0.0


def test_figures_of_play_are_means_over_episodes_and_turns():
    found = [
        episode("a", "1", 0, 1, info={"score": 1.0, "success": True}),
        replace(episode("b", "1", 0), truncated=True, turns=(replace(TURN, info={"valid": False}),)),
        episode("c", "2", 0),
        episode("d", "2", 0),
    ]
    figures = of_play(found)
    assert figures["success"] == 0.25
    assert figures["turns"] == 1.25
    assert figures["truncated"] == 0.25
    assert figures["invalid"] == 0.2
    assert figures["flat_groups"] == 0.5
    shown = of_demonstrations(found)
    assert shown["demonstrated_success"] == 0.25
    assert "success" not in shown
    untrained = [replace(each, tags={"trained": False}) for each in found]
    assert of_play(untrained) == {"episodes": 0, "sampled_tokens": 0, "played_turns": 0}
    assert "demonstrated_success" not in of_demonstrations(untrained)


def test_the_log_goes_on_where_the_checkpoint_was_and_a_file_is_replaced_whole_or_not_at_all(tmp_path):
    log = Log(tmp_path, quiet=True)
    log.write({"stage": "rl", "loss": 1.0}, step=1)
    offset = log.offset
    log.write({"stage": "rl", "loss": 2.0}, step=2)
    log.close()
    again = Log(tmp_path, offset=offset, step=1, quiet=True)
    again.write({"stage": "rl", "loss": 3.0}, step=2)
    again.close()
    assert [row["loss"] for row in read_metrics(tmp_path)] == [1.0, 3.0]
    replace_file(tmp_path / "a.json", "old")
    (tmp_path / "a.json.partial").mkdir()
    with pytest.raises(RecipeError, match="cannot write"):
        replace_file(tmp_path / "a.json", "new")
    assert (tmp_path / "a.json").read_text() == "old"


def test_a_curve_is_drawn_of_any_log(tmp_path):
    rows = [{"stage": "rl", "run_step": n, "success": n / 9, "loss": 0.1, "entropy": 1.0} for n in range(9)]
    rows += [
        {"stage": "after RL", "run_step": 9, "evaluated_success": 0.5, "evaluated_low": 0.4, "evaluated_high": 0.7}
    ]
    for content in ("", "".join(json.dumps(row) + "\n" for row in rows)):
        (tmp_path / "metrics.jsonl").write_text(content)
        assert curve.draw(tmp_path).read_bytes().startswith(b"\x89PNG")


def ranked(*returns, groups="aaaa"):
    pairs = enumerate(zip(returns, groups, strict=True))
    return [episode(str(number), group, reward) for number, (reward, group) in pairs]


def kept(trajectories, *, by=keep_top, **args):
    return sorted({each.id for each in trajectories} - by(trajectories, **args).drop)


def test_the_upper_share_of_each_group_is_kept_if_it_beats_the_worst():
    assert kept(ranked(3.0, 1.0, 5.0, 2.0), share=0.5) == ["0", "2"]
    assert kept(ranked(3.0, 1.0, 5.0, 9.0, groups="aabb"), share=0.5) == ["0", "3"]
    assert kept(ranked(3.0, 1.0, 5.0, 9.0, groups="aabb"), share=0.5, within="all") == ["2", "3"]
    assert kept(ranked(0.0, 0.0, 0.0, 0.0), share=0.5) == []
    assert kept(ranked(0.0, 0.0, 1.0, 0.0), share=0.75) == ["2"]


@pytest.mark.parametrize("by", [keep_top, keep_best])
def test_ties_at_the_border_are_kept_or_cut_and_all_of_it_is_all_of_it(by):
    assert kept(ranked(1.0, 1.0, 1.0, 0.0), by=by, share=0.25) == ["0", "1", "2"]
    assert kept(ranked(1.0, 1.0, 1.0, 0.0), by=by, share=0.25, ties="cut") == ["0"]
    whole = ranked(0.0, 0.0, 1.0, 3.0, groups="aabc")
    for within, ties in itertools.product(("group", "all"), ("keep", "cut")):
        assert kept(whole, by=by, share=1.0, within=within, ties=ties) == list("0123"), (within, ties)


def test_a_data_set_is_ranked_within_its_tasks_and_cut_by_successes_and_ties():
    data = ranked(3.0, 1.0, 2.0, 2.0, 9.0, 8.0, 5.0, 4.0, 4.0, 0.0, groups="aaaabbcdef")
    assert kept(data, by=keep_best, share=0.5) == ["0", "2", "3", "4", "6", "7", "8"]
    assert kept(data, by=keep_best, share=0.5, ties="cut") == ["0", "2", "4", "6", "7"]
    assert kept(data, by=keep_best, share=0.2, within="all") == ["4", "5"]
    data = ranked(0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 1.0, groups="aabbccde")  # a failed twice, b never
    assert kept(data, by=keep_best, share=0.3) == ["2", "3", "4", "7"]
    assert kept(data, by=keep_best, share=0.3, within="all") == ["2", "3", "4", "7"]
    data = ranked(1.0, 1.0, 1.0, 1.0, groups="abcd")
    assert kept(data, by=keep_best, share=0.5) == ["0", "1", "2", "3"]
    assert kept(data, by=keep_best, share=0.5, ties="cut") == ["0", "1"]
