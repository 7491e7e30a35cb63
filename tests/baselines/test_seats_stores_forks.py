"""Recipes with seats, a store, forks and a reward model: token invariants, two processes, and the same bits resumed."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from types import MappingProxyType

import pytest
import torch

from lmgym.env import registry
from lmgym.rollout.episodes import read
from lmgym.train import curve, trained
from lmgym.train.log import read_metrics
from tests.baselines.two_processes import NAMES, train
from tests.train.chain import SPEC
from tests.train.test_ranks import ROOT
from tests.train.test_resume_critics import bits

LAUNCH = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "tests.baselines.two_processes"]


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("two")
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, *LAUNCH, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder, [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_two_processes_agree_and_end_with_the_same_bits_when_resumed(processes, name):
    folder, states = processes
    first, second = (state[name]["weights"] for state in states)
    assert all(torch.equal(first[part], second[part]) for part in first)
    assert all(state[name]["deaths"] >= 1 for state in states)
    whole, cut = (bits(folder / f"{name} {kind}") for kind in ("whole", "cut"))
    assert len(whole) == len(cut) > 10
    if name == "zhongjing":
        assert any(row.get("pairs_right") is not None for row in read_metrics(folder / f"{name} whole"))
    assert all(torch.equal(a, b) for a, b in zip(whole, cut, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name != "zhongjing"])  # its pairs train no policy
def test_every_sampled_token_is_trained_once_and_no_other(name, tmp_path, monkeypatch):
    """Turns that a fork shares are its parent's, stored episodes are trained again, other seats never."""
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC})
    monkeypatch.setattr(registry, "specs", lambda: known)
    monkeypatch.setattr(curve, "draw", lambda folder: folder)
    train(name, tmp_path / "run", steps=3)
    seen = Counter()
    for path in sorted((tmp_path / "run" / "episodes").glob("*.jsonl")):
        rows = trained.read(trained.path_beside(path))
        weights = Counter()
        for (episode, _), row in rows.items():
            weights[episode] += sum(weight != 0 for weight in row.weight)
        played = {each.id: each for each in read(path)}
        for each in played.values():
            own = each.turns[each.forked_at :]
            sampled = sum(len(turn.completion.ids) for turn in own if turn.kind != "given")
            expected = sampled if each.tags.get("trained", True) else 0
            if path.stem != "000000":  # imitation trains what is given
                assert weights[each.id] == expected, each.id
            seen["untrained"] += not each.tags.get("trained", True)
            seen["forks"] += each.parent is not None
            seen["seats"] += each.seat != "agent"
        seen["stored"] += len({episode for episode, _ in rows} - set(played))
    assert seen[{"arpo": "forks", "spear": "stored", "mars": "seats", "epo_adviser": "untrained"}[name]] > 0
