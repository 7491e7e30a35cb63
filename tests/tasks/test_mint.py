"""Mint: turns, proposals, Python, feedback, and the figures of SR_k."""

import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from tests import components


def opened(**options):
    env = build("mint", split="test", **options)
    env.reset(seed=0, options={"index": 0})
    return env


def answer(env):
    return env.unwrapped.answer()


def test_a_right_proposal_solves_and_counts_its_turn():
    env = opened()
    env.step("I think.")
    env.step("<solution>no number</solution>")
    *_, reward, terminated, _, info = env.step(f"<solution>{answer(env)}</solution>")
    assert (reward, terminated, info["score"]) == (1.0, True, 1.0)
    assert [info["figures"][f"sr_{k}"] for k in range(1, 6)] == [0.0, 0.0, 1.0, 1.0, 1.0]
    assert info["figures"]["proposals"] == 2.0


@pytest.mark.parametrize(("k", "proposals"), [(1, 1), (2, 2), (5, 2)])
def test_the_second_wrong_proposal_ends_the_episode(k, proposals):
    env = opened(k=k)
    trace = play(env, given(["<solution>no number</solution>"] * 5), index=0)
    assert (len(trace.rewards), trace.terminated, trace.infos[-1]["score"]) == (proposals, True, 0.0)


@pytest.mark.parametrize("k", [1, 3, 5])
def test_the_episode_ends_after_k_turns_whatever_was_written(k):
    trace = play(opened(k=k), given(["", "x" * 1_000_000, "<solution>", "Expert feedback: 1", "<execute>"]), index=0)
    assert (len(trace.rewards), trace.terminated, sum(trace.rewards)) == (k, True, 0.0)
    assert not any(info["valid"] for info in trace.infos)


def test_feedback_follows_each_turn_and_can_be_left_out():
    text = opened().step("<solution>no number</solution>")[0]["text"]
    assert text.startswith("Observation:\nYour answer is wrong.\n\nExpert feedback: That is not right.")
    assert text.endswith("You have 4 turns and 1 proposals left.")
    assert "feedback" not in opened(feedback=False).step("<solution>no number</solution>")[0]["text"]


def test_a_model_gives_feedback_without_the_answer():
    env = opened(others="caller")
    observation, *_, info = env.step("<solution>no number</solution>")
    assert info["seat"] == "feedback"
    assert answer(env) not in observation["text"]
    assert "Expert feedback: Try seven." in env.step("Try seven.")[0]["text"]


def test_python_keeps_its_variables_and_stays_in_the_sandbox():
    components.bubblewrap()
    env = opened(feedback=False)
    env.step("<execute>x = 2 ** 10</execute>")
    assert env.step("<execute>print(x)</execute>")[0]["text"].startswith("Observation:\n1024\n")
    assert "ZeroDivisionError" in env.step("<execute>1 / 0</execute>")[0]["text"]
    assert "[cut]" in env.step("<execute>print('a' * 5000)</execute>")[0]["text"]
    env.close()


def test_actions_of_a_task_of_steps_are_played_in_order():
    env = opened(task="Maze-v0", feedback=False)
    start = env.unwrapped.inner.cell
    moves = list(zip(range(40), env.unwrapped.inner.oracle(), strict=False))[:1]
    assert moves
    text = env.step("<execute>move up\nmove up\nnonsense</execute>")[0]["text"]
    assert text.count("current position") == 3
    assert start is not None


def test_unknown_tasks_and_budgets_are_named():
    with pytest.raises(InstanceError, match="task='Nothing-v0'"):
        build("mint", task="Nothing-v0")
    with pytest.raises(InstanceError, match="k=6"):
        build("mint", k=6)
    with pytest.raises(InstanceError, match="other seats"):
        opened(task="RetailDesk-v0")
