"""Mint: turns, proposals, Python, feedback, and the figures of SR_k."""

import numpy as np
import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.evaluation import runner
from lmgym.evaluation.report import statistics
from lmgym.policy.scripted import Scripted
from lmgym.rollout.engine import Engine
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


def test_an_unfinished_task_inside_scores_alike_without_proposals_and_without_turns(monkeypatch):
    for actions in (["<solution>move up</solution>"] * 2, [""] * 5):
        env = opened(task="Maze-v0", feedback=False)
        monkeypatch.setattr(env.unwrapped.inner, "score_if_cut", lambda: 0.5)
        trace = play(env, given(actions), index=0)
        assert (trace.terminated, trace.infos[-1]["score"]) == (True, 0.5)


def test_the_task_inside_is_scored_at_the_end_alone(monkeypatch):
    """Some tasks end when they are scored: a terminal drops its sandbox."""
    env, scored = opened(task="Maze-v0", feedback=False), []
    monkeypatch.setattr(env.unwrapped.inner, "score_if_cut", lambda: scored.append(1) or 0.5)
    env.step("<solution>move up</solution>")
    assert not scored
    env.step("<solution>move up</solution>")
    assert scored


def test_a_proposal_is_as_valid_as_it_is_inside():
    env = opened(task="Maze-v0", feedback=False)
    proposals = ("<solution>nonsense</solution>", "<solution>move up</solution>")
    assert [env.step(proposal)[4]["valid"] for proposal in proposals] == [False, True]


def test_a_new_seed_reaches_the_chance_of_the_task_inside():
    lakes = []
    for seed in (1, 2):
        env = opened(task="FrozenLake-v0", feedback=False)
        env.unwrapped.reseed(seed)
        lakes.append(env.unwrapped.inner.np_random.random())
    assert lakes[0] != lakes[1]


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


def test_a_python_that_cannot_start_in_its_folder_is_answered():
    components.bubblewrap()
    env = opened(feedback=False)
    env.step("<execute>import os; os.chmod('.', 0); os._exit(0)</execute>")
    assert "Permission denied" in env.step("<execute>print(1)</execute>")[0]["text"]
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


@pytest.mark.parametrize(
    "task",
    ["RetailDesk-v0", "TicTacToe-v0", "Chess-v0", "ChessEndgames-v0", "KuhnPoker-v0", "TwentyQuestions-v0", "Mint-v0"],
)
def test_a_task_with_other_seats_is_refused_when_it_is_made(task):
    with pytest.raises(InstanceError, match=f"^task='{task}' has other seats or pictures; .* one seat in text$"):
        build("mint", task=task)


def test_closing_closes_the_task_inside_and_a_reset_does_not(monkeypatch):
    closed = []
    env = build("mint", split="test", task="Maze-v0", feedback=False)
    monkeypatch.setattr(env.unwrapped.inner, "close", lambda: closed.append(True))
    env.reset(seed=0, options={"index": 0})
    env.reset(seed=0, options={"index": 1})
    assert not closed
    env.close()
    assert closed == [True]


SOLVED_AT = (1, 2, 2, 4, 0)  # turn of the right proposal, 0 for never; by instance, repeated


@pytest.mark.parametrize("feedback", [True, False])
def test_a_report_recovers_the_rates_and_their_slope_from_a_player_with_known_turns(feedback):
    """SR = 0.2, 0.6, 0.6, 0.8, 0.8, so the slope is (-2 x 0.2 - 0.6 + 0.8 + 2 x 0.8) / 10 = 0.14 a turn."""
    jobs = runner.episodes("mint", split="test", size=300, count=20, options={"feedback": feedback})
    env = build("mint", split="test", feedback=feedback)
    texts = [env.reset(seed=job.seed, options={"index": job.index})[0]["text"] for job in jobs]
    problem = {text: place for place, text in enumerate(texts)}
    assert len(problem) == 20

    def answer(conversation):
        turn = 1 + sum(message.role == "assistant" for message in conversation.messages)
        [place] = [problem[message.text] for message in conversation.messages if message.text in problem]
        return conversation.hints["oracle"] if turn == SOLVED_AT[place % len(SOLVED_AT)] else "I think."

    player = Scripted("in turn", answer, wants=frozenset({"oracle"}))
    figures = statistics(runner.evaluate(player, jobs, engine=Engine()))["figures"]
    rates = [figures[f"sr_{k}"]["mean"] for k in range(1, 6)]
    assert rates == pytest.approx([0.2, 0.6, 0.6, 0.8, 0.8], abs=1e-12)
    slope = figures["turn_slope"]
    assert slope["mean"] == pytest.approx(0.14, abs=1e-12)
    assert slope["mean"] == pytest.approx(np.polyfit(range(1, 6), rates, 1)[0], abs=1e-12)
    assert 0.0 < slope["low"] < 0.14 < slope["high"] < 0.3


@pytest.mark.parametrize(("k", "slope"), [(1, None), (2, 1.0), (3, 0.5), (5, 0.2)])
def test_the_slope_is_over_the_turns_of_the_episode(k, slope):
    """Solved in turn 2, SR = 0, 1, 1 ...: over 5 turns (-2 x 0 - 1 + 0 + 1 + 2) / 10, over 3 turns (0 + 1) / 2."""
    env = opened(k=k)
    for _ in range(min(2, k) - 1):
        env.step("I think.")
    *_, info = env.step(f"<solution>{answer(env)}</solution>")
    assert info["figures"].get("turn_slope") == (None if slope is None else pytest.approx(slope, abs=1e-12))
