"""Data sets: what is written is read again, and LMRL-Gym's layouts become episodes."""

from __future__ import annotations

import gzip
import json

import pytest

from lmgym.errors import InstanceError
from lmgym.policy.scripted import hinted
from lmgym.rollout import dataset
from lmgym.rollout.engine import Engine
from lmgym.types import Job

STATES = [
    {"state": "start", "action": "left", "reward": -1.0, "done": False},
    {"state": "hall", "action": "right", "reward": 0.0, "done": True},
]
SEQUENCE = {
    "sequence": [
        ["Wordle:\n", False],
        ["s l a t e\n", True],
        ["b b g b g\n", False],
        ["c r a n e\n", True],
        ["!", False],
    ],
    "reward": [0.0, -1.0, 0.0, 0.0, 0.0],
    "done": True,
}
HISTORY = {
    "text_history": ["a room", "go east", "a cellar", "take coin"],
    "rewards": [0, 0, 0, 1],
    "dones": [0, 0, 0, 1],
}


def played(count=3):
    jobs = [Job(task="lmgym/GuessNumber-v0", index=index, id=f"job-{index}") for index in range(count)]
    return sorted(Engine().run(hinted("oracle"), jobs), key=lambda episode: episode.id)


@pytest.mark.parametrize("name", ["episodes.jsonl", "deep/episodes.parquet"])
def test_what_is_written_is_read_again(tmp_path, name):
    found = played()
    dataset.write(tmp_path / name, found)
    assert list(dataset.read(tmp_path / name)) == found


def test_parquet_has_columns_that_others_can_read(tmp_path):
    import datasets

    found = played(2)
    dataset.write(tmp_path / "episodes.parquet", found)
    rows = list(datasets.load_dataset("parquet", data_files=str(tmp_path / "*.parquet"), split="train", streaming=True))
    assert [row["return"] for row in rows] == [episode.reward for episode in found]
    assert rows[0]["turns"][0]["action"] == found[0].turns[0].action
    assert rows[0]["success"] is True


def test_a_folder_is_the_sum_of_its_files(tmp_path):
    found = played()
    dataset.write(tmp_path / "a.jsonl", found[:2])
    dataset.write(tmp_path / "b.parquet", found[2:])
    assert list(dataset.read(tmp_path)) == found


def lines(tmp_path, *contents):
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(content) + "\n" for content in contents))
    return list(dataset.read(path))


def test_a_sequence_of_lmrl_gym(tmp_path):
    (episode,) = lines(tmp_path, SEQUENCE)
    assert [(turn.observation.text, turn.action, turn.reward) for turn in episode.turns] == [
        ("Wordle:\n", "s l a t e\n", -1.0),
        ("b b g b g\n", "c r a n e\n", 0.0),
    ]
    assert episode.final.text == "!"
    assert episode.terminated
    assert not episode.truncated


def test_a_text_history_and_a_list_of_steps(tmp_path):
    history, steps = lines(tmp_path, HISTORY, STATES)
    assert [(turn.observation.text, turn.action) for turn in history.turns] == [
        ("a room", "go east"),
        ("a cellar", "take coin"),
    ]
    assert history.reward == 1.0
    assert [(turn.observation.text, turn.action, turn.reward) for turn in steps.turns] == [
        ("start", "left", -1.0),
        ("hall", "right", 0.0),
    ]
    assert history.id != steps.id


def test_an_episode_that_was_not_done_is_truncated(tmp_path):
    (episode,) = lines(tmp_path, {**SEQUENCE, "done": False})
    assert episode.truncated
    assert not episode.terminated


def test_a_compressed_file(tmp_path):
    with gzip.open(tmp_path / "data.jsonl.gz", "wt") as file:
        file.write(json.dumps(HISTORY) + "\n")
    assert len(list(dataset.read(tmp_path / "data.jsonl.gz"))) == 1


@pytest.mark.parametrize(
    "content",
    [
        {"no": "episode"},
        [],
        7,
        {**SEQUENCE, "reward": [1.0, 0.0, 0.0, 0.0, 0.0]},  # of a text that is no action
        {**SEQUENCE, "reward": [0.0]},
        {"text_history": ["a"], "rewards": ["b"], "dones": []},
    ],
)
def test_what_is_no_episode_is_refused_with_its_line(tmp_path, content):
    with pytest.raises(InstanceError, match="line 2"):
        lines(tmp_path, HISTORY, content)


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(InstanceError, match="no data set"):
        list(dataset.read(tmp_path / "data.csv"))
    with pytest.raises(InstanceError, match="is written as"):
        dataset.write(tmp_path / "data.csv", [])
