"""Killed and resumed runs: replies that arrived are paid for once, and the report is that of an unbroken run."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lmgym.evaluation import report as reports
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.record import ACCOUNT, CALLS
from lmgym.policy.base import Conversation
from lmgym.policy.endpoints.remote import RemotePolicy
from lmgym.policy.load import load_remote
from lmgym.types import Completion, Message

from .server import Server, peek, serving

ROOT = Path(__file__).resolve().parents[2]
AT_ONCE = 8


def start(server: Server, out: Path, plugin: Path, *more: str) -> subprocess.Popen[bytes]:
    words = ["test/Jars-v0", "--model", server.model, "--episodes", "60", "--concurrency", str(AT_ONCE), "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-c", "from lmgym.cli import main; main()", "eval", *words, "--out", str(out), *more],
        env={**os.environ, "PYTHONPATH": f"{plugin}:{ROOT}"},
        stdout=subprocess.DEVNULL,
    )


def killed_after(requests: int, server: Server, run: subprocess.Popen[bytes]) -> bool:
    """Kill a run once the server has seen so many requests; return False if it ended before."""
    while server.requests < requests and run.poll() is None:
        time.sleep(0.001)
    run.send_signal(signal.SIGKILL)
    return run.wait() != 0


def answers_of(policy: RemotePolicy, count: int) -> Iterator[Completion]:
    """Yield answers to distinct conversations as they arrive."""
    session = policy.session()
    for number in range(count):
        message = Message(role="user", text=f"Which number? {number}")
        session.put(str(number), Conversation(messages=(message,), noise=(number, 0, 0, 0)))
    found = 0
    while found < count:
        for _, completion in session.step():
            found += 1
            yield completion


def test_a_reply_is_recorded_before_it_is_used(tmp_path):
    """Another process reads it from the file at that moment; anything written later may be lost."""
    with serving(lambda body: {"content": "7"}) as server:
        policy = load_remote(server.model, ledger=Calls(tmp_path / CALLS, Budget()), concurrency=AT_ONCE)
        file = sqlite3.connect(tmp_path / CALLS)
        missing = 0
        for completion in answers_of(policy, 200):
            sql = "SELECT count(*) FROM replies WHERE key LIKE ? || '%'"
            ((there,),) = file.execute(sql, (completion.usage["call"],)).fetchall()
            missing += not there
        file.close()
        policy.close()
    assert missing == 0


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_a_killed_run_pays_for_no_reply_twice_and_reports_as_if_unbroken(tmp_path, plugin, kills):
    with serving(peek) as server:
        assert start(server, tmp_path / "whole", plugin).wait() == 0
        needed = server.requests
    chance = random.Random(kills)
    moments = sorted(chance.sample(range(1, needed), kills))
    out = tmp_path / "broken"
    with serving(peek, pause=0.02) as server:
        for number, moment in enumerate(moments):
            run = start(server, out, plugin, *(["--resume"] if number else []))
            assert killed_after(max(moment, server.requests + 1), server, run)
        assert start(server, out, plugin, "--resume").wait() == 0
        asked = Counter(json.dumps(body) for body in server.bodies)

    before, after = (reports.read(folder).outcomes for folder in (tmp_path / "whole", out))
    assert [replace(outcome, seconds=0) for outcome in after] == [replace(outcome, seconds=0) for outcome in before]
    account = json.loads((out / ACCOUNT).read_text())
    twice = account["possibly_paid_twice"]
    assert account["replies"] == len(asked) == needed
    assert 0 < len(twice) <= kills * AT_ONCE
    assert sum(asked.values()) - len(asked) <= len(twice)  # a request that was made again is in the list
    assert account["exchanges"] == account["replies"] + len(twice)
    file = sqlite3.connect(out / CALLS)
    assert file.execute("SELECT count(DISTINCT key), count(*) FROM exchanges WHERE outcome = 'reply'").fetchone() == (
        needed,
        needed,
    )
    file.close()
