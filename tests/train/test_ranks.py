"""Two processes make the gradient of one, and a run that both agree on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.train import together

ROOT = Path(__file__).resolve().parents[2]
LAUNCH = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2", "-m", "tests.train.together"]


@pytest.fixture(scope="module")
def processes(tmp_path_factory):
    folder = tmp_path_factory.mktemp("together")
    done = subprocess.run(
        [sys.executable, *LAUNCH, str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return folder, [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("aggregation", ["token_mean", "seq_mean", "seq_sum"])
def test_the_gradient_is_that_of_one_process(processes, aggregation):
    alone = together.whole_gradient(aggregation)
    for state in processes[1]:
        assert (state["gradients"][aggregation] - alone).norm() <= 1e-5 * alone.norm()


def test_both_have_the_same_weights_after_a_run(processes):
    first, second = (state["weights"] for state in processes[1])
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_both_report_all_episodes(processes):
    first, second = (state["outcomes"] for state in processes[1])
    assert first == second
    assert len(first[0]) == together.ARGS.evaluate


def test_one_of_them_writes_the_run(processes):
    folder = processes[0] / "run"
    assert (folder / "run.json").exists()
    assert (folder / "policy").is_dir()
    assert not (folder / "processes" / "1" / "checkpoints").exists()
