"""The workflow for pull requests, run in clones as it makes them; the steps that install packages are left out."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from lmgym.board import history
from lmgym.env.registry import specs
from tests.board.forge import Forger

ROOT = Path(__file__).resolve().parents[2]
JOB = yaml.safe_load((ROOT / ".github/workflows/leaderboard.yml").read_text())["jobs"]["verify"]
WORDLE = "lmgym/Wordle-v0"
DESKTOP = "lmgym/Desktop-v0"  # needs applications of Debian, which the workflow does not install
ME = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *ME, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


class Hub:
    """A board whose keepers go on while a pull request, begun before, waits."""

    def __init__(self, folder: Path) -> None:
        self.origin, self.runner = folder / "origin", folder / "runner"
        for place in (self.origin, self.runner):
            place.mkdir()
        git(self.origin, "init", "-q")
        git(self.origin, "config", "uploadpack.allowAnySHA1InWant", "true")
        self.keep("before")
        git(self.origin, "checkout", "-q", "-b", "proposal")

    def keep(self, reason: str) -> None:
        """A line of the history, by the board's keepers."""
        log = self.origin / "leaderboards/history.jsonl"
        history.append(log, date="2026-11-21", what="archived", task=WORDLE, reason=reason)
        self.commit()

    def commit(self) -> None:
        git(self.origin, "add", "--all")
        git(self.origin, "commit", "-q", "-m", "A change")

    def propose(self, entry: Path) -> None:
        """The pull request adds an entry, and the board has gone on since."""
        shutil.copytree(entry.parent, self.origin / "leaderboards/entries" / entry.parent.name)
        self.commit()
        git(self.origin, "checkout", "-q", "main")
        self.keep("since")
        git(self.origin, "checkout", "-q", "-b", "merge")
        git(self.origin, "merge", "-q", "--no-ff", "-m", "Merge", "proposal")

    def run(self) -> tuple[int, str]:
        """All steps that need no other machine; the code of the last one, and what all said."""
        facts = {"github.sha": git(self.origin, "rev-parse", "merge")}
        output = ""
        for step in JOB["steps"]:
            if "checkout" in step.get("uses", ""):
                self.check_out(step["with"], facts)
            elif "run" in step and "sudo" not in step["run"] and "== github.repository" not in step.get("if", ""):
                done = self.step(step)
                output += done.stdout + done.stderr
                facts |= self.outputs(step)
                if done.returncode:
                    return done.returncode, output
        return 0, output

    def check_out(self, wanted: dict[str, Any], facts: dict[str, str]) -> None:
        folder, ref = self.runner / wanted["path"], wanted["ref"].removeprefix("${{ ").removesuffix(" }}")
        folder.mkdir()
        git(folder, "init", "-q")
        git(folder, "fetch", "-q", "--depth", str(wanted.get("fetch-depth", 1)), self.origin.as_uri(), facts[ref])
        if "sparse-checkout" in wanted:
            git(folder, "sparse-checkout", "set", wanted["sparse-checkout"])
        git(folder, "checkout", "-q", facts[ref])
        if wanted["path"] == "base":
            (folder / ".venv").symlink_to(sys.prefix)

    def step(self, step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        script = self.runner / "step.sh"
        script.write_text(step["run"])
        environment = {**os.environ, "GITHUB_OUTPUT": str(self.runner / "output")}
        place = self.runner / step.get("working-directory", ".")
        return subprocess.run(["bash", "-e", script], cwd=place, env=environment, capture_output=True, text=True)

    def outputs(self, step: dict[str, Any]) -> dict[str, str]:
        file = self.runner / "output"
        lines = file.read_text().splitlines() if file.exists() else []
        return {f"steps.{step.get('id')}.outputs.{name}": value for name, _, value in (x.partition("=") for x in lines)}


@pytest.fixture
def hub(tmp_path: Path) -> Hub:
    return Hub(tmp_path)


def test_an_honest_entry_passes_although_the_board_went_on_since(hub: Hub, forger: Forger) -> None:
    hub.propose(forger.path)
    code, output = hub.run()
    assert (code, "verified (exact): honest on lmgym/Wordle-v0, 93 episodes" in output) == (0, True), output
    assert "the history continues: 0 lines were added" in output
    assert (hub.runner / "verdicts/Wordle-v0-honest.json").is_file()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda _, episodes: episodes[0].update(score=1.0 - episodes[0]["score"]), "instance 0, try 0 states score"),
        (lambda entry, _: entry.update(name="else"), "the entry else on lmgym/Wordle-v0 belongs in"),
        (None, "site/board.js is not a file of an entry"),
    ],
    ids=["score", "name", "script"],
)
def test_a_forged_proposal_is_refused(
    hub: Hub, forger: Forger, change: Callable[..., None] | None, message: str
) -> None:
    if change is None:
        (hub.origin / "leaderboards/site").mkdir()
        (hub.origin / "leaderboards/site/board.js").write_text("alert(1)")
    hub.propose(forger.path if change is None else forger.change(change))
    code, output = hub.run()
    assert (code, message in output) == (2, True), output


def test_the_workflow_installs_what_the_entries_need_to_be_replayed() -> None:
    (install,) = (step["run"] for step in JOB["steps"] if step["name"] == "Install the base")
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", install)
    tasks = {f"lmgym/{folder.name}" for folder in (ROOT / "leaderboards/entries").iterdir()} - {DESKTOP}
    assert {task: set(specs()[task].extras) - set(extras.split(",")) for task in tasks} == {
        task: set() for task in tasks
    }


def test_ci_runs_its_script_on_a_clean_checkout_and_may_only_read() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["check"]["steps"]
    assert re.fullmatch(r"actions/checkout@[0-9a-f]{40}", steps[0]["uses"])
    assert steps[-1]["run"] == ".ci/run"
