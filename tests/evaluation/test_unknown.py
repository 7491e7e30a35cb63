"""Figures that no provider reports are unknown everywhere, never 0."""

from __future__ import annotations

import json
import re
from types import SimpleNamespace

from lmgym.board import entry as entries
from lmgym.board import site
from lmgym.board.store import BoardStore
from lmgym.cli.watch import Watcher
from lmgym.evaluation.budget import Budget
from lmgym.evaluation.cache import Calls
from lmgym.evaluation.play import EvalProgress
from lmgym.evaluation.runner import outcome
from lmgym.policy.endpoints.calls import ParsedReply, StoredReply
from lmgym.types import Completion, Message, Trajectory, Turn
from tests.command import command

from .server import bisect, reply, serving


def uncounted(message):
    """Return a reply without token counts."""
    return {name: value for name, value in reply(message).items() if name != "usage"}


def played(*usages) -> Trajectory:
    question = Message(role="user", text="?")
    answers = [Completion(text="50", usage=usage) for usage in usages]
    turns = [Turn(observation=question, completion=each, action="50") for each in answers]
    facts = {"task": "lmgym/GuessNumber-v0", "split": "test", "index": 0, "info": {"score": 0.0, "success": False}}
    return Trajectory(id="e", root="e", turns=tuple(turns), final=question, **facts)


def test_unreported_tokens_are_unknown_in_every_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with serving(lambda body: uncounted(bisect(body))) as server:
        words = ("--model", server.model, "--episodes", "3", "--out", "run", "--quiet")
        assert command("eval", "guess_number", *words) == 0
        assert command("eval", "guess_number", *words[:4], "--out", "pilot", "--quiet", "--pilot") == 0
    printed = capsys.readouterr().out
    report = json.loads((tmp_path / "run/report.json").read_text())
    assert {(each["tokens_in"], each["tokens_out"], each["cost"]) for each in report["outcomes"]} == {(None,) * 3}
    for name in ("tokens_in", "tokens_out"):
        assert report["statistics"][name] == {"mean": None, "low": None, "high": None, "method": "", "total": None}
    assert report["statistics"]["turns"]["total"] > 0
    account = json.loads((tmp_path / "run/calls.json").read_text())
    assert (account["tokens_in"], account["tokens_out"], account["cost"]) == (None, None, None)
    assert account["replies"] > 3
    for name in ("tokens in", "tokens out"):
        assert f"| {name} | - | - | unknown |" in (tmp_path / "run/report.md").read_text()
        assert f"<td>{name}</td><td>-</td><td>-</td><td>unknown</td>" in (tmp_path / "run/report.html").read_text()
    assert re.search(r"prompt tokens\s+.?\s*unknown", printed)
    assert re.search(r"answer tokens\s+.?\s*unknown", printed)


def test_one_unreported_call_makes_an_episode_and_the_account_unknown(tmp_path):
    counted, silent = {"in": 10, "out": 2, "call": "a"}, {"in": 5, "call": "b"}
    assert (outcome(played(counted)).tokens_in, outcome(played(counted)).tokens_out) == (10, 2)
    assert (outcome(played(counted, silent)).tokens_in, outcome(played(counted, silent)).tokens_out) == (15, None)
    assert outcome(played({"in": 0, "out": 0, "call": "c"})).tokens_in == 0  # it says so
    assert outcome(played({"in": None, "out": None})).tokens_in is None  # a function, which may ask whom it likes
    assert outcome(played({})).tokens_in == 0  # a player of the task takes none
    calls = Calls(tmp_path / "calls.sqlite", Budget())
    for number, usage in enumerate(({"in": 3, "out": 1, "cost": 0.5}, {"in": 4})):
        exchange = calls.begin(str(number), [number])
        calls.store(exchange, str(number), StoredReply(raw={}, seconds=0.1), ParsedReply(text="", usage=usage))
    account = calls.account()
    calls.close()
    assert (account["tokens_in"], account["tokens_out"], account["cost"]) == (7, None, None)


def test_the_progress_table_shows_unknown_figures():
    budget = Budget()
    remote = SimpleNamespace(throttle=SimpleNamespace(running=0, limit=1, halvings=0))
    watcher = Watcher("", budget, remote, priced=True)
    watcher(EvalProgress(jobs=[]))
    budget.add(10, 0.5)
    assert (dict(watcher.rows())["tokens"], dict(watcher.rows())["cost"]) == ("10", "$0.5000")
    budget.add(None, None)
    rows = dict(watcher.rows())
    assert (rows["tokens"], rows["cost"]) == ("unknown", "unknown")
    assert rows["rate"].endswith("unknown tokens/s")


def test_an_entry_and_its_page_show_unknown_figures(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with serving(lambda body: uncounted({"role": "assistant", "content": "crane"})) as server:
        words = ("--model", server.model, "--standard", "--out", "run", "--quiet", "--concurrency", "64")
        assert command("eval", "wordle", *words) == 0
    assert command("submit", "run", "--name", "silent", "--author", "Nobody") == 0
    assert command("board", "grade") == 0
    store = BoardStore(tmp_path / "leaderboards")
    verdict = store.verdict(entries.read(store.path("lmgym/Wordle-v0", "silent")))
    assert (verdict.tokens_in, verdict.tokens_out, verdict.cost) == (None, None, None)
    site.write(site.load(store), tmp_path / "site")
    page = (tmp_path / "site/entries/Wordle-v0/silent.html").read_text()
    assert "<dt>Tokens in</dt><dd>not stated</dd>" in page
    (row,) = json.loads((tmp_path / "site/board.json").read_text())["tasks"]["lmgym/Wordle-v0"]
    assert (row["declared"]["tokens_in"], row["declared"]["tokens_out"]) == (None, None)
