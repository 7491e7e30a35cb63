"""Seats in training: who plays them, whose turns are learnt from, and what a resumed run restores."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmgym.baselines import grpo
from lmgym.errors import PolicyError, RecipeError
from lmgym.evaluation.policies import default_max_tokens
from lmgym.rollout.episodes import read
from lmgym.train import checkpoint, loop
from lmgym.train.api import run
from lmgym.train.log import read_metrics
from lmgym.train.seats import Seat, Seats
from tests.rollout.conftest import plugin
from tests.train.test_resume import weights
from tests.train.victim import toy_policy

__all__ = ["plugin"]
pytestmark = pytest.mark.usefixtures("plugin")
RACE = "test/Race-v0"
ARGS = grpo.Args(warmup=2, warmup_episodes=4, steps=3, instances=2, group=2, minibatches=1, evaluate=2, drop_flat=False)


def recipe(**seats: Seat):
    made = replace(grpo.recipe(ARGS), seats=seats, max_tokens=2).on_split("train")
    return replace(made, filter=())


def train(folder: Path, *, resume: bool = False, **seats: Seat) -> loop.RunResult:
    return loop.run(
        recipe(**seats),
        toy_policy(),
        task=RACE,
        options={"max_turns": 3},
        folder=folder,
        resume=resume,
        save_seconds=0.0,
        keep_episodes=range(2, 5),
        quiet=True,
    )


def played(folder: Path) -> list:
    return [episode for file in sorted((folder / "episodes").glob("*.jsonl")) for episode in read(file)]


def rl_rows(folder: Path) -> list[dict]:
    return [row for row in read_metrics(folder) if row["stage"] == "rl"]


def test_self_play_trains_a_trajectory_of_each_seat(tmp_path):
    train(tmp_path / "run", black=Seat())
    episodes = played(tmp_path / "run")
    assert {episode.seat for episode in episodes} == {"agent", "black"}
    assert not any("trained" in episode.tags for episode in episodes)
    assert [row["episodes"] for row in rl_rows(tmp_path / "run")] == [8] * 3  # 2 instances x 2 tries x 2 seats
    sampled = [
        sum(len(turn.completion.ids) for each in played_in(tmp_path, n) for turn in each.turns) for n in (2, 3, 4)
    ]
    assert [row["trained_tokens"] for row in rl_rows(tmp_path / "run")] == sampled


def played_in(tmp_path: Path, step: int) -> list:
    return list(read(tmp_path / "run" / "episodes" / f"{step:06d}.jsonl"))


@pytest.mark.parametrize("seat", [Seat(trained=False), Seat(player="start"), Seat(player="null")])
def test_turns_of_an_untrained_seat_are_never_in_the_batch(tmp_path, seat):
    train(tmp_path / "run", black=seat)
    for step, row in enumerate(rl_rows(tmp_path / "run"), 2):
        episodes = played_in(tmp_path, step)
        assert {(e.seat, e.tags.get("trained", True)) for e in episodes} == {("agent", True), ("black", False)}
        own = [each for each in episodes if each.seat == "agent"]
        assert row["trained_tokens"] == sum(len(turn.completion.ids) for each in own for turn in each.turns)
        assert row["episodes"] == len(own) == 4


def test_evaluations_and_demonstrations_keep_the_tasks_own_players(tmp_path):
    """The scripted opponent says 1: an untrained player in its seat would not."""
    scripted, named = tmp_path / "scripted", tmp_path / "named"
    train(scripted, black=Seat(player="scripted"))
    train(named, black=Seat(player="null"))
    before = [next(row for row in read_metrics(folder) if row["stage"] == "before RL") for folder in (scripted, named)]
    assert before[0]["evaluated_score"] == before[1]["evaluated_score"]
    assert {episode.seat for episode in played(scripted)} == {"agent"}


def test_the_start_stays_while_the_policy_learns():
    policy = toy_policy()
    seats = Seats({"a": Seat(player="start")}, policy, seed=0)
    start = policy.model.lm_head.weight.detach().clone()
    for _ in range(2):
        config = seats.configs()["a"]
        assert torch.equal(config.policy.model.lm_head.weight, start)
        assert not config.trained
        with torch.no_grad():
            policy.model.lm_head.weight += 1.0


def test_an_evaluation_in_the_middle_of_imitation_is_no_start():
    policy = toy_policy()
    seats = Seats({"a": Seat(player="start")}, policy, seed=0)
    players = seats.configs(interim=True)
    assert not seats.state_dict()["start"]
    for interim, follows in ((True, True), (False, True), (True, False)):
        with torch.no_grad():
            policy.model.lm_head.weight += 1.0
        assert seats.configs(interim=interim) is players
        assert torch.equal(players["a"].policy.model.lm_head.weight, policy.model.lm_head.weight) is follows


def test_a_user_behind_an_endpoint_may_think_before_it_answers():
    policy = toy_policy()
    policy.sampling = replace(policy.sampling, max_tokens=64)
    (config,) = Seats({"user": Seat(player="cmd:cat")}, policy, seed=0).configs().values()
    assert config.policy.provider.dialect.options.max_tokens == 2048
    config.policy.close()


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"seats": {"black": Seat(player="nobody")}}, "unknown policy 'nobody'"),
        ({"seats": {"black": Seat(player="python:nowhere:act")}}, "nowhere"),
        ({"judges": ("nobody",)}, "unknown policy 'nobody'"),
    ],
)
def test_a_player_or_judge_that_cannot_be_loaded_is_refused_before_any_work(tmp_path, more, words):
    with pytest.raises(PolicyError, match=words) as caught:
        loop.run(replace(recipe(), **more), toy_policy(), task=RACE, folder=tmp_path / "run", quiet=True)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_players_made_by_an_evaluation_before_the_first_step_are_restored():
    policy, resumed = toy_policy(), toy_policy()
    seats = Seats({"agent": Seat(player="start")}, policy, seed=0)
    seats.configs()
    with torch.no_grad():
        resumed.model.lm_head.weight += 1.0
    again = Seats({"agent": Seat(player="start")}, resumed, seed=0)
    again.load_state_dict(seats.state_dict())
    assert torch.equal(again.configs()["agent"].policy.model.lm_head.weight, policy.model.lm_head.weight)


@pytest.mark.parametrize("stop", [4, 5])
def test_a_resumed_run_has_the_same_bits(tmp_path, monkeypatch, stop):
    seats = {"black": Seat(player="start")}
    train(tmp_path / "whole", **seats)
    save, saves = checkpoint.save, []

    def interrupted(*args, **more):
        save(*args, **more)
        saves.append(None)
        if len(saves) == stop:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoint, "save", interrupted)
    with pytest.raises(KeyboardInterrupt):
        train(tmp_path / "run", **seats)
    train(tmp_path / "run", resume=True, **seats)
    assert torch.equal(weights(tmp_path / "run"), weights(tmp_path / "whole"))


def test_a_seat_that_the_task_lacks_is_refused_before_any_work(tmp_path):
    with pytest.raises(
        RecipeError, match="test/Race-v0 has no seat 'user', which this recipe plays; its seats are black"
    ):
        train(tmp_path / "run", user=Seat())
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(("chosen", "limit"), [(5, 5), (None, 128)])
def test_answers_are_as_long_as_chosen_or_as_the_task_needs(tmp_path, chosen, limit):
    args = {"warmup": 0, "steps": 1, "instances": 1, "group": 2, "evaluate": 1, "budget": 1}
    args |= {"options": {"max_turns": 1}, "model": toy_policy(), "preset": False, "quiet": True, "keep_episodes": [0]}
    result = run("grpo", task="retail_desk", out=tmp_path / "run", max_tokens=chosen, **args)
    answers = [turn.completion for episode in played(result.folder) for turn in episode.turns]
    assert max(len(answer.ids) for answer in answers) == limit
    assert json.loads((result.folder / "run.json").read_text())["arguments"]["max_tokens"] == limit
    assert default_max_tokens(f"run:{result.folder}") == limit  # lmgym eval --model run:FOLDER
