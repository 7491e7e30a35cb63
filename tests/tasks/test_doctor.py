"""Doctor: the code of illnesses, the rules, and the floor of asking nothing."""

import itertools
import statistics
from functools import partial

import episodes
import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.tasks.doctor.illnesses import FINDINGS, ILLNESSES, about, candidates, has, remedy


def test_any_two_findings_leave_four_illnesses_and_half_the_score_cannot_be_guessed():
    best = 0.0
    for pair in itertools.combinations(range(len(FINDINGS)), 2):
        left = candidates(dict.fromkeys(pair, True))
        assert len(left) == 4
        for guess in left:
            scores = [((each == guess) + (remedy(each) == remedy(guess))) / 2 for each in left]
            best = max(best, statistics.mean(scores))
    assert best == 0.375  # a quarter for the illness, a half for the remedy


def test_two_illnesses_differ_in_eight_findings():
    for one, other in itertools.combinations(range(len(ILLNESSES)), 2):
        assert sum(has(one, each) != has(other, each) for each in range(len(FINDINGS))) == 8


def test_without_the_table_nothing_names_an_illness_or_remedy_and_the_patient_is_the_same():
    for index in range(20):
        told, untold = (first_words(index, table=table) for table in (True, False))
        assert all(name in told for name in ILLNESSES)
        assert not any(name in untold or remedy(each) in untold for each, name in enumerate(ILLNESSES))
        assert untold.split("The patient: ")[1] == told.split("The patient: ")[1]


def first_words(index, **options):
    observation, _ = build("doctor", **options).reset(seed=0, options={"index": index})
    return observation["text"]


@pytest.mark.parametrize(
    ("question", "finding"),
    [
        ("do you have a temperature?", 0),
        ("have you been coughing?", 1),
        ("any rash?", 2),
        ("does your head hurt?", 3),
        ("do your hands tremble?", 6),
        ("is it hard to swallow?", 12),
        ("are your toes numb?", 14),
    ],
)
def test_a_finding_has_several_names(question, finding):
    assert about(question) == [finding]


opened = partial(episodes.opened, "doctor")


def asked_freely(env):
    """Return an unanswered finding as a question."""
    names = ("fever", "cough", "rash", "headache", "dizzy", "thirsty", "hands", "sleep", "stomach", "ears")
    reported = env.unwrapped.known_findings
    return [f"Question: What about {name}?" for name in names if about(name)[0] not in reported]


@pytest.mark.parametrize(
    ("action", "reward", "term", "valid"),
    [
        ("", -2.0, "invalid", False),
        ("Have you a fever?", -2.0, "invalid", False),
        ("Question: Fever? Cough?", -2.0, "invalid", False),
        ("Question: fever and cough?", -2.0, "invalid", False),
        ("Question: how is the weather?", -1.0, "unknown", True),
    ],
)
def test_the_rules_of_questions(action, reward, term, valid):
    *_, info = step = opened(budget=10).step(f"<think>x</think><answer>{action}</answer>")
    assert (step[1], info["reward_terms"], info["valid"]) == (reward, {term: reward}, valid)


def test_a_repeated_question_costs_two_and_a_last_turn_without_a_diagnosis_five():
    env = opened(budget=10)
    question = asked_freely(env)[0]
    assert env.step(question)[1] == 1.0
    assert env.step(question.replace("What about", "Really, what about"))[1] == -2.0
    env = opened(budget=2)
    first, second = asked_freely(env)[:2]
    assert env.step(first)[1:3] == (1.0, False)
    _, reward, terminated, _, info = env.step(second)
    assert (reward, terminated, info["score"]) == (1.0 - 5.0, True, 0.0)


def test_illness_and_remedy_score_half_each():
    env = opened(budget=5)
    illness = env.unwrapped.illness
    sibling = illness ^ 5  # shares the remedy
    wrong = play(env, given([f"Diagnosis: {ILLNESSES[sibling]} Recommendation: {remedy(sibling)}"]), index=0)
    assert (wrong.rewards, wrong.infos[-1]["score"]) == ([5.0], 0.5)
    both = f"Diagnosis: {ILLNESSES[illness]} or {ILLNESSES[sibling]}\nRecommendation: {remedy(illness)}"
    assert play(env, given([both]), index=0).infos[-1]["figures"]["diagnosis_right"] == 0.0


def test_the_demonstrator_is_sure_with_three_turns_and_asks_within_the_rules():
    env = build("doctor", split="test", budget=3)
    for index in range(60):
        trace = play(env, lambda task: task.demonstrator(), index=index)
        assert trace.infos[-1]["score"] == 1.0
        assert all(info["valid"] for info in trace.infos)
