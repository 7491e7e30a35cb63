"""Hanabi: rules beside OpenSpiel's, rewards by option, what a player sees."""

import episodes
import numpy as np
import pytest

from lmgym.env.golden import play
from lmgym.env.registry import build, specs
from lmgym.tasks.mini_hanabi.game import COLORS, Rules, deal
from lmgym.tasks.mini_hanabi.players import careful

DEMONSTRATED = 0.7025
SIZES = {"mini": Rules(), "simple": Rules(colors=3, hand=5, information=8), "full": Rules(3, 3, 4, 8, 3)}


def openspiels(pyspiel, rules):
    sizes = {"players": 2, "colors": rules.colors, "ranks": rules.ranks, "hand_size": rules.hand}
    tokens = {"max_information_tokens": rules.information, "max_life_tokens": rules.lives}
    return pyspiel.load_game("hanabi", {**sizes, **tokens}).new_initial_state()


def in_our_words(text):
    """Translate OpenSpiel's `(Reveal player +1 color R)`, `(Play 0)` and `(Discard 0)`."""
    words = text.strip("()").lower().replace("player +1 ", "").split()
    if "color" in words:
        words[-1] = next(color for color in COLORS if color.startswith(words[-1]))
    return " ".join(words)


@pytest.mark.parametrize("size", SIZES)
def test_random_games_are_openspiels(size):
    pyspiel = pytest.importorskip("pyspiel")
    rules, chance = SIZES[size], np.random.default_rng(1)
    scores = set()
    for number in range(60):
        cards = [rules.cards()[i] for i in chance.permutation(len(rules.cards()))]
        ours, theirs, rest = deal(rules, cards), openspiels(pyspiel, rules), list(cards)
        while not theirs.is_terminal():
            if theirs.is_chance_node():
                color, rank = rest.pop(0)
                theirs.apply_action(color * rules.ranks + rank)
                continue
            assert ours.player == theirs.current_player()
            legal = {in_our_words(theirs.action_to_string(action)): action for action in theirs.legal_actions()}
            assert set(ours.actions()) == set(legal)
            choices = [a for a in ours.actions() if not a.startswith("play") or number % 3] or ours.actions()
            action = careful(ours) if number % 2 else choices[int(chance.integers(len(choices)))]
            ours = ours.after(action)
            theirs.apply_action(legal[action])
        assert ours.over
        assert theirs.returns() == [ours.score] * 2
        scores.add(ours.score)
    assert len(scores) > 1


def opened(**options):
    """Return a game of red 1, red 2 and yellow 1 against red 1 twice and yellow 1."""
    env = episodes.opened("mini_hanabi", others="caller", **options)
    task = env.unwrapped
    task.state = deal(task.rules, [(0, 0), (0, 1), (1, 0), (0, 0), (0, 0), (1, 0), (1, 0), (1, 1)])
    return env


def test_cards_that_fit_pay_both_seats_the_last_life_takes_it_back_and_hints_are_seen():
    env = opened()
    steps = [env.step(action) for action in ("play 0", "Play card 0", "[play 1]", "<answer>play 0</answer>")]
    assert [step[1] for step in steps] == [1.0, 0.0, 1.0, 0.0]  # red 1, red 1 again, yellow 1, red 1 again
    assert steps[0][4]["seat_rewards"] == {"agent": 1.0, "partner": 1.0}
    assert "It was red 1 and does not fit: a life is lost." in steps[1][0]["text"]
    env = opened()
    env.unwrapped.state = deal(Rules(lives=1), [(0, 0), (0, 1), (1, 0), (0, 0), (0, 0), (1, 0), (1, 0), (1, 1)])
    _, last = [env.step(action) for action in ("play 0", "play 0")]
    assert (last[1], last[2], last[4]["score"]) == (-1.0, True, 0.0)
    assert last[4]["seat_rewards"] == {"agent": -1.0, "partner": -1.0}
    env = opened()
    text = env.step("reveal player +1 rank 1")[0]["text"]
    assert "Partner's cards: red 1, red 2, yellow 1." in text
    assert "Your cards: 0: red/yellow 1, 1: red/yellow 1, 2: red/yellow 1." in text
    assert "Information: 2." in text


@pytest.mark.parametrize("answer", ["discard 1", "Discard card 1", "[discard 1]", "<answer>Discard card 1</answer>"])
def test_a_discard_is_understood_in_our_words_and_in_mars(answer):
    env = opened()
    env.step("reveal rank 1")
    env.step("reveal rank 1")
    text, info = [env.step(answer)[part] for part in (0, 4)]
    assert info["valid"]
    assert "Player 1: discard 1. It was red 2." in text["text"]
    assert "Information: 2." in text["text"]


def test_every_legal_action_is_valid():
    env, chance = build("mini_hanabi", split="test", others="caller"), np.random.default_rng(0)
    for index in range(20):
        env.reset(seed=0, options={"index": index})
        terminated = False
        while not terminated:
            legal = env.unwrapped.admissible()
            _, _, terminated, _, info = env.step(legal[int(chance.integers(len(legal)))])
            assert info["valid"]


@pytest.mark.parametrize(("reward", "earned", "partner"), [("game", [0.0, 0.0, -1.0], -1.0), ("mars", [-11.0], 0.0)])
def test_invalid_answers_end_the_game_and_take_the_points_back(reward, earned, partner):
    env = opened(reward=reward)
    env.step("play 0")
    steps = [env.step("play 0 play 1") for _ in earned]
    assert [step[1] for step in steps] == earned
    assert [step[2] for step in steps] == [False] * (len(earned) - 1) + [True]
    assert steps[-1][4]["seat_rewards"] == {"partner": earned[-1], "agent": partner}
    assert (steps[-1][4]["score"], steps[-1][4]["valid"]) == (0.0, False)


@pytest.mark.parametrize("player", ["oracle", "demonstrator"])
def test_a_players_mean_is_as_the_card_says(player):
    env = build("mini_hanabi", split="test")
    scores = [
        play(env, lambda task: getattr(task, player)(), index=index).infos[-1]["score"]
        for index in range(env.unwrapped.size())
    ]
    wanted = {"oracle": specs()["lmgym/MiniHanabi-v0"].references["oracle"], "demonstrator": DEMONSTRATED}[player]
    assert np.mean(scores) == pytest.approx(wanted, abs=5e-5)
