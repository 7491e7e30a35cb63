"""The commands and programs of docs/how-to/serving.md, one after the other as they stand there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from lmgym.backends import wire
from lmgym.cli import main
from lmgym.evaluation import report as reports
from lmgym.serve.app import STATUS

from .conftest import TOKEN
from .process import Process, serving

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs/how-to/serving.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
URL = "http://127.0.0.1:8700"


def run(line: str, server: Process | None, stack: ExitStack, monkeypatch: pytest.MonkeyPatch) -> Process | None:
    """Run a line of the page; the server that runs from there on."""
    words = shlex.split(line.replace(URL, server.url) if server else line)
    if words[:2] == ["lmgym", "serve"]:
        return stack.enter_context(serving(*words[2:], "--port", "0", tokens=TOKEN))
    if words[0] == "lmgym":
        monkeypatch.setattr(sys, "argv", words)
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
    elif words[0] == "curl":
        words = [os.path.expandvars(word) for word in words]
        assert '"error"' not in subprocess.run(words, check=True, capture_output=True, text=True).stdout
    else:
        assert words[0] in ("pip", "export")  # installed; tokens are the test's
        if words[1].startswith("LMGYM_REMOTE_URL="):
            monkeypatch.setenv(*words[1].split("=", 1))
    return server


def test_every_command_and_program_of_the_page_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    server: Process | None = None
    programs: list[dict[str, object]] = []
    with ExitStack() as stack:
        for kind, text in BLOCKS:
            if kind == "sh":
                for line in text.splitlines():
                    server = run(line, server, stack, monkeypatch)
            else:
                assert server is not None
                code = text.replace(URL, server.url).replace("ws://127.0.0.1:8700", server.url.replace("http", "ws"))
                space: dict[str, object] = {}
                exec(compile(code, "docs/how-to/serving.md", "exec"), space)
                programs.append(space)
    assert programs[0]["info"]["instance"] == "test/3"  # type: ignore[index]
    assert programs[1]["rewards"] == [-1.0] * 64
    found = [reports.read(path.parent) for path in sorted(Path("runs").rglob("report.json"))]
    assert [(report.task, len(report.outcomes)) for report in found] == [("lmgym/Remote-v0", 5)] * len(found)
    assert len(found) == 2
    assert not any(TOKEN in path.read_text() for path in Path("runs").rglob("*.json*"))


def test_the_page_names_every_call_secret_and_code():
    calls = {kind.__struct_config__.tag for kind in wire.Call.__args__}
    codes = {
        "task",
        "option",
        "instance",
        "withheld",
        "backend",
        "internal",
        "session",
        "busy",
        "token",
        "host",
        "origin",
    }
    assert all(f"`{name}`" in PAGE for name in (*calls, *codes, *STATUS))
    assert "docs/how-to/serving.md" in (ROOT / "tasks/remote/README.md").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--warmup", "1", "--reveal-here"), ("--warmup", "0")])
def test_a_served_task_can_be_trained_on(monkeypatch, tmp_path, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    shown = ["--reveal", "demonstrator"] if "--reveal-here" in words else []
    with serving("guess_number", "--port", "0", *shown) as process:
        monkeypatch.setenv("LMGYM_REMOTE_URL", process.url)
        line = (
            f"lmgym train grpo remote --model tiny:1m --option url={process.url} --option task=guess_number --out run"
        )
        few = ["--steps", "1", "--instances", "2", "--group", "2", "--evaluate", "2", *words[:2]]
        run(shlex.join([*line.split(), *few]), process, ExitStack(), monkeypatch)
    assert (tmp_path / "run/metrics.jsonl").read_text()
    assert not any(TOKEN in path.read_text() for path in tmp_path.rglob("*.json*"))
