"""Tic-tac-toe and connect four: rules beside OpenSpiel's, exact references, opponents, rewards by option."""

import random
from functools import cache

import numpy as np
import pytest

from lmgym.env.games.opponents import TreeSearch, best_payoff, minimax, perfect, rollout
from lmgym.env.games.state import OVER, uniform
from lmgym.env.golden import play
from lmgym.env.registry import build, specs
from lmgym.tasks.connect_four.game import ConnectFourState, random_payoff, search
from lmgym.tasks.tic_tac_toe.game import TicTacToeState, position

STARTS = {"tic_tac_toe": TicTacToeState(), "connect_four": ConnectFourState()}


@pytest.mark.parametrize("name", STARTS)
def test_random_games_are_openspiels(name):
    pyspiel = pytest.importorskip("pyspiel")
    chance, results = np.random.default_rng(0), set()
    for _ in range(200):
        ours, theirs = STARTS[name], pyspiel.load_game(name).new_initial_state()
        while not theirs.is_terminal():
            assert ours.player == theirs.current_player()
            assert [int(action) for action in ours.actions()] == theirs.legal_actions()
            action = int(chance.choice(theirs.legal_actions()))
            ours = ours.after(str(action))
            theirs.apply_action(action)
        assert ours.player == OVER
        assert ours.payoff() == theirs.returns()[0]
        results.add(ours.payoff())
    assert results >= {1.0, -1.0}


@cache
def value(state, first, second):
    """Return the mean payoff of player 0 when two strategies meet."""
    if state.player == OVER:
        return state.payoff()
    chances = (first, second)[state.player](state)
    return sum(p * value(state.after(a), first, second) for p, a in zip(chances, state.actions(), strict=True) if p)


def test_the_references_of_tic_tac_toe_are_exact():
    start = position("_" * 9)
    assert minimax(start) == 0.0
    for id_, strategy in (("lmgym/TicTacToe-v0", uniform), ("lmgym/TicTacToePerfect-v0", perfect)):
        best = sum(best_payoff(start, player, strategy) for player in (0, 1))
        chance = value(start, uniform, strategy) - value(start, strategy, uniform)
        assert 0.5 + best / 4 == pytest.approx(specs()[id_].references["oracle"], abs=5e-5)
        assert 0.5 + chance / 4 == pytest.approx(specs()[id_].references["random"], abs=5e-5)


def test_perfect_play_draws_among_all_perfect_moves():
    assert perfect(position("_" * 9)) == [1 / 9] * 9  # every opening is a draw
    state = position("X___O___X")  # a corner loses, an edge draws
    chosen = dict(zip(state.actions(), perfect(state), strict=True))
    assert chosen == {"1": 0.25, "2": 0.0, "3": 0.25, "5": 0.25, "6": 0.0, "7": 0.25}


def played(columns):
    state = ConnectFourState()
    for column in columns:
        state = state.after(column)
    return state


@pytest.mark.parametrize(
    ("columns", "best"),
    [
        ("010101", "0"),  # X has three of column 0
        ("0101016", "1"),  # O has three of column 1 and X left it
        ("01010", "0"),  # O must stop column 0
        ("031425", "6"),  # O's row needs column 6; X cannot win, so it blocks
    ],
)
def test_a_search_takes_a_win_and_stops_one(columns, best):
    assert search(played(columns), 4) == best


def test_lines_end_at_the_edges_of_the_board():
    # the top of column 0 and the bottom of column 1 are neighbours as bits only
    bits = sum(1 << 7 * column + row for column, row in ((0, 4), (0, 5), (1, 0), (1, 1)))
    assert not ConnectFourState(0, bits).lost
    assert ConnectFourState(0, 0b1111).lost


@pytest.mark.parametrize("payoff", [rollout, random_payoff])
def test_tree_search_takes_a_win(payoff):
    assert TreeSearch(200, payoff).choose(played("010101"), np.random.default_rng(0)) == "0"


def test_both_ways_of_random_play_agree():
    first = [rollout(ConnectFourState(), random.Random(i)) for i in range(2000)]
    second = [random_payoff(ConnectFourState(), random.Random(i)) for i in range(2000)]
    assert abs(np.mean(first) - np.mean(second)) < 4 * (2 / 2000) ** 0.5


def test_the_oracle_draws_against_minimax():
    env = build("TicTacToePerfect-v0", split="test")
    scores = {play(env, lambda task: task.oracle(), index=i, seed=i).infos[-1]["score"] for i in range(20)}
    assert scores == {0.5}


@pytest.mark.parametrize(("reward", "earned"), [("game", 0.0), ("mars", 0.1), ("textarena", 0.0)])
def test_a_draw_by_reward_scheme(reward, earned):
    env = build("tic_tac_toe", others="caller", reward=reward)
    env.reset(seed=0, options={"index": 0})
    steps = [env.step(action) for action in ("X(0,0)", "[4]", "<answer>8</answer>", "1", "7", "6", "2", "5", "3")]
    assert [step[4]["valid"] for step in steps] == [True] * 9
    *_, (observation, reward_of_x, over, _, info) = steps
    assert (over, reward_of_x, info["score"], info["success"]) == (True, earned, 0.5, False)
    assert info["seat_rewards"] == {"agent": earned, "opponent": earned}
    assert observation["text"] == "X O X\nX O O\nO X X\nA draw."


@pytest.mark.parametrize("action", ["9", "-1", "4 5", "O(0,0)", "X(3,0)", "", "[4][5]", "²", "1" * 5000])
def test_what_is_no_free_cell_is_refused(action):
    env = build("tic_tac_toe", others="caller")
    env.reset(seed=0, options={"index": 0})
    observation, reward, over, _, info = env.step(action)
    assert (reward, over, info["valid"], info["seat"]) == (0.0, False, False, "agent")
    assert observation["text"] == "That is not one legal action. You are X.\n0 1 2\n3 4 5\n6 7 8"


def test_the_agent_plays_either_seat():
    boards = {}
    for seat, index in (("both", 0), ("both", 1), ("second", 0), ("first", 1)):
        env = build("connect_four", seat=seat)
        boards[seat, index] = env.reset(seed=3, options={"index": index})[0]["text"].partition("You are ")[2]
    assert boards["both", 0] == boards["first", 1]
    assert boards["both", 1] == boards["second", 0]
    assert (boards["both", 0][0], boards["both", 0][1:].count("X")) == ("X", 0)
    assert (boards["both", 1][0], boards["both", 1][1:].count("X")) == ("O", 1)
