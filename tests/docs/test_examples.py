"""Every file of examples/ runs, in a few seconds."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest
import torch

from .blocks import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
TRAINS = ("own_algorithm", "own_reward")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small Hugging Face model with its tokenizer, saved as `lmgym train` saves policies."""
    from lmgym.policy.load import load_policy

    torch.set_num_threads(1)
    folder = tmp_path_factory.mktemp("model")
    load_policy("tiny:1m").save(folder)  # type: ignore[attr-defined]
    return folder


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in TRAINS)) for path in EXAMPLES],
    ids=[path.stem for path in EXAMPLES],
)
def test_example_runs(
    path: Path, tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = {"batched_rollout": [f"hf:{model}"], **dict.fromkeys(TRAINS, ["1", "1", "run"])}.get(path.stem, [])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(path), *words])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.strip()
    assert (tmp_path / "run/metrics.jsonl").exists() == (path.stem in TRAINS)


def test_examples_are_short_and_listed() -> None:
    readme = (ROOT / "examples/README.md").read_text()
    assert len(EXAMPLES) == 6
    for path in EXAMPLES:
        assert len(path.read_text().splitlines()) < 60
        assert f"({path.name})" in readme
