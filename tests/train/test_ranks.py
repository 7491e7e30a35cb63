"""Two processes make the gradient of one, and a run that both agree on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType

import pytest
import torch

from lmgym.env import registry
from lmgym.train.log import read_metrics
from tests.train import together
from tests.train.chain import SPEC
from tests.train.test_resume_critics import bits

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


@pytest.fixture(scope="module")
def alone(tmp_path_factory, _one_thread):
    """Return the gradients and values of the same critics in a single process."""
    known = MappingProxyType({**registry.specs(), SPEC.id: SPEC})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "specs", lambda: known)
        return together.of_critics(tmp_path_factory.mktemp("alone"))


@pytest.mark.parametrize("name", ["value head", "value network", "ilql", "archer small", "archer policy"])
def test_the_gradient_of_a_critic_is_that_of_one_process(processes, alone, name):
    assert alone[name].norm() > 0
    for state in processes[1]:
        assert (state["critics"][name] - alone[name]).norm() <= 1e-5 * alone[name].norm()


@pytest.mark.parametrize(
    "name", ["values of head", "values of network", "judged by small", "judged by policy", "log-probs", "said"]
)
def test_what_is_shared_out_comes_together(processes, alone, name):
    first, second = (state["critics"][name] for state in processes[1])
    assert torch.equal(first, second)
    assert (first - alone[name]).abs().max() < 1e-4


def test_the_tries_of_a_group_are_played_in_one_process(processes):
    first, second = (state["groups"] for state in processes[1])
    assert first == second
    drawn = [f"play-0-{group}-{attempt}" for group in range(5) for attempt in range(3)]
    added = [f"play-0-{group}-{attempt}" for group in range(5) for attempt in (3, 4)]
    assert first == [*drawn, *added]


def test_two_processes_killed_and_resumed_end_with_the_same_bits(processes):
    folder, states = processes
    assert all(state["deaths"] >= 2 for state in states)
    found = [bits(folder / name) for name in ("whole", "cut")]
    assert len(found[0]) == len(found[1]) > 20
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_two_processes_with_a_store_agree_and_end_with_the_same_bits_when_resumed(processes):
    folder, states = processes
    first, second = (state["stored"] for state in states)
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert any(row.get("stored_episodes") for row in read_metrics(folder / "stored whole"))
    assert all(state["stored deaths"] >= 1 for state in states)
    found = [bits(folder / name) for name in ("stored whole", "stored cut")]
    assert len(found[0]) == len(found[1])
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


def test_a_process_that_has_no_episode_to_evaluate_has_the_report_of_all(processes):
    (first,), (second,) = (state["lonely"] for state in processes[1])
    assert (first["planned"], len(first["outcomes"])) == (1, 1)
    assert {**first, "outcomes": ()} == {**second, "outcomes": ()}
    assert first["outcomes"] == second["outcomes"]


def test_both_have_the_same_weights_and_report_all_episodes_and_one_writes_the_run(processes):
    first, second = (state["weights"] for state in processes[1])
    assert all(torch.equal(first[name], second[name]) for name in first)
    first, second = (state["outcomes"] for state in processes[1])
    assert first == second
    assert len(first[0]) == together.ARGS.evaluate
    folder = processes[0] / "run"
    assert (folder / "run.json").exists()
    assert (folder / "policy").is_dir()
    assert not (folder / "processes" / "1" / "checkpoints").exists()
