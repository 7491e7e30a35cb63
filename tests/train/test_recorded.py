"""Episodes out of a data set: each under a name of its own, whoever recorded it."""

from __future__ import annotations

import json
from functools import partial

import pytest
import torch

from lmgym.baselines import filtered_bc
from lmgym.evaluation import runner
from lmgym.policy.scripted import hinted
from lmgym.rollout import dataset
from lmgym.rollout.engine import Engine
from lmgym.train import source
from lmgym.train.collate import collate, turns_out
from lmgym.train.log import read_metrics
from lmgym.train.parts.filters import keep_best, mask_stumbles
from lmgym.train.parts.planners import Stumble
from tests.train.chain import SPEC, chain_policy
from tests.train.victim import train


def record(path, *, seed=0, stumbles=0.0):
    """As `lmgym record` does: the same jobs whoever plays."""
    jobs = runner.episodes(SPEC.id, split="train", size=8, count=8, seed=seed, options={})
    planner = Stumble(stumbles) if stumbles else None
    with Engine(planner=planner) if planner else Engine() as engine:
        dataset.write(path, engine.run(hinted("demonstrator"), jobs))


def test_stumbles_of_two_recordings_are_masked_where_they_are(tmp_path):
    for seed in (1, 2):
        record(tmp_path / f"{seed}.jsonl", seed=seed, stumbles=0.4)
    episodes = source.recorded(tmp_path, chain_policy(), step=0, count=16, seed=0)
    batch = collate(episodes, trained="given")
    out = turns_out(batch, episodes, mask_stumbles(episodes).mask)
    stumbled = [{n for n, turn in enumerate(each.turns) if turn.info.get("stumble")} for each in episodes]
    assert sum(map(len, stumbled)) > 10
    wrong = torch.zeros_like(batch.mask)
    for row, number in enumerate(batch.episode.tolist()):
        for turn in stumbled[number]:
            wrong[row] |= batch.turn[row] == turn
    assert torch.equal(out, wrong)


def test_a_batch_of_two_episodes_with_one_id_is_a_bug(tmp_path):
    record(tmp_path / "a.jsonl")
    (first, *_) = source.recorded(tmp_path / "a.jsonl", chain_policy(), step=0, count=1, seed=0)
    with pytest.raises(AssertionError, match="one id"):
        collate([first, first], trained="given")


def steps(path, *returns):
    """A data set with an episode of each return, in the layout of LMRL-Gym's maze."""
    rows = [[{"state": "1 to 8", "action": str(n), "reward": got, "done": True}] for n, got in enumerate(returns)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_the_share_that_is_really_kept_is_in_the_log(tmp_path):
    data = steps(tmp_path / "data.jsonl", 1.0, 0.0, 1.0, 1.0, 0.0)
    args = filtered_bc.Args(warmup=0, steps=2, instances=1, group=2, share=0.2, evaluate=2, recorded=str(data))
    train(tmp_path / "run", args=args, recipe=filtered_bc.recipe(args))
    rows = [row for row in read_metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert [row["selected"] for row in rows] == [0.6, 0.6]  # all three successes, as they tie


def test_a_data_set_is_read_once_and_again_when_it_is_another(tmp_path, monkeypatch):
    data = steps(tmp_path / "data.jsonl", 1.0, 0.0)
    read, calls = dataset.read, []
    monkeypatch.setattr(dataset, "read", lambda path: calls.append(path) or read(path))
    best = partial(keep_best, share=0.5)
    assert [len(source.selected(data, select)) for select in (best, None, best)] == [1, 2, 1]
    assert source.size(data) == 2
    assert len(calls) == 1
    steps(data, 1.0, 1.0, 1.0)
    assert len(source.selected(data, best)) == 3
    assert len(calls) == 2
