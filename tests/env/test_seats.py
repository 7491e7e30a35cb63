import math
from dataclasses import replace

import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.env.wrappers import ShowAdmissible
from lmgym.errors import InstanceError

from . import games
from .games import RACE


def steps(env, *actions):
    env.reset(seed=0, options={"index": 0})
    return [env.step(action) for action in actions]


def test_a_scripted_opponents_win_falls_to_the_agents_last_turn():
    # 1 (1), black 2 (3), 1 (4), black 2 (6): black wins
    env = build(RACE, others=f"python:{games.__name__}:says_two")
    first, last = steps(env, "1", "1")
    assert first[1] == -0.25
    assert first[4]["seat_rewards"] == {"agent": -0.25, "black": -0.25}
    assert last[1] == -1.25
    assert last[4]["reward_terms"] == {"step": -0.25, "others": -1.0}
    assert last[4]["seat_rewards"] == {"agent": -1.25, "black": 0.75}
    assert (last[2], last[4]["score"], last[4]["success"]) == (True, 0.0, False)
    assert last[4]["seat_scores"] == {"black": 1.0, "agent": 0.0}


def test_the_agents_win_is_paid_to_both_seats_and_figures_are_set_at_the_end_and_at_a_cut():
    first, last = steps(build(RACE), "2", "2")  # 2, black 1 (3), 2 (5)
    assert "figures" not in first[4]
    assert last[4]["figures"] == {"sum": 5.0, "won": 1.0}
    [(*_, info)] = steps(build(RACE, max_turns=1), "2")
    assert info["figures"] == {"sum": 3.0}
    assert last[1] == 0.75
    assert last[4]["reward_terms"] == {"step": -0.25, "win": 1.0}
    assert last[4]["seat_rewards"] == {"agent": 0.75, "black": -1.0}
    assert last[4]["seat_scores"] == {"agent": 1.0, "black": 0.0}


def test_a_seats_own_words_and_rewards_are_the_callers_when_the_caller_plays_it():
    env = build(RACE, others="caller")
    env.reset(seed=0, options={"index": 0})
    results = [env.step(action) for action in ("1", "2", "x", "1", "2")]
    assert [info["seat"] for *_, info in results[:-1]] == ["black", "agent", "agent", "black"]
    assert [reward for _, reward, *_ in results] == [-0.25, -0.25, -0.25, -0.25, 0.75]
    assert [info["valid"] for *_, info in results] == [True, True, False, True, True]
    assert results[-1][4]["seat_rewards"] == {"black": 0.75, "agent": -1.0}


@pytest.mark.parametrize("actions", [("1", "1"), ("2", "2"), ("1", "x", "1", "1")])
def test_what_every_seat_earns_does_not_depend_on_who_plays_the_others(actions):
    scripted = play(build(RACE), given(actions), index=0)
    earned = {"agent": math.fsum(scripted.rewards)}
    for info in scripted.infos:
        for seat, reward in info.get("seat_rewards", {}).items():
            if seat != "agent":
                earned[seat] = earned.get(seat, 0.0) + reward

    env = build(RACE, others="caller")
    _, info = env.reset(seed=0, options={"index": 0})
    mine, paid, over = iter(actions), {"agent": 0.0, "black": 0.0}, False
    while not over and (action := next(mine, None) if info["seat"] == "agent" else "1") is not None:
        seat = info["seat"]
        _, reward, terminated, truncated, info = env.step(action)
        for other, amount in info.get("seat_rewards", {seat: reward}).items():
            paid[other] += amount
        over = terminated or truncated
    assert paid == earned


def test_another_seat_may_open_the_episode_and_authored_instances_are_named_so():
    env = build(RACE, first="black")
    observation, info = env.reset(seed=0, options={"index": 0})
    assert observation["text"] == "sum 1"
    assert (info["seat"], info["seat_rewards"]) == ("agent", {"black": -0.25})
    _, info = build(RACE, first="black", others="caller").reset(seed=0, options={"index": 0})
    assert info["seat"] == "black"
    assert "seat_rewards" not in info
    observation, info = build(RACE).reset(seed=0, options={"instance": {"sum": 3}})
    assert (observation["text"], info["instance"]) == ("sum 3", "authored")


def test_a_cut_scores_every_seat_by_how_it_stands_and_is_no_termination():
    env = build(RACE, max_turns=1)
    [(_, reward, terminated, truncated, info)] = steps(env, "1")
    assert (reward, terminated, truncated) == (-0.25, False, True)
    assert (info["score"], info["success"]) == (0.5, False)
    with pytest.raises(InstanceError, match="the episode is over"):
        env.step("1")
    env = build(replace(RACE, entry_point=f"{games.__name__}:Ledger"), max_turns=1)
    [(_, _, _, truncated, info)] = steps(env, "2")
    assert truncated
    assert (info["score"], info["success"]) == (0.25, False)  # 2, black 1: the sum is 3
    assert info["seat_scores"] == {"agent": 0.25, "black": 0.75}


def test_only_the_agents_turns_count_and_the_answer_to_the_last_is_still_played():
    env = build(RACE, others="caller", max_turns=2)
    results = steps(env, "1", "1", "1", "1")
    assert [truncated for _, _, _, truncated, _ in results] == [False, False, False, True]
    scripted = steps(build(RACE, max_turns=2), "1", "1")
    assert scripted[-1][0] == results[-1][0]
    assert scripted[-1][4]["score"] == results[-1][4]["score"] == 0.5


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        ({"max_turns": 0}, "at least 1; got 0"),
        ({"others": "hf:some/model"}, "is not 'python:module:function'; others takes 'scripted' or 'caller'"),
        ({"others": "python:nowhere:player"}, "cannot be loaded"),
        ({"others": f"python:{games.__name__}:nobody"}, "cannot be loaded"),
        ({"others": f"python:{games.__name__}"}, "is not 'python:module:function'"),
    ],
)
def test_no_turns_and_an_unknown_player_of_the_others_are_named(options, wrong):
    with pytest.raises(InstanceError, match=wrong):
        build(RACE, **options)


def test_admissible_actions_are_shown_but_for_the_last_and_what_a_task_cannot_list_or_score_is_refused():
    env = ShowAdmissible(build(RACE), heading=" | ")
    observation, info = env.reset(seed=0, options={"index": 0})
    assert (observation["text"], info["admissible"]) == ("sum 0 | 1, 2", ["1", "2"])
    observation, _, _, _, info = env.step("2")
    assert (observation["text"], info["admissible"]) == ("sum 3 | 1, 2", ["1", "2"])
    observation, _, _, _, info = env.step("2")
    assert (observation["text"], "admissible" in info) == ("over", False)
    from .games import GALLERY

    with pytest.raises(InstanceError, match="lists no admissible actions"):
        ShowAdmissible(build(GALLERY)).reset(seed=0)
    env = ShowAdmissible(build("guess_my_city", others="caller"))
    assert env.reset(seed=0)[1]["admissible"]
    assert "admissible" not in env.step("Is it in Europe?")[4]  # the oracle's answers are open
    env = build(RACE).unwrapped
    env.reset(seed=0, options={"index": 0})
    with pytest.raises(ValueError, match="must end with a score in"):
        env._ending(None)


@pytest.mark.parametrize("figures", [{"sum": math.inf}, {"sum": math.nan}, {"Sum of all": 1.0}, {"": 1.0}])
def test_a_figure_is_finite_and_has_a_plain_name(figures):
    env = build(RACE).unwrapped
    env.reset(seed=0, options={"index": 0})
    with pytest.raises(ValueError, match="test/Race-v0: a figure has"):
        env._ending(1.0, figures)
