"""Sokoban: pushes, rewards, levels and RAGEN's turns."""

import episodes
import pytest

from lmgym.tasks.sokoban.level import Position, Puzzle, level

FLOOR = frozenset((row, column) for row in (1, 2, 3) for column in (1, 2, 3, 4))
ROOM = Puzzle(6, FLOOR, frozenset({(1, 4)}), Position((1, 1), frozenset({(1, 2)})))  # P X _ O


def opened(task="sokoban", room=ROOM, **options):
    env = episodes.opened(task, **options)
    env.unwrapped.level, env.unwrapped.position = room, room.start
    return env


def test_a_box_is_pushed_onto_its_target():
    env = opened()
    (first, reward, *_), (last, final, terminated, _, info) = env.step("right"), env.step("Right")
    assert first["text"].splitlines()[1] == "#_PXO#"
    assert last["text"].splitlines()[1] == "#__P√#"
    assert (reward, terminated, info["score"]) == (-0.1, True, 1.0)
    assert final == pytest.approx(-0.1 + 1 + 10)
    assert info["reward_terms"] == {"step": -0.1, "boxes": 1.0, "solved": 10.0}


@pytest.mark.parametrize(
    ("player", "boxes", "move"),
    [
        ((1, 1), {(2, 2)}, "Up"),  # a wall
        ((1, 3), {(1, 4)}, "Right"),  # a box at a wall
        ((1, 1), {(1, 2), (1, 3)}, "Right"),  # two boxes in a row
    ],
)
def test_nothing_moves_where_there_is_no_room(player, boxes, move):
    position = Position(player, frozenset(boxes))
    assert ROOM.moved(position, move) == position


def test_a_box_pushed_off_a_target_costs_one_and_every_symbol_is_drawn():
    room = Puzzle(6, FLOOR, frozenset({(2, 2), (3, 4)}), Position((2, 1), frozenset({(2, 2), (1, 3)})))
    *_, info = opened(room=room).step("Right")
    assert info["reward_terms"] == {"step": -0.1, "boxes": -1.0, "solved": 0.0}
    position = Position((1, 4), frozenset({(1, 2), (3, 3)}))
    room = Puzzle(6, FLOOR, frozenset({(1, 4), (3, 3), (2, 1)}), position)
    assert room.draw(position).splitlines()[1:4] == ["#_X_S#", "#O___#", "#__√_#"]


@pytest.mark.parametrize(("side", "boxes", "most"), [(6, 1, None), (8, 2, None), (6, 1, 10)])
def test_levels_can_be_solved_within_their_turns(side, boxes, most):
    for index in range(20):
        made = level("train", index, side, boxes, most)
        moves = made.solution(made.start)
        position = made.start
        for move in moves:
            position = made.moved(position, move)
        assert made.solved(position)
        assert len(moves) <= (most or 60)
        assert not made.start.boxes & made.targets
        assert len(made.targets) == boxes


def test_a_box_in_a_corner_has_no_solution():
    assert ROOM.solution(Position((1, 2), frozenset({(1, 1)}))) is None


def test_an_answer_may_hold_several_actions():
    env = opened("SokobanRAGEN-v0")
    observation, reward, *_ = env.step("<answer>Down || Up</answer>")
    assert observation["text"].startswith("Reward:\n-0.2\n\nTurn 2:\nState:\n######\n#PX_O#\n")
    assert reward == pytest.approx(-0.2)
    _, reward, terminated, _, info = env.step("<answer>Right||Right||Left</answer>")  # over before the third
    assert (terminated, info["score"]) == (True, 1.0)
    assert reward == pytest.approx(-0.2 + 1 + 10)


def test_an_answer_without_an_action_costs_a_tenth():
    *_, info = opened("SokobanRAGEN-v0").step("Right")
    assert (info["valid"], info["reward_terms"]["format"]) == (False, -0.1)
