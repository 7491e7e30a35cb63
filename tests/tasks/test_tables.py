"""The tables of Twenty Questions and Guess My City: phrasings, paraphrases, and names that questions tell apart."""

import itertools
from pathlib import Path

import pytest

from lmgym.env.golden import play
from lmgym.env.registry import build
from lmgym.tasks.guess_my_city.env import our_table as cities
from lmgym.tasks.twenty_questions.objects import our_table as objects

BOTH = pytest.mark.parametrize("table", [objects(), cities()], ids=["objects", "cities"])


@BOTH
def test_every_phrasing_asks_for_its_predicate(table):
    assert len(table.predicates) >= 60
    for predicate in table.predicates:
        assert len(predicate.phrasings) == 4
        for phrasing in predicate.phrasings:
            question = table.understand(phrasing)
            assert question is not None, phrasing
            assert question.yes == predicate.members, phrasing


@BOTH
def test_every_two_names_differ_in_a_predicate(table):
    kinds = {name: frozenset(p.name for p in table.predicates if name in p.members) for name in table.members}
    assert all(kinds[one] != kinds[other] for one, other in itertools.combinations(table.members, 2))


@pytest.mark.parametrize(
    ("table", "file", "size", "right"),  # as the cards say
    [
        (objects(), "questions_held_out.txt", 300, 294),
        (objects(), "questions_used.txt", 600, 579),  # the rules were made for these
        (cities(), "questions_held_out_cities.txt", 300, 284),
    ],
    ids=["objects", "objects, used", "cities"],
)
def test_paraphrases_are_read_as_meant(table, file, size, right):
    meant = {predicate.name: predicate.members for predicate in table.predicates}
    lines = [line.split(" | ") for line in Path(__file__).with_name(file).read_text(encoding="utf-8").splitlines()]
    readings = [(table.understand(question), meant[predicate]) for predicate, question in lines]
    assert len(lines) == size
    assert sum(reading is not None and reading.yes == yes for reading, yes in readings) == right


@pytest.mark.parametrize(("task", "size"), [("twenty_questions", 158), ("guess_my_city", len(cities().members))])
def test_the_demonstrator_names_every_word_with_20_valid_questions(task, size):
    env = build(task, split="test")
    assert env.unwrapped.size() == size
    for index in range(size):
        trace = play(env, lambda task: task.demonstrator(), index=index)
        assert trace.infos[-1]["success"]
        assert all(info["valid"] for info in trace.infos)
