"""Data sets: what is written is read again."""

from __future__ import annotations

import gzip
from dataclasses import replace

import pytest

from lmgym.errors import InstanceError
from lmgym.policy.scripted import hinted
from lmgym.rollout import dataset, episodes
from lmgym.rollout.engine import Engine
from lmgym.train.load import load_policy
from lmgym.types import Job


def played(count=3, *, by="oracle", options=None):
    jobs = [
        Job(
            task="lmgym/GuessNumber-v0",
            options=options or {},
            index=index,
            id=f"job-{index}",
            group=f"instance-{index}",
        )
        for index in range(count)
    ]
    policy = hinted("oracle") if by == "oracle" else load_policy(by, 1.0, 0)
    return sorted(Engine().run(policy, jobs), key=lambda episode: episode.id)


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
    read = list(dataset.read(tmp_path))
    assert [
        replace(each, id=was.id, root=was.root, group=was.group) for each, was in zip(read, found, strict=True)
    ] == found
    assert [each.id for each in read] == ["a.jsonl/job-0", "a.jsonl/job-1", "b.parquet/job-2"]


def test_recordings_by_two_players_have_ids_of_their_own_and_groups_in_common(tmp_path):
    for name in ("oracle", "random"):  # `lmgym record` gives both the same jobs
        dataset.write(tmp_path / f"{name}.jsonl", played(by=name))
    read = list(dataset.read(tmp_path))
    assert len(read) == len({each.id for each in read}) == 6
    assert len({each.group for each in read}) == 3
    for each in read:
        assert [other.index for other in read if other.group == each.group] == [each.index] * 2


def test_another_game_of_the_same_number_is_in_another_group(tmp_path):
    dataset.write(tmp_path / "a.jsonl", played(1))
    dataset.write(tmp_path / "b.jsonl", played(1, options={"highest": 8}))
    first, second = dataset.read(tmp_path)
    assert first.group != second.group


def test_a_fork_keeps_its_parent_in_a_folder(tmp_path):
    (parent,) = played(1)
    child = replace(parent, id="job-0+1.0", parent=parent.id, forked_at=1)
    dataset.write(tmp_path / "a.jsonl", [parent, child])
    first, second = dataset.read(tmp_path)
    assert (second.parent, second.root) == (first.id, first.id)


@pytest.mark.parametrize("name", ["episodes.jsonl", "episodes.parquet"])
def test_a_file_with_two_episodes_of_one_id_is_refused(tmp_path, name):
    dataset.write(tmp_path / name, [*played(1), *played(1, by="random")])
    with pytest.raises(InstanceError, match="two episodes 'job-0'"):
        list(dataset.read(tmp_path / name))


def test_a_compressed_file_is_read_and_another_suffix_refused(tmp_path):
    found = played(1)
    with gzip.open(tmp_path / "data.jsonl.gz", "wt") as file:
        file.write(episodes.dump(found[0]) + "\n")
    assert list(dataset.read(tmp_path / "data.jsonl.gz")) == found
    with pytest.raises(InstanceError, match="not a data set"):
        list(dataset.read(tmp_path / "data.csv"))
    with pytest.raises(InstanceError, match="cannot write a data set"):
        dataset.write(tmp_path / "data.csv", [])
