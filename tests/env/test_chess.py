"""Chess beside known move counts, OpenSpiel and hand-made positions: moves, notations, ends of games."""

import numpy as np
import pytest

from lmgym.env.games.chess.game import Game, insufficient
from lmgym.env.games.chess.notation import from_uci, read_move, san
from lmgym.env.games.chess.position import START_FEN, ChessPosition
from lmgym.env.games.chess.search import best_move, greedy_moves
from lmgym.errors import InstanceError

KIWIPETE = "r3k2r/p1ppqpb1/bn2pnp1/3PN3/1p2P3/2N2Q1p/PPPBBPPP/R3K2R w KQkq - 0 1"
COUNTS = {  # FEN: depth and number of lines, from the Chess Programming Wiki's page "Perft Results"
    START_FEN: (4, 197_281),
    KIWIPETE: (3, 97_862),
    "8/2p5/3p4/KP5r/1R3p1k/8/4P1P1/8 w - - 0 1": (4, 43_238),
    "r3k2r/Pppp1ppp/1b3nbN/nP6/BBP1P3/q4N2/Pp1P2PP/R2Q1RK1 w kq - 0 1": (3, 9_467),
    "rnbq1k1r/pp1Pbppp/2p5/8/2B5/8/PPP1NnPP/RNBQK2R w KQ - 1 8": (3, 62_379),
    "r4rk1/1pp1qppp/p1np1n2/2b1p1B1/2B1P1b1/P1NP1N2/1PP1QPPP/R4RK1 w - - 0 10": (3, 89_890),
}


def lines(position, depth):
    if depth == 1:
        return len(position.moves)
    return sum(lines(position.after(move), depth - 1) for move in position.moves)


@pytest.mark.parametrize("fen", COUNTS)
def test_the_legal_lines_of_a_standard_position_are_counted(fen):
    depth, count = COUNTS[fen]
    position = ChessPosition.from_fen(fen)
    assert position.fen == fen
    assert lines(position, depth) == count


def test_random_games_are_openspiels():
    pyspiel = pytest.importorskip("pyspiel")
    chance, endings = np.random.default_rng(0), set()
    for _ in range(4):
        ours, theirs = Game(), pyspiel.load_game("chess").new_initial_state()
        while not ours.ending:
            board = ours.position
            written = {san(board, move).rstrip("+#"): move for move in board.moves}
            named = {theirs.action_to_string(action).rstrip("+#"): action for action in theirs.legal_actions()}
            assert set(written) == set(named)
            name = sorted(named)[int(chance.integers(len(named)))]
            assert read_move(board, name) == written[name]
            ours.play(written[name])
            theirs.apply_action(named[name])
        endings.add(ours.ending)
    assert endings


def test_moves_are_read_in_many_spellings_and_written_in_one():
    position = ChessPosition.from_fen(KIWIPETE)
    for text in ("O-O", "0-0", "e1g1", "O-O!"):
        assert san(position, read_move(position, text)) == "O-O"
    for text in ("dxe6", "dxe6+", "d5e6", "d5xe6"):
        assert read_move(position, text).uci == "d5e6"
    assert read_move(position, "Nd3").uci == "e5d3"
    for text in ("", "e5", "Ke9", "Nb5b5", "d7d8q", "--", "Kg1", "Kc1", "Ke1g1", "O-O-O-O", "♞f3", "e" * 100_000):
        assert read_move(position, text) is None
    promoting = ChessPosition.from_fen("8/P6k/8/8/8/8/8/K7 w - - 0 1")
    assert read_move(promoting, "a8") is None
    assert {san(promoting, read_move(promoting, text)) for text in ("a8=N", "a8n", "a7a8n")} == {"a8=N"}
    rooks = ChessPosition.from_fen("7k/8/8/R7/8/8/8/R3K3 w - - 0 1")
    assert read_move(rooks, "Ra3") is None
    assert {san(rooks, from_uci(uci)) for uci in ("a1a3", "a5a3")} == {"R1a3", "R5a3"}
    with pytest.raises(ValueError, match="UCI"):
        from_uci("a7a8k")


def test_en_passant_is_told_only_where_it_is_legal():
    assert ChessPosition.from_fen("4k3/8/8/8/4p3/8/3P4/4K3 w - - 0 1").after(from_uci("d2d4")).fen.split()[3] == "d3"
    assert ChessPosition.from_fen("4k3/8/8/8/8/8/3P4/4K3 w - - 0 1").after(from_uci("d2d4")).fen.split()[3] == "-"
    pinned = ChessPosition.from_fen("8/8/8/8/k3p2R/8/3P4/4K3 w - - 0 1")  # the capture would bare the king on its rank
    assert pinned.after(from_uci("d2d4")).fen.split()[3] == "-"


@pytest.mark.parametrize(
    "fen",
    [
        "",
        "8/8/8/8/8/8/8/8 w - - 0 1",
        START_FEN.replace("pppppppp", "ppppppp"),
        START_FEN.replace("w", "x"),
        START_FEN.replace("0 1", "0 0"),
        START_FEN.replace("0 1", "zero 1"),
        "4k3/8/8/8/8/8/8/4K3 w KQ - 0 1",  # no rooks
        "P3k3/8/8/8/8/8/8/4K3 w - - 0 1",
        "4k3/4R3/8/8/8/8/8/4K3 w - - 0 1",  # Black is in check and White on turn
        "4k3/8/8/8/8/8/8/4K3 w - z9 0 1",
    ],
)
def test_an_impossible_position_is_refused(fen):
    with pytest.raises(InstanceError, match="not a position of chess"):
        ChessPosition.from_fen(fen)


def played(fen, moves):
    game = Game(ChessPosition.from_fen(fen))
    for text in moves.split():
        assert not game.ending
        game.play(read_move(game.position, text))
    return game


def test_a_game_ends_by_mate_stalemate_repetition_quiet_moves_and_lack_of_material():
    mate = played(START_FEN, "f3 e5 g4 Qh4")
    assert (mate.ending, mate.payoff) == ("checkmate", -1.0)
    assert san(mate.first, from_uci("f2f3")) == "f3"
    assert played("7k/8/6K1/8/8/8/8/1Q6 w - - 0 1", "Qb8#").payoff == 1.0
    assert played("k7/8/1K6/8/8/8/8/2Q5 w - - 0 1", "Qc7").ending == "stalemate"
    assert played(START_FEN, "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1").ending == ""
    assert played(START_FEN, "Nf3 Nf6 Ng1 Ng8 Nf3 Nf6 Ng1 Ng8").ending == "threefold repetition"
    assert played("7k/8/8/8/8/8/8/R3K3 w Q - 98 80", "Ra2 Kg7").ending.startswith("fifty moves")
    assert played("7k/8/8/8/8/8/6q1/5K2 w - - 0 1", "Kxg2").ending == "insufficient material"


@pytest.mark.parametrize(
    ("men", "dead"),
    [
        ("k6K/8", True),
        ("k5NK/8", True),
        ("k5bK/8", True),
        ("k2B1b1K/8", True),  # d8 and f8 are both dark
        ("k2Bb2K/8", False),
        ("k4NNK/8", False),
        ("kb4NK/8", False),
        ("k6K/1R6", False),
    ],
)
def test_material_is_insufficient_where_no_mate_is_possible(men, dead):
    assert insufficient(ChessPosition.from_fen(f"{men}/8/8/8/8/8/8 w - - 0 1")) is dead


def test_players_by_rule_take_what_hangs_and_mate():
    hanging = ChessPosition.from_fen("4k3/8/8/3q4/4P3/8/8/4K3 w - - 0 1")
    assert [move.uci for move in greedy_moves(hanging)] == ["e4d5"]
    defended = ChessPosition.from_fen("4k3/2p5/3p4/8/8/8/8/3QK3 w - - 0 1")
    assert "d1d6" not in {move.uci for move in greedy_moves(defended)}
    back_rank = Game(ChessPosition.from_fen("6k1/5ppp/8/8/8/8/8/R3K3 w Q - 0 1"))
    assert {best_move(back_rank, 1).uci, greedy_moves(back_rank.position)[0].uci} == {"a1a8"}
    in_two = Game(ChessPosition.from_fen("7k/8/5K2/8/8/8/8/R7 w - - 0 1"))
    in_two.play(best_move(in_two, 3))
    in_two.play(in_two.position.moves[0])
    in_two.play(best_move(in_two, 3))
    assert in_two.ending == "checkmate"
