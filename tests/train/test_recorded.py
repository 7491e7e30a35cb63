"""Episodes out of a data set: each under a name of its own, whoever recorded it."""

from __future__ import annotations

import pytest
import torch

from lmgym.evaluation import runner
from lmgym.policy.scripted import hinted
from lmgym.rollout import dataset
from lmgym.rollout.engine import Engine
from lmgym.train import source
from lmgym.train.collate import collate, turns_out
from lmgym.train.parts.filters import mask_stumbles
from lmgym.train.parts.planners import Stumble
from tests.train.chain import SPEC, chain_policy


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
