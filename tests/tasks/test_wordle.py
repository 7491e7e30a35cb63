import os
from pathlib import Path

import numpy as np
import pytest

from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.wordle.env import colour_counting, colour_lmrl

DATA = Path(os.environ.get("LMGYM_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
OFFICIAL = DATA / "lmrl" / "wordle_official_400.txt"
needs_official = pytest.mark.skipif(not OFFICIAL.is_file(), reason=f"no {OFFICIAL.name}: set LMGYM_TEST_DATA")


def hiding(word, **options):
    env = build("wordle", **options)
    env.reset(seed=0, options={"instance": {"word": word}})
    return env


def said(env, *actions):
    return [(step[0]["text"], *step[1:3]) for step in map(env.step, actions)]


@pytest.mark.parametrize(
    ("guess", "secret", "lmrl", "counting"),
    [  # worked by hand
        ("crane", "crane", "ggggg", "ggggg"),
        ("slate", "crane", "bbgbg", "bbgbg"),
        ("eerie", "crane", "yyybg", "bbybg"),
        ("speed", "erase", "ybyyb", "ybyyb"),
        ("geese", "those", "byygg", "bbbgg"),
        ("allow", "label", "yyybb", "yyybb"),
        ("label", "allow", "yybby", "yybby"),
        ("sassy", "grass", "yyygb", "yybgb"),
    ],
)
def test_letters_are_coloured(guess, secret, lmrl, counting):
    assert colour_lmrl(guess, secret) == lmrl
    assert colour_counting(guess, secret) == counting


def test_an_episode_reads_as_lmrl_gym_writes_it():
    env = hiding("crane")
    assert said(env, "p l a t e\n", "qqqqq", "crane") == [
        ("b b g b g\n", -1.0, False),
        ("\n", -1.0, False),
        ("g g g g g\n", 0.0, True),
    ]
    observation, _ = env.reset(seed=0, options={"index": 0})
    assert observation["text"].endswith("\nWordle:\n")


@pytest.mark.parametrize("guess", ["crane", "C R A N E", "  c r a n e \n", "I think of crane.\ncrane", "Action: crane"])
def test_a_word_may_be_written_in_several_ways(guess):
    [(_, reward, done)] = said(hiding("crane"), guess)
    assert (reward, done) == (0.0, True)


@pytest.mark.parametrize("guess", ["", "cran", "cranes", "zzzzz", "cr4ne", "crané", "the word is crane", "crane plane"])
def test_what_is_no_word_of_the_list_costs_a_try(guess):
    env = hiding("crane")
    observation, reward, terminated, _, info = env.step(guess)
    assert (observation["text"], reward, terminated, info["valid"]) == ("\n", -1.0, False, False)
    assert env.unwrapped.left == 5


@pytest.mark.parametrize("last", ["house", "nonsense"])
def test_six_tries_are_lost_by_the_rules_and_not_cut(last):
    env = hiding("crane")
    trace = play(env, given(["plate"] * 5 + [last]), index=0)
    assert (trace.terminated, trace.truncated) == (True, False)
    assert trace.rewards == [-1.0] * 6
    assert (trace.infos[-1]["score"], trace.infos[-1]["success"]) == (0.0, False)


@pytest.mark.parametrize("colouring", ["lmrl", "counting"])
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_demonstrator_solves_nearly_all_by_what_was_shown(split, colouring):
    env = build("wordle", split=split, colouring=colouring)
    size = env.unwrapped.size()
    won = [play(env, lambda task: task.demonstrator(), index=i).infos[-1]["success"] for i in range(size)]
    assert np.mean(won) > 0.98


def test_every_secret_stands_in_one_split_and_every_word_may_be_guessed():
    train, test = (build("wordle", split=split).unwrapped for split in ("train", "test"))
    assert sorted(train.secrets + test.secrets) == train.words == test.words == train.admissible()
    assert (train.size(), test.size()) == (train.SPEC.splits["train"], train.SPEC.splits["test"])
    assert train.words == sorted(set(train.words))


@needs_official
def test_the_official_list_is_played_when_it_is_named():
    train, test = (build("wordle", split=split, words=OFFICIAL).unwrapped for split in ("train", "test"))
    assert len(train.words) == 431
    assert (train.size(), test.size()) == (344, 87)
    trace = play(build("wordle", words=str(OFFICIAL)), lambda task: task.demonstrator(), index=343)
    assert trace.infos[-1]["success"]


@needs_official
def test_a_hidden_word_is_as_likely_as_a_fresh_draw_among_the_words_still_possible():
    # LMRL-Gym draws again after each try from what its state allows; here: all words with the same colours so far
    env = build("wordle", words=OFFICIAL).unwrapped
    chance = np.random.default_rng(1)
    for _ in range(50):
        secret, *guesses = (env.words[i] for i in chance.integers(len(env.words), size=4))
        seen = [colour_lmrl(guess, secret) for guess in guesses]
        fits = {w for w in env.words if [colour_lmrl(guess, w) for guess in guesses] == seen}
        assert fits == {w for w in env.words if _allowed(w, guesses, seen)}


def _allowed(word, guesses, seen):
    """Return True if a word agrees with the feedback on each letter: where it is, where it is not, whether it is."""
    for guess, colours in zip(guesses, seen, strict=True):
        for place, (letter, colour) in enumerate(zip(guess, colours, strict=True)):
            if (colour == "g") != (word[place] == letter) or (colour == "b") == (letter in word):
                return False
    return True


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("crane\nslate\nhouse\nmouse\n", "has 4 words; both splits need 5"),
        ("crane\nplan\n", "'plan' is not a word of five letters a to z"),
        ("Crane\n", "'Crane' is not a word"),
        ("crané\n", "'crané' is not a word"),
        ("", "has 0 words"),
        (None, "cannot be read"),
    ],
)
def test_a_list_that_is_none_is_named(tmp_path, text, wrong):
    path = tmp_path / "words.txt"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InstanceError, match=wrong):
        build("wordle", words=path)
