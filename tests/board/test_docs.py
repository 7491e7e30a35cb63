"""The commands of docs/how-to/leaderboard.md, run in order, and the workflow for proposals."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from lmgym.board import history
from tests.docs.blocks import ROOT, PageRunner, blocks

PAGE = "docs/how-to/leaderboard.md"
REFERENCES = ("null", "random", "oracle")
VERIFIES = "lmgym verify ../proposed/leaderboards --base leaderboards --out ../verdicts"
REBUILDS = "lmgym board --leaderboard ../proposed/leaderboards --base leaderboards --out ../site"
WORKFLOW = (ROOT / ".github/workflows/leaderboard.yml").read_text()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(ROOT / "leaderboards/suites", tmp_path / "leaderboards/suites")
    page = blocks(PAGE)
    assert sum(len(block.text.splitlines()) for block in page if block.language == "sh") >= 13
    runner = PageRunner(monkeypatch)
    for block in page:
        runner.run(block)
    events = history.read(tmp_path / "leaderboards/history.jsonl")
    assert [(event.what, event.name, event.mark) for event in events if event.name not in REFERENCES] == [
        ("added", "demonstrator", "verified"),
        ("added", "tiny-untrained", "verified"),
        ("regraded", "tiny-untrained", "reproduced"),
        ("regraded", "demonstrator", "verified"),
        ("removed", "demonstrator", ""),
    ]
    assert (tmp_path / "build/board/entries/Wordle-v0/tiny-untrained.html").is_file()
    assert (tmp_path / "build/verdicts/Wordle-v0-demonstrator.json").is_file()


def test_the_workflow_runs_no_code_of_a_proposal() -> None:
    assert re.findall(r"^on:\n  (\w+):", WORKFLOW, re.MULTILINE) == ["pull_request"]
    assert "pull_request_target" not in WORKFLOW
    assert re.search(r"^permissions:\n  contents: read\n\n", WORKFLOW, re.MULTILINE)
    assert "secrets." not in WORKFLOW
    assert "write" not in re.sub(r"#.*", "", WORKFLOW)
    used = re.findall(r"uses: (\S+)", WORKFLOW)
    assert len(used) == 3
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", each) for each in used)
    assert WORKFLOW.count("persist-credentials: false") == WORKFLOW.count("actions/checkout@")
    assert re.search(r"timeout-minutes: \d+", WORKFLOW)
    assert "ulimit" in WORKFLOW
    working = re.findall(r"working-directory: (\S+)", WORKFLOW)
    assert set(working) == {"base"}  # the proposal's folder is data
    assert "apparmor_restrict_unprivileged_userns=0" in WORKFLOW
    installed = set(re.findall(r"-e '\.\[([\w,]+)\]'", WORKFLOW)[0].split(","))
    assert {"board", "alfworld", "textworld", "webshop", "web"} <= installed
    # strangers may only add entries; whoever may write to the repository has every changed verdict replayed
    proposals, keepers = re.findall(r"if: (.*)\n(?:.*\n)+? +\.venv/bin/(lmgym .*)", WORKFLOW)
    assert proposals == ("github.event.pull_request.head.repo.full_name != github.repository", VERIFIES)
    assert keepers == ("github.event.pull_request.head.repo.full_name == github.repository", REBUILDS)
    assert "${{" not in "".join(re.findall(r"run: (?:\|\n(?: {10}.*\n)+|.*)", WORKFLOW))  # no text of it in a shell
