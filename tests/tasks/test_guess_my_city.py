"""Guess My City: open questions, official lists, and the rules of winning."""

import os
from pathlib import Path

import pytest

from lmgym.env.registry import build
from lmgym.errors import InstanceError

DATA = Path(os.environ.get("LMGYM_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
OFFICIAL = DATA / "lmrl" / "global_cities.txt"
needs_official = pytest.mark.skipif(not OFFICIAL.is_file(), reason=f"no {OFFICIAL.name}: set LMGYM_TEST_DATA")


def told(city, question, **options):
    """Return answer, reward, end and validity of one question about a city."""
    env = build("guess_my_city", **options)
    env.reset(seed=0, options={"instance": {"word": city}})
    observation, reward, terminated, _, info = env.step(question)
    return observation["text"], reward, terminated, info["valid"]


@pytest.mark.parametrize(
    ("question", "answer", "reward", "done", "valid"),
    [
        ("Is it Paris?", "Yes.", 0.0, True, True),
        ("are you from paris", "Yes.", 0.0, True, True),
        ("Is it Paris, Rome or Madrid?", "Yes.", -1.0, False, True),
        ("Is Paris in France?", "Yes.", -1.0, False, True),
        ("Is it in Europe?", "Yes.", -1.0, False, True),
        ("Is it a South American city?", "No.", -1.0, False, True),
        ("Do people speak French there?", "Yes.", -1.0, False, True),
        ("Is it bigger than London?", "No.", -1.0, False, True),
        ("What continent is your city on?", "It is in Europe.", -1.0, False, True),
        ("Could you please tell me what continent it is on?", "It is in Europe.", -1.0, False, True),
        ("Can you describe the language people speak?", "People speak French.", -1.0, False, True),
        ("Can you speak French there?", "Yes.", -1.0, False, True),
        ("What country is it in?", "I would rather not say.", -1.0, False, True),
        ("What is the population?", "About 2 million people live there.", -1.0, False, True),
        ("Which language do they speak?", "People speak French.", -1.0, False, True),
        ("What do you dream of?", "No.", -1.0, False, False),
        ("Does anybody dream of such a language?", "No.", -1.0, False, False),
        ("Is it in Europe? Is it a capital?", "No.", -1.0, False, False),
        ("", "No.", -1.0, False, False),
        ("What is it known for" + "?" * 1_000_000, "No.", -1.0, False, False),
    ],
)
def test_questions_about_paris(question, answer, reward, done, valid):
    assert told("Paris", question) == (answer, reward, done, valid)


def test_a_model_in_the_oracles_seat_cannot_give_the_city_away():
    env = build("guess_my_city", others="caller")
    env.reset(options={"instance": {"word": "Paris"}})
    env.step("What is it known for?")
    assert env.step("The Eiffel Tower,\nof course.")[0]["text"] == "The Eiffel Tower, of course."
    env.step("What is its name?")
    assert env.step("It is PARIS!")[0]["text"] == "I would rather not say."


@needs_official
def test_the_official_list_is_played_when_it_is_named():
    env = build("guess_my_city", cities=OFFICIAL)
    assert env.unwrapped.size() == 100
    assert told("Bandung", "Is it in Indonesia?", cities=OFFICIAL) == ("Yes.", -1.0, False, True)
    assert told("Bandung", "Is it by the sea?", cities=OFFICIAL) == ("No.", -1.0, False, False)  # not in our table
    assert told("Seoul", "Is it Seoul?", cities=OFFICIAL) == ("Yes.", 0.0, True, True)


@pytest.mark.parametrize(
    ("text", "problem"), [("", "holds no city"), ("Paris\n", "is neither"), (None, "cannot be read")]
)
def test_a_list_that_is_none_is_named(tmp_path, text, problem):
    path = tmp_path / "cities.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InstanceError, match=problem):
        build("guess_my_city", cities=path)
