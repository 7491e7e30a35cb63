"""Settings that an honest evaluation has, from the evaluation to the page: handed in, verified, shown as they were."""

from __future__ import annotations

import html
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from lmgym.board import entry as entries
from lmgym.board.entry import Entry
from lmgym.board.verify import verify
from lmgym.errors import SubmissionError
from tests.board.conftest import Commands
from tests.board.forge import validated
from tests.board.test_audit_settings import DUELS, JARS, plugin
from tests.evaluation.server import serving

__all__ = ["plugin"]


@pytest.fixture
def model() -> Iterator[str]:
    """An endpoint that says 12, which is a move of duels and no call of a tool."""
    with serving(lambda body: {"content": "12"}) as server:
        yield server.model


def entered(lmgym: Commands, task: str, model: str, *words: str) -> Entry:
    """Evaluate a model on a task, submit the run, and return the validated entry."""
    lmgym("eval", task, "--model", model, "--standard", "--quiet", "--out", "run", *words)
    lmgym("submit", "run", "--author", "A. Uthor", "--name", "honest")
    (path,) = entries.all_paths(Path("leaderboards/entries"))
    return validated(path)


def test_a_stop_at_the_end_of_a_line_is_verified_and_shown_escaped(lmgym: Commands, model: str) -> None:
    stops = ["\n", "\t", "\r\n", "</s>", "```", "\\n", "<script>alert(1)</script>"]
    entry = entered(lmgym, JARS, model, "--request", f"stop={json.dumps(stops)}")
    assert entry.settings["request"] == {"stop": stops}
    path = "leaderboards/entries/test--FewJars-v0/honest.json"
    assert "\\n" in Path(path).read_text()
    lmgym("verify", path, "--workers", "1")
    lmgym("board", "grade")
    lmgym("board", "--out", "site")
    page = Path("site/entries/test--FewJars-v0/honest.html").read_text()
    text = json.dumps({"stop": stops})
    assert "\n" not in text
    assert f"<dt>request</dt><dd>{html.escape(text).replace('&quot;', '&#34;')}</dd>" in page
    assert "<script>alert" not in page


NO_THOUGHTS = {"chat_template_kwargs": {"enable_thinking": False}}
JSON = {"type": "json_object", "note": "long " * 99}


@pytest.mark.parametrize(
    ("words", "setting", "value"),
    [
        (("--request", 'chat_template_kwargs={"enable_thinking":false}'), "request", NO_THOUGHTS),
        (("--request", 'chat_template_kwargs={"enable_thinking":False}'), "request", NO_THOUGHTS),
        (("--request", 'logit_bias={"50256":-100}'), "request", {"logit_bias": {"50256": -100}}),
        (("--request", f"response_format={json.dumps(JSON)}"), "request", {"response_format": JSON}),
        (("--request", r'guided_regex="[a-z]\\d+(<a>|`b`)&"'), "request", {"guided_regex": r"[a-z]\d+(<a>|`b`)&"}),
        (("--request", "stop=Observation:"), "request", {"stop": "Observation:"}),
        (("--request", "user=null"), "request", {"user": None}),
        (("--temperature", "0"), "temperature", 0.0),
        (("--temperature", "2", "--max-tokens", "1"), "max_tokens", 1),
        (("--context", "window:8:4"), "context", "window:8:4"),
        (("--context", "summarise:2000"), "context", "summarise:2000"),
        (("--tools", "text"), "tools", "text"),
        (("--tools", "none"), "tools", "none"),
        (("--system", "<a>\r\n\tx `y` \\ & z</a>"), "prompt", "<a>\r\n\tx `y` \\ & z</a>"),
        (("--system", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"), "prompt", "می\u200cخواهم"),
        (("--system", "\U0001f469\u200d\U0001f4bb"), "prompt", "\U0001f469\u200d\U0001f4bb"),
        (("--system", ""), "prompt", ""),
        (("--system", "@marked.txt"), "prompt", "Be brief.\n"),  # without the mark that some editors begin a file with
    ],
)
def test_settings_are_handed_in(
    lmgym: Commands, model: str, words: tuple[str, ...], setting: str, value: object
) -> None:
    Path("marked.txt").write_bytes(b"\xef\xbb\xbfBe brief.\r\n")
    assert entered(lmgym, JARS, model, *words).settings[setting] == value


def test_an_answer_with_thoughts_is_verified_by_its_action(lmgym: Commands) -> None:
    with serving(lambda body: {"content": "I take two.\nAction: 12"}) as server:
        entry = entered(lmgym, DUELS, server.model, "--answers", "action")
    assert entry.settings["answers"] == "action"
    (path,) = entries.all_paths(Path("leaderboards/entries"))
    turns = [turn for episode in entries.read_episodes(path) for turn in episode.turns if turn.seat == "agent"]
    assert {(turn.action, turn.words) for turn in turns} == {("12", "I take two.\nAction: 12")}
    lmgym("verify", str(path), "--workers", "1")
    forged = msgspec.structs.replace(entry, settings={})
    path.write_bytes(entries.canonical(msgspec.structs.replace(forged, identity=entries.identity(forged))))
    with pytest.raises(SubmissionError, match="words that are not an answer with its action: 'I take two"):
        verify(path, workers=1)


@pytest.mark.parametrize(
    ("called", "name"),
    [
        ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B"),
        ("/models/Qwen3-8B", "Qwen3-8B"),  # as vLLM calls what it serves from a folder
        ("./Qwen3-8B", "Qwen3-8B"),
        ("~/models/Qwen3-8B", "Qwen3-8B"),
        ("llama3:8b", "llama3:8b"),
        ("ft:gpt-4o:org::id", "ft:gpt-4o:org::id"),
    ],
)
def test_a_model_is_handed_in_however_its_server_calls_it(lmgym: Commands, model: str, called: str, name: str) -> None:
    entry = entered(lmgym, JARS, f"{model.partition('#')[0]}#{called}")
    assert entry.policy.name == f"endpoint: {name}"


@pytest.mark.parametrize(
    ("seat", "user"),
    [
        ("null", "black: null"),
        ("tiny?seed=4", "black: tiny?seed=4"),
        ("MODEL", "black: endpoint: fake"),
        (f"cmd:{sys.executable} player.py", f"black: cmd: {Path(sys.executable).name}"),
    ],
)
def test_other_seats_are_handed_in(lmgym: Commands, model: str, seat: str, user: str) -> None:
    script = "import json, sys\nfor line in sys.stdin:\n"
    script += "    print(json.dumps({'id': json.loads(line)['id'], 'text': 'a'}), flush=True)\n"
    Path("player.py").write_text(script)
    words = ("--seat", f"black={seat.replace('MODEL', model)}", "--max-tokens", "8")
    entry = entered(lmgym, DUELS, model, *words)
    assert (entry.user, set(entry.seats)) == (user, {"agent", "black"})


def test_a_seat_that_was_never_on_turn_is_not_in_the_entry(lmgym: Commands, model: str) -> None:
    entry = entered(lmgym, DUELS, model, "--seat", "red=null", "--seat", "black=null")
    assert (entry.user, set(entry.seats)) == ("black: null", {"agent", "black"})
    assert entry.settings["seats"] == {"black": "null"}
    lmgym("verify", "leaderboards/entries/test--FewDuels-v0/honest.json", "--workers", "1")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("tiny", "--request", "stop=x"), "--request is for endpoints; tiny takes no request fields"),
        (("MODEL", "--request", "top_p=1e999"), "--request takes JSON values: Out of range float"),
        (("MODEL", "--request", "x={1, 2}"), "--request takes JSON values: Object of type set"),
    ],
)
def test_a_request_that_cannot_be_made_is_refused_before_anything_is_played(
    lmgym: Commands, model: str, words: tuple[str, ...], message: str
) -> None:
    words = tuple(word.replace("MODEL", model) for word in words)
    assert message in lmgym.refused("eval", JARS, "--out", "run", "--model", *words)
    assert not Path("run").exists()
