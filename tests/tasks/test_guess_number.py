import pytest

from lmgym.env.golden import play
from lmgym.env.registry import build


@pytest.mark.parametrize("highest", [1, 100, 1000])
def test_bisection_finds_any_number_in_ten_turns(highest):
    env = build("guess_number", highest=highest)
    for index in range(50):
        assert play(env, lambda task: task.demonstrator(), index=index).infos[-1]["success"]


def test_answers_tell_the_direction_and_bad_ones_are_answered():
    env = build("guess_number")
    env.reset(seed=0, options={"index": 0})
    number = env.unwrapped.number
    said = [env.step(action)[0]["text"] for action in (str(number - 1), f"{number + 1}.", "2.5", "1 2", str(number))]
    assert said == ["higher", "lower", "Answer with one whole number.", "Answer with one whole number.", "Correct!"]


def test_all_numbers_are_hidden_somewhere():
    for split in ("train", "test"):
        env = build("guess_number", highest=10, split=split).unwrapped
        hidden = set()
        for index in range(200):
            env.reset(seed=0, options={"index": index})
            hidden.add(env.number)
        assert hidden == set(range(1, 11))
