"""Directions: what is run, from one start, and the figures that come of it."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lmgym.baselines.curves import directions
from lmgym.baselines.curves.directions import DIRECTIONS, Line, reached, table
from lmgym.cli.curves import WAYS
from lmgym.cli.options import between
from lmgym.cli.train import settings
from lmgym.errors import RecipeError
from lmgym.rollout import dataset
from lmgym.rollout.engine import Engine
from lmgym.train import source
from lmgym.train.parts.planners import Wander
from lmgym.train.parts.tasks import Uniform
from lmgym.train.state import InstancePool
from tests.command import command
from tests.train.chain import SPEC, chain_policy

BY_NAME = {each.name: each for each in DIRECTIONS}
SHORT = {
    "archer": ("--fit", "1", "--rollouts", "4", "--critic-draws", "8", "--actor-draws", "8", "--budget", "3"),
    "rloo": ("--instances", "2", "--group", "2", "--budget", "3"),
    "ppo": ("--instances", "4", "--critic-steps", "1", "--budget", "3"),
    "filtered_bc": ("--instances", "2", "--group", "2"),
    "bc": ("--episodes", "4"),
    "ilql": ("--episodes", "8"),
}
LINE = Line(arm="a", seed=0, success=[0.2, 0.2, 0.6], steps=[0, 100, 300])


@pytest.mark.parametrize(
    ("level", "steps"),
    [(0.1, 0), (0.2, 0), (0.3, 150), (0.6, 300), (0.61, None)],  # a quarter of the way from 100 on
)
def test_a_level_is_reached_between_evaluations_in_proportion(level, steps):
    assert reached(LINE, level) == pytest.approx(steps)


def test_the_table_compares_the_arms_seed_by_seed():
    steps = BY_NAME["steps"]
    first, second = (arm.name for arm in steps.arms)
    lines = [
        Line(arm=first, seed=n, success=[0.2, end], steps=[0, 100], seconds=9.0) for n, end in ((0, 0.6), (1, 0.8))
    ]
    lines += [Line(arm=second, seed=n, success=[0.2, end], steps=[0, 400]) for n, end in ((0, 0.5), (1, 0.3))]
    rows = table(steps, lines).splitlines()
    assert rows[0].endswith("; guess_number")
    # the second ends at 40 % on average: the first is there after 50 and 33 of its 100 steps, the second once, at 267
    assert rows[4] == f"| {first} | 2 | 20.0 % [20.0, 20.0] | 70.0 % [60.0, 80.0] | 100 | 42 (2 of 2) | 9 |"
    assert rows[5] == f"| {second} | 2 | 20.0 % [20.0, 20.0] | 40.0 % [30.0, 50.0] | 400 | 267 (1 of 2) | 0 |"
    assert rows[7] == f"{first} less {second} at the end, paired by seed: +30.0 [+10.0, +50.0]; level 40.0 %."


@pytest.mark.parametrize("direction", DIRECTIONS, ids=lambda each: each.name)
def test_arms_begin_with_one_policy_and_every_run_and_recording_is_its_own(direction, tmp_path):
    (start,) = {directions.start_of(direction, 1, arm, tmp_path) for arm in direction.arms}
    for each in [directions.words(direction, arm, 1, tmp_path) for arm in direction.arms]:
        assert each[each.index("--model") + 1] == f"hf:{start / 'policy'}"
        assert each[each.index("--seed") + 1] == "1"
        assert ("--recorded" in each) == bool(direction.recordings)
    runs = {directions.run_of(direction, arm, seed, tmp_path) for arm in direction.arms for seed in range(3)}
    assert len(runs) == 3 * len(direction.arms)
    said = [
        directions.record_words(direction, recording, seed, tmp_path, tmp_path / "0.jsonl")
        for recording in direction.recordings
        for seed in range(3)
    ]
    assert all(each.count("--seed") == 1 for each in said)
    assert len({each[each.index("--seed") + 1] for each in said}) == len(said)


def test_a_reward_is_all_in_which_the_arms_of_the_first_direction_differ(tmp_path):
    dense, sparse = (directions.words(BY_NAME["reward"], arm, 0, tmp_path) for arm in BY_NAME["reward"].arms)
    different = [pair for pair in zip(dense, sparse, strict=True) if pair[0] != pair[1]]
    assert different[1:] == [("rewards=dense", "rewards=sparse")]  # besides the folder


def test_a_share_of_a_wanderers_turns_is_random_and_nothing_tells():
    jobs = Uniform(40).draw(0, InstancePool(task=SPEC.id, size=1000))
    episodes = source.demonstrated(Engine(planner=Wander(1, 3)), chain_policy(), jobs)
    right = [[turn.action == "acb"[int(turn.observation.text)] for turn in each.turns] for each in episodes]
    assert all(each[0] and all(each[3:]) for each in right)
    assert 0 < sum(each[1] for each in right) < 20  # one in four, by chance
    assert not any("stumble" in turn.info for each in episodes for turn in each.turns)
    jobs = Uniform(100).draw(0, InstancePool(task=SPEC.id, size=1000))
    episodes = source.demonstrated(Engine(planner=Wander(0, 9, share=0.5)), chain_policy(), jobs)
    firsts = [each.turns[0] for each in episodes]
    wrong = sum(turn.action != "acb"[int(turn.observation.text)] for turn in firsts)
    assert 25 <= wrong <= 50  # 0.5 of 3/4, of 100 first turns


def test_tables_go_between_their_own_markers():
    first, last = WAYS
    assert between(f"a{first}old{last}b", "new", *WAYS) == f"a{first}\nnew\n{last}b"


@pytest.mark.slow
@pytest.mark.parametrize("direction", DIRECTIONS, ids=lambda each: each.name)
def test_every_arm_runs(direction, tmp_path, monkeypatch):
    """The real commands in this process, with less of everything."""
    few = [replace(each, episodes=6, tries=1) for each in direction.recordings]
    arms = [replace(arm, words=(*arm.words, "--steps", "1", *SHORT[arm.algorithm])) for arm in direction.arms]
    direction = replace(direction, arms=arms, recordings=few, warmup=1, episodes=4)

    def call(folder, arguments, name):
        assert command(*arguments) == 0

    monkeypatch.setattr(directions, "call", call)
    monkeypatch.setattr(directions, "make", lambda folder, arguments, out: call(folder, arguments, out.name))
    told = []
    directions.make_all([direction], [0], tmp_path, at_once=1, tell=told.append, settings=settings)
    assert len(told) == 1 + len(arms)
    lines = [directions.read(direction, arm, 0, tmp_path) for arm in arms]
    assert all(len(line.success) >= 2 for line in lines)
    assert direction.claim in table(direction, lines)
    for recording in few:
        path = directions.data_of(direction, 0, tmp_path) / f"{few.index(recording)}.jsonl"
        assert len(list(dataset.read(path))) == 6
        assert all(json.loads(line)["options"] == {} or direction.options for line in path.read_text().splitlines())


def test_arms_with_other_arguments_are_refused_before_anything_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(directions, "call", lambda *_: pytest.fail("called"))
    monkeypatch.setattr(directions, "make", lambda *_: pytest.fail("made"))
    steps = BY_NAME["steps"]
    run = directions.run_of(steps, steps.arms[1], 0, tmp_path)
    run.mkdir()
    known = settings(directions.words(steps, steps.arms[1], 0, tmp_path)).arguments
    (run / "run.json").write_text(json.dumps({"arguments": {**known, "steps": 11}}))
    with pytest.raises(RecipeError, match=f"{run.name} has a run with steps=11, not 10"):
        directions.make_all([steps], [0], tmp_path, at_once=1, tell=print, settings=settings)


@pytest.mark.parametrize("option", [["--tune"], ["--part", "x"]])
def test_what_directions_do_not_take_is_refused(option, capsys):
    assert command("curves", "--size", "directions", *option) != 0
    assert "no --tune, --algorithm or --part" in capsys.readouterr().err
