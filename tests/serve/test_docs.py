"""The commands and programs of docs/how-to/serving.md, run in order."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from lmgym.backends import wire
from lmgym.evaluation import report as reports
from lmgym.serve.app import STATUS
from tests.command import command
from tests.docs.blocks import ROOT, PageRunner, blocks

from .conftest import TOKEN
from .process import serving

PAGE = "docs/how-to/serving.md"
URL = "http://127.0.0.1:8700"


def test_every_command_and_program_of_the_page_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    programs: list[dict[str, Any]] = []
    with ExitStack() as stack:

        def serve(words: list[str]) -> None:
            process = stack.enter_context(serving(*words[2:], "--port", "0", tokens=TOKEN))
            runner.replace = {URL: process.url, URL.replace("http", "ws"): process.url.replace("http", "ws")}

        def export(words: list[str]) -> None:
            name, _, value = words[1].partition("=")
            if not name.endswith("_TOKEN"):  # the test has its own
                monkeypatch.setenv(name, value)

        runner = PageRunner(monkeypatch, commands={"lmgym serve": serve, "export": export})
        for block in blocks(PAGE):
            runner.run(block)
            if block.language == "python":
                programs.append(dict(runner.names))
    assert programs[0]["info"]["instance"] == "test/3"
    assert programs[1]["rewards"] == [-1.0] * 64
    results = [reports.read(path.parent) for path in sorted(Path("runs").rglob("report.json"))]
    assert [(report.task, len(report.outcomes)) for report in results] == [("lmgym/Remote-v0", 5)] * 2
    assert not any(TOKEN in path.read_text() for path in Path("runs").rglob("*.json*"))


def test_the_page_names_every_call_secret_and_code():
    page = (ROOT / PAGE).read_text()
    calls = {kind.__struct_config__.tag for kind in wire.AnyCall.__args__}
    codes = ["task", "option", "instance", "withheld", "backend", "internal", "session", "busy", "token", "origin"]
    assert all(f"`{name}`" in page for name in (*calls, *codes, *STATUS))
    assert "docs/how-to/serving.md" in (ROOT / "tasks/remote/README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--warmup", "1", "--reveal-here"), ("--warmup", "0")])
def test_a_served_task_can_be_trained_on(monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    reveal = ["--reveal", "demonstrator"] if "--reveal-here" in words else []
    with serving("guess_number", "--port", "0", *reveal) as process:
        monkeypatch.setenv("LMGYM_REMOTE_URL", process.url)
        line = f"train grpo remote --model tiny:1m --option url={process.url} --option task=guess_number --out run"
        few = ["--steps", "1", "--instances", "2", "--group", "2", "--evaluate", "2", *words[:2]]
        assert command(*line.split(), *few) == 0
    assert (tmp_path / "run/metrics.jsonl").read_text()
    assert not any(TOKEN in path.read_text() for path in tmp_path.rglob("*.json*"))
