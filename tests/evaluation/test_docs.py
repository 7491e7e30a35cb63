"""The commands of docs/how-to/evaluation.md, one after the other as they stand there, with endpoints on loopback."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from lmgym.cli import main
from lmgym.evaluation import report as reports
from lmgym.evaluation.settings import Settings

from .server import bisect, reply, serving

PAGE = (Path(__file__).resolve().parents[2] / "docs/how-to/evaluation.md").read_text()
BLOCKS = re.findall(r"^```(\w*) ?(\S*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for kind, _, text in BLOCKS if kind == "sh" for line in text.splitlines()]
FILES = {name: text for _, name, text in BLOCKS if name}
HOST = "http://localhost:8000/v1"


def speaker(body):
    """A model of either dialect that can play what the page plays."""
    if isinstance(body["messages"][0]["content"], list):
        return {"raw": {"content": [{"type": "text", "text": "50"}], "stop_reason": "end_turn"}}
    guessing = any("whole number" in message["content"] for message in body["messages"])
    return reply(bisect(body) if guessing else {"content": "crane"})


def test_every_command_of_the_page_runs(monkeypatch, tmp_path, capfd):
    monkeypatch.chdir(tmp_path)
    assert len(COMMANDS) >= 18
    assert set(FILES) == {"player.py", "prices.json"}
    with serving(speaker) as server:
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url.removesuffix("/v1"))
        monkeypatch.setenv("ANTHROPIC_API_KEY", "a key for the loopback")
        for name, text in FILES.items():
            Path(name).write_text(text.replace(HOST, server.url))
        for command in COMMANDS:
            words = shlex.split(command.replace(HOST, server.url).replace("cmd:python3", f"cmd:{sys.executable}"))
            monkeypatch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as ended:
                main()
            assert not ended.value.code, f"{command}: {capfd.readouterr().err}"
        asked = server.requests
    both = reports.read_all(Path("runs/eval/both"))
    assert [report.planned for report in both] == [20, 20]
    pilot, fast = (reports.read(Path("runs/eval", name)) for name in ("pilot", "fast"))
    assert (len(pilot.outcomes), pilot.stopped, len(fast.outcomes)) == (20, "", 20)
    accounts = [json.loads(path.read_text()) for path in Path("runs").rglob("calls.json")]
    program = [path for path in Path("runs").rglob("calls.json") if "player" in path.parent.name]
    assert sum(account["exchanges"] for account in accounts) == asked + sum(
        json.loads(path.read_text())["exchanges"] for path in program
    )


def test_the_page_names_every_setting_of_an_identity():
    words = " ".join(PAGE.lower().split())
    names = {"max_tokens": "tokens of an answer", "prompt": "system prompt", "seats": "other seats"}
    assert all(names.get(name, name) in words for name in Settings.__dataclass_fields__)


def test_links_of_the_page_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", PAGE)
    assert links
    assert all((Path(__file__).resolve().parents[2] / "docs/how-to" / link).exists() for link in links)
