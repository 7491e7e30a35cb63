"""`lmgym serve` as it is typed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import httpx
import pytest
from typer.testing import CliRunner

from lmgym.cli import app
from lmgym.errors import InstanceError

from .conftest import TOKEN
from .process import COMMAND, serving


def refusal(*words: str) -> str:
    """Return the message of a command that does not start."""
    result = CliRunner().invoke(app, ["serve", *words], env={"LMGYM_SERVE_TOKEN": TOKEN})
    assert isinstance(result.exception, InstanceError)
    return str(result.exception)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org"])
def test_an_address_that_others_reach_must_be_exposed(host):
    assert "--expose" in refusal("wordle", "--host", host)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("checkers",), "unknown task"),
        (("remote",), "is a client of a server"),
        (("wordle", "--reveal", "all"), "cannot reveal 'all'"),
        (("wordle", "--option", "wrods=x"), "unknown option 'wrods'"),
        (("wordle", "guess_number", "--option", "highest=5"), "a single task"),
        (("wordle", "--host", "0.0.0.0", "--expose"), "needs --name HOST"),
        (("wordle", "--host", "10.255.255.1", "--expose", "--port", "0"), "cannot listen"),
    ],
)
def test_what_cannot_be_served_is_refused_at_once(words, message):
    assert message in refusal(*words)


def test_a_made_token_is_printed_and_opens_the_door():
    with serving("guess_number", "--port", "0", tokens=None) as process:
        (token,) = [line.removeprefix("token ") for line in process.said if line.startswith("token ")]
        assert len(token) == 32
        for each, status in ((token, 200), (TOKEN, 401)):
            headers = {"Authorization": f"Bearer {each}"}
            assert httpx.get(f"{process.url}/v1/tasks", headers=headers).status_code == status


def test_ctrl_c_ends_it_without_a_trace():
    environment = {**os.environ, "LMGYM_SERVE_TOKEN": TOKEN}
    process = subprocess.Popen(
        [*COMMAND, "guess_number", "--port", "0"], env=environment, text=True, stdout=-1, stderr=-1
    )
    assert process.stdout is not None
    lines = [process.stdout.readline(), process.stdout.readline()]
    assert "Ctrl-C" in lines[1]
    assert TOKEN not in "".join(lines)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    assert "Traceback" not in out + error
    assert process.returncode in (0, 1, 130, -signal.SIGINT)


def test_serving_needs_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastapi", None)
    for name in [name for name in sys.modules if name.startswith("lmgym.serve")]:
        monkeypatch.delitem(sys.modules, name)
    result = CliRunner().invoke(app, ["serve", "wordle"])
    assert "pip install 'lmgym[serve]'" in str(result.exception)
