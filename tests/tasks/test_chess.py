"""Chess tasks: rewards of LMRL-Gym, endgames beside their tables, Stockfish alive, dead and of limited strength."""

import gc
import os
import random
import signal
import subprocess
import sys
import time
from itertools import islice

import pytest

from lmgym.backends import stockfish as engine_process
from lmgym.env.games.chess.position import START_FEN, ChessPosition
from lmgym.env.golden import at_random, given, play
from lmgym.env.registry import build
from lmgym.errors import BackendError, MissingExtra
from lmgym.tasks.chess.endings import PIECES, UNKNOWN, first_position, lone_king_move, table
from tests.components import stockfish

START = " ".join(START_FEN) + "\n"
NEARLY = {"fen": "6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1"}  # Ra8 mates


def test_an_illegal_move_and_being_mated_cost_one_each(opened):
    env = opened("lmgym/Chess-v0", opponent="greedy")
    env.reset(seed=0, options={"index": 0})
    env.step("f3")
    env.unwrapped.game.__init__(ChessPosition.from_fen("rnbqkbnr/pppp1ppp/8/4p3/8/5P2/PPPPP1PP/RNBQKBNR w KQkq - 0 2"))
    _, reward, terminated, _, info = env.step("g4")
    assert (reward, terminated, info["score"]) == (-1.0, True, 0.0)
    assert info["seat_scores"] == {"agent": 0.0, "opponent": 1.0}
    observation, _ = env.reset(seed=0, options={"index": 0})
    assert observation["text"].endswith(START)
    for text in ("K e 9", "e5", "", "O-O", "--", "e2e4e5", "x" * 1_000_000):
        observation, reward, terminated, truncated, info = env.step(text)
        assert (observation["text"], reward, terminated, truncated, info["valid"]) == (START, -1.0, False, False, False)
    observation, reward, *_, info = env.step("<think>e5?</think>\n> e 4")
    assert (reward, info["valid"]) == (0.0, True)
    assert "4 P 3" in observation["text"]
    assert env.unwrapped.cut()["figures"] == {"illegal_moves": 7.0}


@pytest.mark.parametrize(
    ("fen", "move", "reward", "score"),
    [
        (NEARLY["fen"], "Ra8#", 1.0, 1.0),
        ("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "Qc7", 0.0, 0.5),  # stalemate
        ("7k/8/8/8/8/8/6q1/5K2 w - - 0 1", "Kxg2", 0.0, 0.5),
    ],
)
def test_a_game_pays_its_result(opened, fen, move, reward, score):
    env = opened("lmgym/Chess-v0", opponent="greedy")
    env.reset(seed=0, options={"instance": {"fen": fen}})
    _, earned, terminated, _, info = env.step(move)
    assert (earned, terminated, info["score"], info["success"]) == (reward, True, score, score == 1)


def test_black_forfeits_by_its_third_illegal_move(opened):
    env = opened("lmgym/Chess-v0", opponent="greedy", others="caller")
    env.reset(seed=0, options={"index": 0})
    assert env.step("e4")[4]["seat"] == "opponent"
    for _ in range(2):
        assert env.step("e4")[1:3] == (-1.0, False)
    _, reward, terminated, _, info = env.step("no move")
    assert (reward, terminated, info["score"], info["seat_rewards"]["agent"]) == (-1.0, True, 1.0, 1.0)


def test_the_tables_of_endgames_are_those_that_are_known():
    mates = {piece: table(piece).lost for piece in "QR"}  # known: mate in 10 and 16 at most
    assert [int(values[values != UNKNOWN].max()) for values in mates.values()] == [10, 16]
    assert int((mates["R"] == 0).sum()) == 216  # mates by the rook, Black on turn: 27 up to symmetry


def test_test_positions_differ_and_are_not_in_the_training_split():
    test = [first_position("test", index) for index in range(645)]
    assert len({position.board for position in test}) == 645
    assert not {position.board for position in test} & {first_position("train", i).board for i in range(500)}
    for index, position in enumerate(test):
        men = sorted(position.board.replace(".", ""))
        assert men == sorted(f"Kk{PIECES[index % 4]}")
        assert position.white
        assert not position.impossible


@pytest.mark.slow
def test_the_oracle_mates_in_all_test_positions(opened):
    env = opened("lmgym/ChessEndgames-v0", split="test")
    for index in range(645):
        trace = play(env, lambda task: task.oracle(), index=index)
        assert trace.infos[-1]["score"] == 1.0, index


GAME = """
from lmgym.env.golden import at_random, play
from lmgym.env.registry import build
env = build("lmgym/Chess-v0")
trace = play(env, at_random, index=3, seed=5)
print([observation["text"] for observation in trace.observations])
env.close()
"""


def test_the_lone_king_plays_as_a_search_of_all_moves_would():
    draw = random.Random(0)
    for index in range(80):
        position = first_position("train", index)
        for _ in range(3):
            position = position.after(draw.choice(position.moves))
            if not position.moves:
                break
            move = lone_king_move(position)
            assert move == max(position.moves, key=lambda each: (worst_for_black(position.after(each)), -each.target))
            position = position.after(move)


def worst_for_black(position):
    """Search all of White's moves."""
    if set(position.board) == {".", "K", "k"}:
        return 1000
    return min((standing(position.after(move)) for move in position.moves), default=0)


def standing(position):
    if not position.moves:
        return -1000 if position.in_check else 1000
    (row, column), white = divmod(position.board.index("k"), 8), divmod(position.board.index("K"), 8)
    takes = [move for move in position.moves if position.board[move.target] != "."]
    edge = max(abs(2 * row - 7), abs(2 * column - 7))
    return 20 * len(takes) + len(position.moves) - 4 * edge + max(abs(row - white[0]), abs(column - white[1]))


def test_games_against_stockfish_are_the_same_in_two_processes():
    stockfish()
    games = [
        subprocess.run(
            [sys.executable, "-c", GAME],
            env={**os.environ, "PYTHONHASHSEED": salt},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for salt in ("1", "2")
    ]
    assert games[0] == games[1]
    assert games[0].count("K") > 5


def test_a_seed_draws_stockfishs_moves(opened):
    stockfish()
    env = opened("lmgym/Chess-v0")
    games = [play(env, given(["e4", "d4", "Nf3"]), index=0, seed=seed) for seed in (1, 1, 2, 3)]
    texts = [[observation["text"] for observation in game.observations] for game in games]
    assert texts[0] == texts[1]
    assert len({str(text) for text in texts}) > 1


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_a_killed_stockfish_is_a_backend_error_and_the_next_reset_works(opened):
    stockfish()
    env = opened("lmgym/Chess-v0")
    engine = env.unwrapped.opponent.engine
    first = engine.pid
    os.kill(first, signal.SIGKILL)
    with pytest.raises(BackendError, match="Stockfish"):
        env.step("e4")
    env.reset(seed=0, options={"index": 0})
    assert not alive(first)
    second = engine.pid
    os.kill(second, signal.SIGKILL)
    time.sleep(0.1)
    env.reset(seed=0, options={"index": 0})  # died between two episodes
    env.step("e4")
    assert "4 P 3" in env.unwrapped.latest_text
    third = engine.pid
    next(env.unwrapped.oracle())
    other = env.unwrapped.second.pid
    env.close()
    assert not any(alive(pid) for pid in (first, second, third, other))


def test_an_environment_that_is_dropped_leaves_no_stockfish():
    stockfish()
    env = build("lmgym/Chess-v0")
    env.reset(seed=0, options={"index": 0})
    pid = env.unwrapped.opponent.engine.pid
    assert alive(pid)
    del env
    gc.collect()
    assert not alive(pid)


def test_a_program_that_does_not_speak_uci_is_named_after_the_handshake(monkeypatch):
    monkeypatch.setenv("LMGYM_STOCKFISH", "/bin/cat")
    monkeypatch.setattr(engine_process, "HANDSHAKE", 0.2)
    env = build("lmgym/Chess-v0")
    with pytest.raises(BackendError, match="gave no answer"):
        env.reset(seed=0)
    env.close()


def test_limited_strength_says_that_it_is_not_deterministic(opened):
    stockfish()
    env = opened("lmgym/Chess-v0", opponent="elo:1350")
    assert not env.unwrapped.task.deterministic
    env.step("e4")


def test_a_missing_or_other_stockfish_names_its_remedy(monkeypatch, tmp_path):
    monkeypatch.setenv("LMGYM_STOCKFISH", str(tmp_path / "none"))
    with pytest.raises(MissingExtra, match="LMGYM_STOCKFISH is .*: apt-get install stockfish"):
        build("lmgym/Chess-v0")
    other = tmp_path / "other"
    other.write_text("#!/bin/sh\nwhile read line; do echo 'id name Stockfish 17'; echo uciok; echo readyok; done\n")
    other.chmod(0o755)
    monkeypatch.setenv("LMGYM_STOCKFISH", str(other))
    env = build("lmgym/Chess-v0")
    with pytest.raises(MissingExtra, match="Stockfish 17"):
        env.reset(seed=0)
    env.close()
    with_rules = build("lmgym/ChessGreedy-v0")
    assert len(list(islice(play(with_rules, lambda task: islice(at_random(task), 2), index=0).rewards, 3))) == 2
