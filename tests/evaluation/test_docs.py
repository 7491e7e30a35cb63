"""The commands of docs/how-to/evaluation.md, run in order, with endpoints on loopback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lmgym.evaluation import report as reports
from lmgym.evaluation.settings import Settings
from tests.docs.blocks import ROOT, PageRunner, blocks

from .server import bisect, reply, serving

PAGE = "docs/how-to/evaluation.md"
HOST = "http://localhost:8000/v1"


def speaker(body):
    """A model of either dialect that can play what the page plays."""
    if isinstance(body["messages"][0]["content"], list):
        return {"raw": {"content": [{"type": "text", "text": "50"}], "stop_reason": "end_turn"}}
    guessing = any("whole number" in message["content"] for message in body["messages"])
    return reply(bisect(body) if guessing else {"content": "crane"})


def test_every_command_of_the_page_runs(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = blocks(PAGE)
    assert sum(len(block.text.splitlines()) for block in page if block.language == "sh") >= 18
    assert {block.title for block in page if block.title} == {"player.py", "prices.json"}
    with serving(speaker) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url.removesuffix("/v1"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a key for the loopback")
        replace = {HOST: server.url, "cmd:python3": f"cmd:{sys.executable}"}
        runner = PageRunner(monkeypatch, replace=replace)
        for block in page:
            runner.run(block)
        requests = server.requests
    both = reports.read_all(Path("runs/eval/both"))
    assert [report.planned for report in both] == [20, 20]
    pilot, fast = (reports.read(Path("runs/eval", name)) for name in ("pilot", "fast"))
    assert (len(pilot.outcomes), pilot.stopped, len(fast.outcomes)) == (20, "", 20)
    accounts = [json.loads(path.read_text()) for path in Path("runs").rglob("calls.json")]
    program = [path for path in Path("runs").rglob("calls.json") if "player" in path.parent.name]
    assert sum(account["exchanges"] for account in accounts) == requests + sum(
        json.loads(path.read_text())["exchanges"] for path in program
    )


def test_the_page_names_every_setting_of_an_identity():
    words = " ".join((ROOT / PAGE).read_text().lower().split())
    names = {"max_tokens": "tokens of an answer", "prompt": "system prompt", "seats": "other seats"}
    assert all(names.get(name, name) in words for name in Settings.__dataclass_fields__)
