"""The commands of docs/how-to/leaderboard.md, run in order, and the workflow for proposals."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from lmgym.board import history
from lmgym.cli import main

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = [
    line
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / "docs/how-to/leaderboard.md").read_text(), re.DOTALL)
    for line in block.splitlines()
]
REFERENCES = ("null", "random", "oracle")
VERIFIES = "lmgym verify ../proposed/leaderboards --base leaderboards --out ../verdicts"
REBUILDS = "lmgym board --leaderboard ../proposed/leaderboards --base leaderboards --out ../site"
WORKFLOW = (ROOT / ".github/workflows/leaderboard.yml").read_text()


def run(monkeypatch: pytest.MonkeyPatch, command: str) -> int:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_every_command_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret.txt").write_text("a long secret that nobody guesses\n")
    shutil.copytree(ROOT / "leaderboards/suites", tmp_path / "leaderboards/suites")
    assert len(COMMANDS) >= 14
    for command in COMMANDS:
        assert run(monkeypatch, command) == 0, f"{command}: {capsys.readouterr().err}"
    events = history.read(tmp_path / "leaderboards/history.jsonl")
    assert [
        (event.what, event.name, event.mark) for event in events if event.name not in ("null", "random", "oracle")
    ] == [
        ("added", "demonstrator", "verified"),
        ("added", "tiny-untrained", "verified"),
        ("regraded", "tiny-untrained", "reproduced"),
        ("committed", "", ""),
        ("regraded", "demonstrator", "verified"),
        ("regraded", "tiny-untrained", "reproduced"),
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
    assert used
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
