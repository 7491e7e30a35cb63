from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lmgym.errors import InstanceError
from lmgym.rollout.context import Summarise
from lmgym.rollout.engine import Engine
from lmgym.rollout.episodes import append, dump, parse, read, write
from lmgym.types import Completion, Job, Message, Trajectory, Turn

from .fakes import Bytes


@pytest.fixture(scope="module")
def played():
    jobs = [Job(task="test/Dice-v0", index=i, id=f"job{i}", tags={"n": [i]}) for i in range(4)]
    jobs.append(Job(task="test/Gallery-v0", index=1, prompt="Look."))
    return list(Engine(context=Summarise(40)).run(Bytes(), jobs))


def test_episodes_come_back_as_they_were(played, tmp_path):
    write(tmp_path / "new" / "episodes.jsonl", played)
    assert list(read(tmp_path / "new" / "episodes.jsonl")) == played


@given(st.text(), st.lists(st.floats(allow_nan=False)), st.lists(st.integers(0, 1 << 40)))
@example("\ud800", [], [])
def test_any_text_and_number_survives(text, numbers, ids):
    said = Completion(text=text, ids=tuple(ids), logprobs=tuple(numbers))
    turn = Turn(observation=Message(role="user", text=text), completion=said, action=text)
    t = Trajectory(id=text, root="", task="", split="", turns=(turn,), final_ids=tuple(ids), instance={text: numbers})
    assert parse(dump(t)) == t
    assert "\n" not in dump(t)


def test_what_tasks_put_into_info_is_written_as_json_knows_it(played):
    info = {"array": np.arange(3), "number": np.float64(0.5), "set": {2, 1}, "tuple": (1, 2)}
    t = Trajectory(id="x", root="x", task="", split="", info=info)
    assert parse(dump(t)).info == {"array": [0, 1, 2], "number": 0.5, "set": [1, 2], "tuple": [1, 2]}


def test_appending_drops_what_was_cut_off_even_half_a_line_alone(played, tmp_path):
    path = tmp_path / "episodes.jsonl"
    append(path, played[:1])
    with path.open("a") as file:
        file.write(dump(played[1])[:100])
    assert list(read(path)) == played[:1]
    append(path, played[2:])
    assert list(read(path)) == [played[0], *played[2:]]
    path.write_text("x" * 200_000)
    append(path, played[:1])
    assert list(read(path)) == played[:1]


def test_a_write_that_fails_leaves_the_old_file(played, tmp_path):
    def broken():
        yield played[1]
        raise KeyboardInterrupt

    path = tmp_path / "episodes.jsonl"
    write(path, played[:1])
    with pytest.raises(KeyboardInterrupt):
        write(path, broken())
    assert list(read(path)) == played[:1]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("line", ["", "{}", "[1]", '{"turns": 1}', "not json"])
def test_what_is_no_episode_is_refused(line):
    with pytest.raises(InstanceError, match="not a recorded episode"):
        parse(line)
