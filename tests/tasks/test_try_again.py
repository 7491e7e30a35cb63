"""TryAgain: the exact checker, UFO's rewards, and Reasoning Gym's generators."""

import re

import pytest

from lmgym.env.answers import same
from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.env.testing import check_task
from lmgym.errors import InstanceError
from lmgym.tasks.try_again.problems import FAMILIES

noisy = pytest.mark.filterwarnings(  # of packages that the generators use
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning", "ignore::SyntaxWarning"
)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        *(("0.5", "1/2"), ("50%", "1/2"), ("50 %", "0.5"), ("1 1/2", "3/2"), ("2/4", "1/2"), ("$1/2$", "0.5")),
        *(("x = -3", "-3"), ("\u22124", "-4"), ("+4", "4"), ("1,234", "1234"), ("1234.0", "1,234"), ("1e3", "1000")),
        *(("12 km", "12 km"), ("12", "12 km"), ("12 kilometers", "12 km"), ("\u20ac 5", "5 euros")),
        *(("\\boxed{7}", "7"), ("The answer is 5.", "5"), (" Blue ", "blue")),
    ],
)
def test_equal_answers_are_right(answer, truth):
    assert same(answer, truth)


@pytest.mark.parametrize(
    ("answer", "truth"),
    [
        *(("0.333", "1/3"), ("3", "-3"), ("-3", "3"), ("12 m", "12 km"), ("104", "100"), ("16", "6"), ("1,23", "123")),
        *(("5 2", "5"), ("The answer to 2 questions is 5", "5"), ("five", "5"), ("", "5"), ("1/0", "1")),
        *(("9" * 300, "9"), ("5%", "5"), ("the answer is b", "a"), ("a" * 5000, "a")),
    ],
)
def test_other_answers_are_wrong(answer, truth):
    assert not same(answer, truth)


def finished(*answers, **options):
    env = build("try_again", **options)
    env.reset(options={"instance": {"question": "2 + 2?", "answer": "4"}})
    for answer in answers:
        *_, reward, terminated, _, info = env.step(answer)
    return reward, terminated, info


def test_a_later_try_earns_half():
    assert finished("4")[0] == 1.0
    reward, terminated, info = finished("1", "2", "<answer>4</answer>")
    assert (reward, terminated, info["score"]) == (0.25, True, 1.0)  # 2^-2
    assert finished("1", "2", "4", decay="none")[0] == 1.0
    assert info["figures"] == {"solved_at_first": 0.0, "distinct_answers": 1.0}


def test_repeated_answers_cost_their_share_and_the_last_failure_says_so():
    reward, terminated, info = finished("5", "5", "5", "5", "", penalty=0.5)
    assert terminated
    assert reward == pytest.approx(-0.5 * 3 / 5)  # two of five answers are different
    assert info["reward_terms"] == {"solved": 0.0, "repetition": pytest.approx(-0.3)}
    assert (info["score"], info["valid"]) == (0.0, False)


def test_remainders_alone_can_be_guessed_each_once():
    env = build("try_again", level=1, family="remainder", split="test")
    for index in range(20):
        observation, _ = env.reset(options={"index": index})
        divisor = int(re.search(r"divided by (\d+)", observation["text"])[1])
        task = env.unwrapped
        assert task.admissible() == [f"<answer>{n}</answer>" for n in range(divisor)]
        wrong = str((int(task.truth) + 1) % divisor)
        env.step(f"<answer>{wrong}</answer>")
        assert f"<answer>{wrong}</answer>" not in task.admissible()
        assert f"<answer>{task.truth}</answer>" in task.admissible()
    assert build("try_again").unwrapped.admissible() is None
    with pytest.raises(InstanceError, match="unknown family 'sudoku'"):
        build("try_again", family="sudoku")


def test_every_family_is_solved_by_its_answer_at_every_level():
    for level in (1, 2, 3):
        env = build("try_again", level=level)
        for index in range(10 * len(FAMILIES)):
            assert play(env, lambda task: task.oracle(), index=index).infos[-1]["score"] == 1.0


@noisy
def test_reasoning_gyms_generators_are_judged_by_their_scorers():
    pytest.importorskip("reasoning_gym")
    env = build("TryAgainReasoningGym-v0", generator="prime_factorization", split="test")
    assert play(env, lambda task: task.oracle(), index=3).infos[-1]["score"] == 1.0
    assert play(env, given(["nonsense \u00d7"] * 5), index=3).infos[-1]["score"] == 0.0
    with pytest.raises(InstanceError, match="unknown generator 'ransom_note'"):
        build("TryAgainReasoningGym-v0", generator="ransom_note")


@noisy
@pytest.mark.slow
def test_all_generators_are_solved_by_their_answers():
    pytest.importorskip("reasoning_gym")
    env = build("TryAgainReasoningGym-v0", split="test")
    for index in range(200):
        assert play(env, lambda task: task.oracle(), index=index).infos[-1]["score"] == 1.0, env.unwrapped.names[
            index % 99
        ]


@noisy
@pytest.mark.slow
def test_reasoning_gyms_task_keeps_what_every_task_promises():
    pytest.importorskip("reasoning_gym")
    check_task("lmgym/TryAgainReasoningGym-v0")
