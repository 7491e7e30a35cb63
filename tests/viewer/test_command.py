"""`lmgym view`, as it is typed."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from urllib.request import urlopen

import pytest

from lmgym.cli.view import decoder
from lmgym.evaluation import runner
from lmgym.policy.load import load_policy
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.viewer.episode import tokens
from tests.command import command
from tests.viewer.planted import ATTACKS, hostile_run, plain_run


def test_it_serves_until_it_is_interrupted(tmp_path):
    run = plain_run(tmp_path)
    words = [sys.executable, "-c", "from lmgym.cli import main; main()", "view", str(run), "--outcome", "success"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        url = re.search(r"3 episodes at (http://127\.0\.0\.1:\d+/\S+/)", process.stdout.readline())[1]
        with urlopen(url + "listing.json", timeout=10) as answer:
            assert json.load(answer)["columns"]["index"] == [1, 3, 5]
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


def test_one_file_holds_what_was_chosen(capsys, tmp_path):
    run = plain_run(tmp_path / "run")
    words = ("view", str(run), "--export", str(tmp_path / "out.html"), "--instance", "4")
    assert command(*words) == 0
    assert "wrote 1 episodes" in capsys.readouterr().out
    page = (tmp_path / "out.html").read_text()
    assert "look 4" in page
    assert "look 3" not in page


def test_a_hostile_run_says_nothing_to_the_terminal(capsys, tmp_path):
    run = hostile_run(tmp_path)
    assert command("view", str(run), "--export", str(tmp_path / "out.html")) == 0
    printed = capsys.readouterr()
    assert "\x1b" not in printed.out + printed.err


@pytest.mark.parametrize("number", range(len(ATTACKS)))
def test_replaying_a_hostile_episode_says_nothing_to_the_terminal(capsys, tmp_path, number):
    file = str(hostile_run(tmp_path) / "episodes.jsonl")
    assert command("replay", file, "--number", str(number), "--no-verify") == 0
    printed = capsys.readouterr()
    assert all(line.isprintable() for line in (printed.out + printed.err).split("\n"))


def test_an_error_says_nothing_to_the_terminal(capsys, tmp_path):
    assert command("view", str(tmp_path / ATTACKS[11].replace("/", ":"))) == 2
    printed = capsys.readouterr().err
    assert r"\x1b[2J" in printed
    assert printed.rstrip("\n").isprintable()


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("no/such/run",), "no/such/run has no episodes.jsonl"),
        (("{run}", "--outcome", "won"), "unknown --outcome 'won'; choose from success, failure, truncated"),
        (("{run}", "--host", "no.such.host.invalid"), "no.such.host.invalid"),
    ],
)
def test_what_goes_wrong_is_one_line(capsys, tmp_path, words, line):
    run = str(plain_run(tmp_path))
    assert command("view", *(word.format(run=run) for word in words)) == 2
    printed = capsys.readouterr()
    assert line in printed.err
    assert printed.err.count("\n") == 1


def test_tokens_of_a_model_are_the_text_it_said(tmp_path):
    jobs = runner.episodes("guess_number", split="test", size=1000, count=1, options={"max_turns": 1})
    kept = []
    runner.evaluate(load_policy("tiny"), jobs, engine=Engine(max_tokens=12), keep=kept.append)
    episodes.write(tmp_path / "episodes.jsonl", kept)
    decode = decoder("tiny")
    for turn in (turn for one in episodes.read(tmp_path / "episodes.jsonl") for turn in one.turns):
        rows = tokens(turn.completion, decode)
        assert len(rows) == len(turn.completion.ids) > 0
        assert "".join(word for word, _, _ in rows) == decode(turn.completion.ids)
        assert all(logprob <= 0 <= entropy for _, logprob, entropy in rows)
