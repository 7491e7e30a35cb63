"""The links and make targets that the README names exist, and make installs what a task needs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", ["README.md", "baselines/README.md", "baselines/curves/README.md", "CONTRIBUTING.md"])
def test_links_lead_somewhere(name: str) -> None:
    text = (ROOT / name).read_text()
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", text) if "://" not in link]
    assert all((ROOT / name).parent.joinpath(link).exists() for link in links), links


def test_every_make_target_of_the_readme_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = set(re.findall(r"\bmake ([a-z-]+)\b", (ROOT / "README.md").read_text()))
    assert named
    assert named <= targets


@pytest.mark.parametrize(
    ("task", "installed"),
    [
        ("lmgym/BabyAI-v0", ["pip install -q -c constraints.txt -e .[babyai]"]),
        ("wordle", []),
        ("alfworld", []),
        ("no_such_task", []),
    ],
)
def test_make_installs_what_a_task_needs_beyond_the_common_extras_once(
    task: str, installed: list[str], tmp_path: Path
) -> None:
    """With commands that write down how they are called, and Python."""
    binaries, calls = tmp_path / "bin", tmp_path / "calls"
    (tmp_path / ".venv").mkdir()
    binaries.mkdir()
    note = f'echo "$(basename $0) $*" >> {calls}'
    for name, line in (("pip", note), ("lmgym", note), ("python", f'exec {sys.executable} "$@"')):
        (binaries / name).write_text(f"#!/bin/sh\n{line}\n")
        (binaries / name).chmod(0o755)
    for _ in range(2):
        command = ["make", "-f", ROOT / "Makefile", "-o", ".venv/.train", f"BIN={binaries}"]
        subprocess.run([*command, "baseline", f"TASK={task}", "BUDGET="], cwd=tmp_path, check=True, capture_output=True)
    play = f"lmgym train grpo {task}"
    assert calls.read_text().splitlines() == [*installed, play, play]
