"""Tasks of two seats pass PettingZoo's own tests, played with legal moves, and pay what the task pays."""

import warnings

import pytest

from lmgym.env.env import ResetNeeded
from lmgym.env.registry import build, specs
from lmgym.errors import InstanceError

pytest.importorskip("pettingzoo")

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it imports its own games in the old way
    from pettingzoo.test import api_test, seed_test

from lmgym.interop.pettingzoo import SeatsEnv

TASKS = ("KuhnPoker", "LeducPoker", "TicTacToe", "ConnectFour", "MiniHanabi")


@pytest.mark.filterwarnings("ignore:.*:UserWarning:pettingzoo")  # spaces are texts, and seats have names without number
@pytest.mark.parametrize("name", TASKS)
def test_a_task_passes_pettingzoos_tests(name, capsys):
    assert specs()[f"lmgym/{name}-v0"].seats
    env = SeatsEnv(f"lmgym/{name}-v0")
    api_test(env, num_cycles=50)
    env.close()
    seed_test(lambda: SeatsEnv(f"lmgym/{name}-v0"), num_cycles=50)
    assert "Passed" in capsys.readouterr().out


def test_rewards_and_texts_are_the_tasks():
    env, task = SeatsEnv("lmgym/KuhnPoker-v0", split="test"), build("lmgym/KuhnPoker-v0", split="test", others="caller")
    for index in range(6):
        env.reset(seed=index, options={"index": index})
        observation, info = task.reset(seed=index, options={"index": index})
        totals = dict.fromkeys(env.possible_agents, 0.0)
        for agent in env.agent_iter():
            seen, reward, termination, truncation, about = env.last()
            totals[agent] += reward
            if termination or truncation:
                env.step(None)
                continue
            assert (agent, seen["text"]) == (info["seat"], observation["text"])
            action = env.action_space(agent).sample(about["action_mask"])
            assert action in about["action_mask"]
            observation, _, over, _, info = task.step(action)
            env.step(action)
        assert over
        assert sum(totals.values()) == pytest.approx(0.0)  # of a zero-sum game
        assert abs(totals["agent"]) in (1.0, 2.0)
        assert info["score"] == 0.5 + totals["agent"] / 4
    env.close()
    task.close()


@pytest.mark.parametrize(("name", "answers"), [("TwentyQuestions", ("Yes.", "No.")), ("GuessMyCity", None)])
def test_an_oracles_legal_actions_are_answers_not_questions(name, answers):
    env = SeatsEnv(f"lmgym/{name}-v0")
    env.reset(seed=0)
    env.step(env.last()[4]["action_mask"][0])
    assert env.agent_selection == "oracle"
    assert env.last()[4].get("action_mask") == answers
    env.close()


def test_a_turn_needs_an_open_episode():
    env = SeatsEnv("lmgym/KuhnPoker-v0")
    for call in (env.last, lambda: env.step("check")):
        with pytest.raises(ResetNeeded, match=r"no episode is open; call reset\(\) first"):
            call()
    env.reset(seed=0)
    for _ in env.agent_iter():
        env.step(None if any(env.last()[2:4]) else "nonsense")
    with pytest.raises(ResetNeeded, match="no episode is open"):
        env.last()
    env.close()


def test_a_task_of_one_seat_is_refused():
    with pytest.raises(InstanceError, match="one seat"):
        SeatsEnv("lmgym/Wordle-v0")
