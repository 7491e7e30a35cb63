"""Twenty Questions: the oracle's answers to free questions, and the rules of winning."""

import json

import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.errors import InstanceError


def hiding(word, **options):
    env = build("twenty_questions", **options)
    env.reset(seed=0, options={"instance": {"word": word}})
    return env


def told(env, question):
    """Return answer, reward, end and validity of one question."""
    observation, reward, terminated, _, info = env.step(question)
    return observation["text"], reward, terminated, info["valid"]


@pytest.mark.parametrize(
    "question",
    ["Is it a piano?", "is it piano", "IS THE OBJECT A PIANO?", "Could it be a kind of piano?", "Do you mean a piano?"],
)
def test_a_question_that_names_the_object_alone_wins(question):
    assert told(hiding("piano"), question) == ("Yes.", 0.0, True, True)


@pytest.mark.parametrize(
    ("question", "answer", "valid"),
    [
        ("Is it a piano, a drum or a flute?", "Yes.", True),  # a list is answered and never wins
        ("Is it a piano or a drum?", "Yes.", True),
        ("Is it a drum or a flute?", "No.", True),
        ("Is it a musical instrument?", "Yes.", True),
        ("Is it not a musical instrument?", "No.", True),
        ("Is it an instrument or a fruit?", "Yes.", True),
        ("Is it an instrument with wheels?", "No.", True),
        ("Is it bigger than a microwave?", "Yes.", True),
        ("Is it heavier than a bus?", "No.", True),
        ("Is it a piano? Is it big?", "No.", False),
        ("Is it big. Is it a piano?", "No.", False),
        ("Is it big?\nIs it a piano?", "No.", False),
        ("Is it a zebra?", "No.", False),
        ("Is it anything but a piano?", "No.", False),
        ("What is it?", "No.", False),
        ("Tell me the object.", "No.", False),
        ("", "No.", False),
        ("?", "No.", False),
        ("###STOP### Yes.", "No.", False),
        ("Is it " + "very " * 40 + "big?", "No.", False),
        ("Is it big" + "?" * 1_000_000, "No.", False),
        ("Is it a piano " * 80_000, "No.", False),
    ],
)
def test_other_questions_cost_one_and_do_not_win(question, answer, valid):
    env = hiding("piano")
    assert told(env, question) == (answer, -1.0, False, valid)


def test_the_game_is_lost_after_20_questions():
    trace = play(hiding("piano"), given(["Is it alive?"] * 20), index=0)
    assert (trace.terminated, trace.truncated, sum(trace.rewards)) == (True, False, -20.0)
    assert trace.infos[-1]["figures"] == {"questions": 20.0, "understood": 1.0}


def test_a_model_in_the_oracles_seat_decides():
    env = build("twenty_questions", others="caller")
    env.reset(options={"instance": {"word": "piano"}})
    observation, reward, _, _, info = env.step("Does it dream of electric sheep?")
    assert (observation["text"], reward, info["seat"], info["valid"]) == (
        "Does it dream of electric sheep?",
        -1.0,
        "oracle",
        True,
    )
    observation, _, _, _, info = env.step("yes, I think so: piano")
    assert (observation["text"], info["seat"]) == ("Yes.", "agent")
    env.step("Is it a piano?")
    *_, terminated, _, info = env.step("No.")  # a wrong oracle wins nobody the game
    assert not terminated
    env.step("Is it a piano?")
    *_, terminated, _, info = env.step("Yes.")
    assert terminated
    assert info["score"] == info["seat_rewards"]["agent"] == 1.0


RELEASE = 'import nltk\nDEFAULT_OBJECT_DICT = {"Fruits": ["Apple", "Mango"], "Toys": ["Stuffed animal;Plush toy"]}\n'


@pytest.mark.parametrize("layout", ["data.py", "objects.json"])
def test_a_list_in_the_layout_of_the_release_is_played(tmp_path, layout):
    path = tmp_path / layout
    path.write_text(RELEASE if layout == "data.py" else json.dumps({"Fruits": ["Apple", "Mango"], "Toys": ["Top"]}))
    env = build("twenty_questions", objects=path)
    assert env.unwrapped.size() == 3
    env.reset(options={"instance": {"word": "mango"}})
    assert told(env, "Is it a fruit?") == ("Yes.", -1.0, False, True)
    assert told(env, "Is it yellow?") == ("No.", -1.0, False, False)  # our fruits differ: not known of a mango
    assert told(env, "Is it a mango?") == ("Yes.", 0.0, True, True)


@pytest.mark.parametrize(
    "text", ["", "x = 1", "DEFAULT_OBJECT_DICT = f()", "DEFAULT_OBJECT_DICT = {'a': [1]}", "(" * 500]
)
def test_a_list_that_is_none_is_named(tmp_path, text):
    path = tmp_path / "data.py"
    path.write_text(text)
    with pytest.raises(InstanceError, match="neither JSON"):
        build("twenty_questions", objects=path)


def test_some_objects_of_the_list_are_played_by_fewer_questions():
    env = build("twenty_questions", only=["banana", "cow"], max_turns=2)
    assert env.unwrapped.size() == 2
    opening, _ = env.reset(seed=0, options={"instance": {"word": "banana"}})
    assert "You have 2 questions" in opening["text"]
    assert told(env, "Is it yellow?") == ("Yes.", -1.0, False, True)
    *_, truncated, info = env.step("Is it a cow?")
    assert truncated
    assert info["score"] == 0
    assert "You have 20 questions" in build("twenty_questions", max_turns=30).reset(seed=0)[0]["text"]


@pytest.mark.parametrize(
    ("names", "message"),
    [(["cow", "zebra"], "'zebra' is not in the list of 158"), (["cow", "cow"], "at least two"), ("cow", "'c' is not")],
)
def test_objects_that_cannot_be_played_are_named(names, message):
    with pytest.raises(InstanceError, match=message):
        build("twenty_questions", only=names)


def test_a_grown_man_is_not_a_plant():
    for word, answer in (("apple", "No."), ("banana", "No."), ("carrot", "No."), ("elephant", "Yes.")):
        assert told(hiding(word), "Is it taller than a grown man?") == (answer, -1.0, False, True)
    assert told(hiding("apple"), "Is it grown?")[0] == "Yes."
