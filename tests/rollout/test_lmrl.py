"""LMRL-Gym's layouts become episodes: shapes as its scripts write and read them, words of our own."""

from __future__ import annotations

import json
import math

import pytest

from lmgym.errors import InstanceError
from lmgym.rollout import dataset

# wordle/misc/data_gen.py writes is_action as a number, and no reward for the first text, which it adds afterwards;
# wordle/ilql/train_ilql.py and twenty_questions/ilql/train_ilql.py put a 0 before `reward`
SEQUENCE = {
    "sequence": [
        ["Wordle:\n", 0.0],
        ["s l a t e\n", 1.0],
        ["b b g b g\n", 0.0],
        ["c r a n e\n", 1.0],
        ["g g g g g\n", 0.0],
    ],
    "reward": [-1.0, 0.0, 0.0, 0.0],
    "done": True,
}
# text_nav/dataset/collect_data.py: a score and a done for each command, between two feedbacks
TEXT_NAV = {
    "text_history": ["a hall", "go east", "a cellar", "take coin", "You took it."],
    "rewards": [0, 1],
    "dones": [False, True],
}
# maze/ilql/partially_observed_ilql.py reads `rewards` and `dones` at the places of the actions
MAZE = {
    "text_history": ["a wall above\n", "move left\n", "walls\n", "move down\n"],
    "rewards": [0.0, -1.0, 0.0, 0.0],
    "dones": [False, False, False, True],
}
# maze/ilql/train_ilql.py: a list of steps on a line
STEPS = [
    {"state": "at 5, 6\n", "action": "move down\n", "reward": -1.0, "done": False},
    {"state": "at 6, 6\n", "action": "move down\n", "reward": 0.0, "done": True},
]
# chess/env/data.py: a step on a line, with other fields beside these; a blank line ends an episode as well
MOVES = [
    {"from_state": "8/k7 w", "action": "Qa1", "reward": 0, "done": False, "generated_by": "engine"},
    {"from_state": "k7/8 w", "action": "Qa7#", "reward": 1, "done": True, "generated_by": "engine"},
]
# twenty_questions/env/data.py and guess_city/env/data.py: a list of these in one file
QUESTIONS = {"lines": ["Is it alive? No.", "Is it big? I think so? Yes."], "correct": True, "word": ["Piano"]}
# car_dealer/env/data.py; in one file, lists of these by personality
SALE = {
    "buyer_info": {
        "personality": "polite",
        "preferred_brands": "a Ford",
        "preferred_type": "truck",
        "preferred_features": ["sunroof"],
        "budget": 50000,
    },
    "lines": [
        {"role": "Buyer", "text": "Hello"},
        {"role": "Seller", "text": "Good day."},
        {"role": "Seller", "text": "A truck?\n"},
        {"role": "Buyer", "text": "Yes."},
        {"role": "Seller", "text": "40,000."},
        {"role": "Buyer", "text": "Sold."},
    ],
    "output": {"car_bought": True, "msrp": 45000, "buy_price": 40000},
}


def lines(tmp_path, *contents):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(content) + "\n" for content in contents))
    return list(dataset.read(path))


def whole(tmp_path, content):
    (tmp_path / "train.json").write_text(json.dumps(content))
    return list(dataset.read(tmp_path / "train.json"))


def told(episode):
    return [(turn.observation.text, turn.action, turn.reward) for turn in episode.turns]


@pytest.mark.parametrize(
    ("content", "first", "second", "final"),
    [
        (SEQUENCE, ("Wordle:\n", "s l a t e\n", -1.0), ("b b g b g\n", "c r a n e\n", 0.0), "g g g g g\n"),
        (TEXT_NAV, ("a hall", "go east", 0.0), ("a cellar", "take coin", 1.0), "You took it."),
        (MAZE, ("a wall above\n", "move left\n", -1.0), ("walls\n", "move down\n", 0.0), None),
        (STEPS, ("at 5, 6\n", "move down\n", -1.0), ("at 6, 6\n", "move down\n", 0.0), None),
        # what follows the last question mark answers
        (QUESTIONS, ("Questions:\n", "Is it alive?\n", -1.0), ("No.\n", "Is it big? I think so?\n", 0.0), "Yes.\n"),
    ],
)
def test_each_layout_becomes_turns_with_rewards(tmp_path, content, first, second, final):
    for (episode,) in (lines(tmp_path, content), whole(tmp_path, [content])):
        assert told(episode) == [first, second]
        assert (episode.final and episode.final.text) == final
        assert (episode.terminated, episode.truncated) == (True, False)
        assert math.isnan(episode.score)


def test_moves_of_chess_are_a_game_up_to_its_end_a_blank_line_or_two_hundred(tmp_path):
    path = tmp_path / "train.jsonl"
    first, last = (json.dumps(move) + "\n" for move in MOVES)
    path.write_text(first + last + first + "\n" + first * 201)
    done, blank, long, rest = dataset.read(path)
    assert told(done) == [("8 / k 7   w", "Q a 1\n", 0.0), ("k 7 / 8   w", "Q a 7 #\n", 1.0)]
    assert [len(each.turns) for each in (blank, long, rest)] == [1, 200, 1]
    assert [each.terminated for each in (done, blank, long, rest)] == [True, False, False, False]
    assert len({each.id for each in (done, blank, long, rest)}) == 4


def test_games_about_one_word_are_tries_and_over_when_it_is_found_or_no_question_left(tmp_path):
    wrong = {**QUESTIONS, "correct": False}
    cut, over = whole(tmp_path, [wrong, {**wrong, "lines": ["Is it alive? No."] * 20}])
    assert (cut.reward, cut.terminated, cut.truncated) == (-2.0, False, True)
    assert (over.reward, over.terminated, over.truncated) == (-20.0, True, False)
    first, second, other = whole(tmp_path, [QUESTIONS, {**QUESTIONS, "correct": False}, {**QUESTIONS, "word": ["Cat"]}])
    assert first.group == second.group != other.group
    assert len({first.id, second.id, other.id}) == 3
    assert (first.instance, first.index) == ({"word": ["Piano"]}, None)


def test_a_sale_earns_the_seller_its_price_at_the_last_word(tmp_path):
    rejected = {**SALE, "output": {"car_bought": False, "msrp": 45000, "buy_price": None}}
    open_ = {key: value for key, value in SALE.items() if key != "output"}
    sold, unsold, cut = whole(tmp_path, {"polite": [SALE, rejected], "rude": [open_]})
    assert told(sold)[0] == ("Start\nHello\n", "Good day. A truck?\n", 0.0)  # two lines in a row are one action
    assert told(sold)[1][:2] == ("Yes.\n", "40,000.\n")
    assert sold.reward == pytest.approx(40 / 47.5)  # the price by the mean of budget and list price
    assert unsold.reward == pytest.approx(-5 / 45)
    assert (sold.terminated, unsold.terminated, cut.terminated, cut.reward) == (True, True, False, 0.0)
    assert sold.final.text == "Sold.\n"


def test_a_seller_may_be_called_dealer_and_an_episode_not_done_is_truncated(tmp_path):
    renamed = [{**line, "role": line["role"].replace("Seller", "Dealer")} for line in SALE["lines"]]
    first, second = whole(tmp_path, {"polite": [SALE, {**SALE, "lines": renamed}]})
    assert told(first) == told(second)
    (episode,) = lines(tmp_path, {**SEQUENCE, "done": False})
    assert episode.truncated
    assert not episode.terminated


@pytest.mark.parametrize(
    "content",
    [
        {"no": "episode"},
        [],
        7,
        {**SEQUENCE, "reward": [0.0, -1.0, 0.0, 0.0]},  # of a text that is no action
        {**SEQUENCE, "reward": [-1.0]},
        {**SEQUENCE, "sequence": [["Wordle:\n", 0.0]], "reward": []},  # without an action
        {**TEXT_NAV, "rewards": ["b", "c"]},
        {**TEXT_NAV, "rewards": [0, 0, 1]},
        {**QUESTIONS, "lines": ["No question."]},
        {**SALE, "lines": [{"role": "Thief", "text": "Mine."}]},
    ],
)
def test_what_is_no_episode_is_refused_with_its_line(tmp_path, content):
    with pytest.raises(InstanceError, match="line 2"):
        lines(tmp_path, TEXT_NAV, content)


@pytest.mark.parametrize("content", [7, {"return": 0.5}, [QUESTIONS, {}]])
def test_a_file_that_is_no_list_of_episodes_is_refused(tmp_path, content):
    with pytest.raises(InstanceError, match="train.json"):
        whole(tmp_path, content)
