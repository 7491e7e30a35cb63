import pytest

from lmgym.env.registry import find
from lmgym.rollout.lmrl_score import SCALES, normalised


@pytest.mark.parametrize(
    ("task", "mean", "score"),
    [  # by hand from table 5; the paper's own column differs by up to 2 points, as its raw returns are rounded
        ("lmgym/TwentyQuestions-v0", -14.6, 78.7),
        ("lmgym/TwentyQuestions-v0", -13.0, 95.7),
        ("lmgym/GuessMyCity-v0", -11.2, 87.1),
        ("lmgym/Wordle-v0", -2.16, 95.0),
        ("lmgym/Wordle-v0", -5.42, 15.4),
        ("lmgym/TextNavPartial-v0", 0.76, 83.8),
        ("lmgym/Chess-v0", -22.3, 47.2),
        ("lmgym/Chess-v0", 1.0, 100.0),
        ("lmgym/ChessEndgames-v0", 0.112, 35.1),
        ("lmgym/ChessEndgames-v0", 0.814, 77.5),
        ("lmgym/ChessEndgames-v0", -22.87, 0.0),
        ("lmgym/Maze-v0", -101.0, 0.0),
        ("lmgym/Maze-v0", -400.0, 0.0),
        ("lmgym/Maze-v0", -83.0, 50.0),
        ("lmgym/Maze-v0", -6.84, 100.0),
    ],
)
def test_the_score_is_linear_between_minimum_average_and_maximum(task, mean, score):
    assert normalised(task, mean) == pytest.approx(score, abs=0.06)


def test_scales_are_of_tasks_and_car_dealer_has_none():
    assert all(find(name).id == name for name in SCALES)
    assert normalised("lmgym/CarDealer-v0", 0.5) is None
