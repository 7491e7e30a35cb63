"""Data sets: what is written is read again."""

from __future__ import annotations

import gzip

import pytest

from lmgym.errors import InstanceError
from lmgym.policy.scripted import hinted
from lmgym.rollout import dataset, episodes
from lmgym.rollout.engine import Engine
from lmgym.types import Job


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


def test_a_compressed_file(tmp_path):
    found = played(1)
    with gzip.open(tmp_path / "data.jsonl.gz", "wt") as file:
        file.write(episodes.dump(found[0]) + "\n")
    assert list(dataset.read(tmp_path / "data.jsonl.gz")) == found


def test_another_suffix_is_refused(tmp_path):
    with pytest.raises(InstanceError, match="no data set"):
        list(dataset.read(tmp_path / "data.csv"))
    with pytest.raises(InstanceError, match="is written as"):
        dataset.write(tmp_path / "data.csv", [])
