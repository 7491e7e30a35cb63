"""TextArena: seats, rewards, odd actions, and games that depend on nothing but their instance."""

import itertools

import pytest

from lmgym.env.golden import at_random, given, play
from lmgym.env.registry import build
from lmgym.errors import BackendError, InstanceError

pytest.importorskip("textarena")

from lmgym.tasks.text_arena import GAMES, PLAYERS
from tests.sampled import sampled


def opened(game, index=0, **options):
    env = build("text_arena", game=game, split="test", **options)
    return env, *env.reset(seed=0, options={"index": index})


def test_a_win_pays_both_seats():
    env, observation, info = opened("TicTacToe", others="caller")
    assert "As Player 0, you will be 'O'" in observation["text"]
    for action in ("[0]", "[3]", "1", "[4]"):  # brackets are added
        observation, reward, terminated, _, info = env.step(action)
        assert (reward, terminated, info["valid"]) == (0.0, False, True)
    assert info["seat"] == "agent"
    assert "Player 1 placed their symbol (X) in cell 4" in observation["text"]
    _, reward, terminated, _, info = env.step("[2]")
    assert (reward, terminated, info["score"]) == (1.0, True, 1.0)
    assert info["seat_rewards"] == {"agent": 1.0, "opponent": -1.0}
    assert info["seat_scores"] == {"agent": 1.0, "opponent": 0.0}
    env.close()


def test_a_second_invalid_action_in_a_row_loses():
    env, *_ = opened("TicTacToe", 1)
    observation, reward, terminated, _, info = env.step("[9]")
    assert (reward, terminated, info["valid"]) == (0.0, False, False)
    assert "attempted an invalid move" in observation["text"]
    _, reward, terminated, _, info = env.step("x" * 1_000_000)
    assert (reward, terminated, info["valid"], info["score"]) == (-1.0, True, False, 0.0)
    env.close()


def test_the_end_of_a_long_answer_is_read():
    env, *_ = opened("TicTacToe")
    assert env.step("Let me think. " * 1_000 + "[4]")[4]["valid"]
    env.close()


def test_a_killed_process_is_an_error_and_the_next_reset_works():
    env, first, _ = opened("Nim")
    env.unwrapped.process._process.kill()
    with pytest.raises(BackendError, match="the process of textarena is gone during 'act'"):
        env.step("[0 1]")
    assert env.reset(seed=0, options={"index": 0})[0] == first
    env.close()


def test_an_unknown_game_is_refused():
    with pytest.raises(InstanceError, match="unknown game 'Wordle'"):
        build("text_arena", game="Wordle")


def replayed(game):
    """Return a random episode, and the same actions in a fresh process beside another game, after another episode."""
    env, *_ = opened(game)
    first = play(env, lambda env: itertools.islice(at_random(env), 20), index=0, seed=5)
    env.close()
    again, *_ = opened(game, PLAYERS[game])
    other, *_ = opened("2048", 1)
    other.step("[Up]")
    trace = play(again, given(first.actions), index=0, seed=5)
    again.close()
    other.close()
    return first, trace


def same(first, again):
    texts = [[observation["text"] for observation in trace.observations] for trace in (first, again)]
    return texts[0] == texts[1] and (first.rewards, first.infos) == (again.rewards, again.infos)


@pytest.mark.parametrize("game", ["Minesweeper", "HighSociety", "Countdown"])
def test_a_game_depends_on_its_instance_alone(game):
    assert same(*replayed(game))


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("game", sampled(GAMES))
def test_every_game_depends_on_its_instance_alone(game):
    assert same(*replayed(game))
