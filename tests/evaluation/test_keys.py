"""A key is in no file, no log and no message, whatever server or caller does with it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest
import zstandard

from lmgym.errors import PolicyError
from lmgym.evaluation.record import Record
from lmgym.evaluation.runner import report_of
from lmgym.policy.endpoints.secrets import STRUCK, Secrets, key_variable, without_secrets
from lmgym.rollout.episodes import read
from lmgym.types import Completion, Job, Message, Trajectory, Turn
from tests.command import command as run_command

from .server import bisect, serving

KEY = "sk-planted+0123/456789abcdef"
BASIC = base64.b64encode(f"user:{KEY}".encode()).decode()
FORMS = (
    KEY,
    quote(KEY, safe=""),
    quote(KEY, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    quote(KEY),
    KEY.replace("/", "\\/"),
    *(base64.b64encode(b"user:"[:n] + KEY.encode())[4:-6].decode() for n in range(6)),
    *(base64.urlsafe_b64encode(b"user:"[:n] + KEY.encode())[4:-6].decode() for n in range(6)),
)
SPELLINGS = {
    "plain": KEY,
    "in a URL": quote(KEY, safe=""),
    "in a URL, lower case": quote(KEY, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    "in a path": quote(KEY),
    "in JSON": json.dumps(KEY),
    "in JSON, slashes escaped": json.dumps(KEY).replace("/", "\\/"),
    "in base64": base64.b64encode(KEY.encode()).decode(),
    **{f"in base64 after {n} bytes": base64.b64encode(b"x" * n + KEY.encode() + b"&y").decode() for n in (1, 2, 3)},
    **{f"in base64 of URLs, {n}": base64.urlsafe_b64encode(b"u" * n + KEY.encode()).decode() for n in (0, 1, 2)},
    "as basic authorization": BASIC,
}


@pytest.fixture
def command(tmp_path, monkeypatch, capfd):
    """Run `lmgym` in this process, in an empty folder; check exit code and absence of the key, return the output."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LMGYM_API_KEY", KEY)

    def execute(*words: str, code: int = 0) -> str:
        ended = run_command(*words)
        printed = "".join(capfd.readouterr())
        assert ended == code, printed
        assert places_with_key(tmp_path, printed) == []
        return printed

    return execute


@pytest.fixture
def run(command):
    """Evaluate a model by `command`."""

    def evaluate(model: str, *more: str, task: str = "guess_number", code: int = 0) -> str:
        return command("eval", task, "--model", model, "--episodes", "4", "--retry-wait", "0", *more, code=code)

    return evaluate


def places_with_key(folder: Path, printed: str) -> list[str]:
    """Return the files and outputs that contain the key in any form."""
    places = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    places |= {"printed": printed.encode()}
    places |= {f"name {path}": str(path).encode() for path in folder.rglob("*")}
    return [name for name, content in places.items() for form in FORMS if form.encode() in content]


def echoing(body):
    """Say what was asked for, and the key as well."""
    return {**bisect(body), "reasoning_content": f"my key is Bearer {KEY}, or else " + ", ".join(SPELLINGS.values())}


def test_a_key_that_the_server_echoes_is_struck_out_of_everything(tmp_path, run):
    chatty = {"status": 500, "error": {"message": f"no route for Bearer {KEY}"}, "headers": {"X-Echo": KEY}}
    answers = iter([dict(chatty), dict(chatty)])
    with serving(lambda body: next(answers, None) or echoing(body)) as server:
        run(server.model)
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {KEY}"}
    record = (tmp_path / "runs/eval/guess_number-fake/episodes.jsonl").read_text()
    assert f"my key is Bearer {STRUCK}" in record


def test_a_key_that_the_server_echoes_is_in_no_entry_and_on_no_page(tmp_path, run, command):
    def speaker(body):
        return {"content": f"crane {KEY}", "reasoning_content": f"Bearer {KEY}"}

    with serving(speaker) as server:
        run(server.model, "--standard", "--out", "run", "--concurrency", "64", task="wordle")
    command("submit", "run", "--name", "echo", "--author", "Nobody")
    command("view", "run", "--export", "page.html")
    entry = (tmp_path / "leaderboards/entries/Wordle-v0/echo.json").read_text()
    assert '"name":"echo"' in entry.replace(" ", "").replace("\n", "")
    frame = tmp_path / "leaderboards/entries/Wordle-v0/echo.episodes.jsonl.zst"
    with zstandard.open(frame, "rb") as lines:
        (tmp_path / "unpacked.jsonl").write_bytes(lines.read())
    assert STRUCK in (tmp_path / "unpacked.jsonl").read_text()
    assert places_with_key(tmp_path, "") == []


@pytest.mark.parametrize("status", [401, 403, 404, 302, 402])
def test_a_key_in_a_refusal_is_not_repeated(run, status):
    refusal = {"status": status, "error": {"message": f"bad key {KEY}"}, "headers": {"Location": f"/x?key={KEY}"}}
    with serving(lambda body: dict(refusal)) as server:
        assert f"HTTP {status}" in run(server.model, code=2)


@pytest.mark.parametrize(
    "address",
    ["http://user:{}@127.0.0.1:9/v1#m", "http://127.0.0.1:9/v1?key={}#m", "http://127.0.0.1:9/{}/v1#m", "cmd:cat {}"],
)
def test_a_key_on_the_command_line_is_refused_before_anything_is_written(tmp_path, run, address):
    assert "keys come from the environment only" in run(address.format(KEY), code=2)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [("--system", "@{file}"), ("--system", f"Use {KEY}."), ("--option", f"highest={KEY}"), ("--out", f"at/{KEY}")],
)
def test_a_key_in_a_prompt_or_an_option_is_refused_before_anything_is_written(tmp_path, tmp_path_factory, run, words):
    prompt = tmp_path_factory.mktemp("elsewhere") / "prompt.txt"
    prompt.write_text(f"You may use the key {KEY}.")
    printed = run("null", *(word.format(file=prompt) for word in words), code=2)
    assert "a key stands on the command line or in the system prompt" in printed
    assert list(tmp_path.iterdir()) == []


def blurting(messages) -> str:
    return f"50, says {KEY}"


def raising(messages) -> str:
    raise RuntimeError(f"no service for {KEY}")


def leaving(messages) -> str:
    sys.exit(f"no service for {KEY}")


def test_a_key_that_a_function_says_is_struck_before_the_environment_sees_it(tmp_path, run):
    run(f"python:{__name__}:blurting", "--out", "run")
    turn = json.loads((tmp_path / "run/episodes.jsonl").read_text().splitlines()[0])["turns"][0]
    assert turn["action"] == f"50, says {STRUCK}"


@pytest.mark.parametrize("name", ["raising", "leaving"])
def test_a_key_in_what_a_function_raises_is_not_repeated(run, name):
    printed = run(f"python:{__name__}:{name}", "--out", "run", code=2)
    assert f"no service for {STRUCK} (test_keys.py, line " in printed
    assert "Traceback" not in printed


def test_a_key_in_what_a_module_raises_is_not_repeated(tmp_path, run, monkeypatch):
    (tmp_path / "planted.py").write_text("import os\nraise RuntimeError(os.environ['LMGYM_API_KEY'])\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "python:planted:play cannot be imported" in run("python:planted:play", code=2)


@pytest.mark.parametrize("before", [60, 150, 185, 380])
def test_no_part_of_a_key_is_left_where_words_are_cut(tmp_path, run, before):
    """Whoever cuts an error's words before striking leaves the first half of a key that stands across the cut."""
    program = tmp_path / "player.py"
    lines = ["import sys, os", f"sys.stderr.write('x' * {before} + os.environ['LMGYM_API_KEY'] + chr(10))"]
    program.write_text("\n".join([*lines, f"print('y' * {before} + os.environ['LMGYM_API_KEY'])"]))
    printed = run(f"cmd:{sys.executable} {program}", "--retries", "1", "--out", "run", code=2)
    overflow = {"status": 400, "error": {"message": "context_length_exceeded " + "z" * before + KEY}}
    with serving(lambda body: dict(overflow)) as server:
        printed += run(server.model, "--out", "full")
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or KEY[:8].encode() not in path.read_bytes(), path
    assert KEY[:8] not in printed


def test_a_key_that_json_in_json_spells_in_escapes_is_struck(tmp_path, run):
    spelt = "".join(f"\\u{ord(letter):04X}" for letter in KEY)
    arguments = f'{{"jar": "{spelt}"}}'
    call = {"id": "x", "type": "function", "function": {"name": "peek", "arguments": arguments}}
    with serving(lambda body: {"role": "assistant", "content": None, "tool_calls": [call]}) as server:
        run(server.model, "--out", "run")
    assert f'{{\\"jar\\": \\"{STRUCK}\\"}}' in (tmp_path / "run/episodes.jsonl").read_text()


def test_a_key_that_an_environment_shows_is_in_no_file(tmp_path, monkeypatch):
    monkeypatch.setenv("LMGYM_API_KEY", KEY)
    observation = Message(role="user", text=f"printenv says {KEY}")
    answer = Completion(text="thanks", usage={"note": KEY})
    turn = Turn(observation=observation, completion=answer, action="thanks", info={"seen": [KEY]})
    job = Job(task="lmgym/GuessNumber-v0", split="test", index=0, id="e0")
    played = Trajectory(
        id="e0", root="e0", task=job.task, split="test", index=0, turns=(turn,), final=observation, stop="done"
    )
    record = Record(tmp_path, {"policy": "p", "settings": {}}, resume=False)
    record.keep([played])
    report = record.finish(report_of([job], {}, finished=False, policy="p", stopped=f"gone: {KEY}"), {}, {"note": KEY})
    record.close()
    assert report.stopped == f"gone: {STRUCK}"
    assert places_with_key(tmp_path, "") == []
    (kept,) = read(tmp_path / "episodes.jsonl")
    assert (kept.turns[0].observation.text, kept.turns[0].info) == (f"printenv says {STRUCK}", {"seen": [STRUCK]})


def test_an_error_that_nobody_foresaw_shows_no_key():
    code = "import sys; sys.argv = ['lmgym', 'list']; from lmgym import cli\n"
    code += "def broken(): raise ValueError('planted-0123456789')\ncli.app = broken\ncli.main()"
    environment = {**os.environ, "LMGYM_API_KEY": "planted-0123456789"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"ValueError: {STRUCK}" in done.stderr
    assert "planted" not in done.stderr


def test_a_key_in_a_run_of_another_day_is_not_handed_in(tmp_path, run, command, monkeypatch):
    run(f"python:{__name__}:blurting", "--standard", "--out", "run", task="wordle")
    monkeypatch.setenv("OTHER_TOKEN", "50, says")  # what was none when it was recorded
    printed = command("submit", "run", "--name", "x", "--author", "Nobody", code=2)
    assert "contains an API key from the environment" in printed
    assert not (tmp_path / "leaderboards").exists()


def test_a_key_that_nobody_knows_of_is_refused_in_an_address():
    with pytest.raises(PolicyError) as error:
        without_secrets("https://someone:unheard-of@host/v1#m", Secrets([]))
    assert "unheard-of" not in str(error.value)
    assert without_secrets("https://host/v1?api-version=1#m", Secrets([])) == "https://host/v1?api-version=1#m"


def test_a_variable_that_is_named_as_the_keys_is_struck_whatever_it_is_called(tmp_path, run, monkeypatch):
    monkeypatch.setenv("LLMPASS", other := "planted-under-another-name")
    with serving(lambda body: {**bisect(body), "reasoning_content": other}) as server:
        run(server.model, "--key-env", "LLMPASS")
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {other}"}
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and other.encode() in path.read_bytes()]


def test_the_key_of_the_agent_is_not_sent_to_another_seats_endpoint(run, monkeypatch):
    monkeypatch.setenv("LLMPASS", "planted-under-another-name")
    with serving(lambda body: {"content": "1"}) as agent, serving(lambda body: {"content": "1"}) as user:
        run(agent.model, "--seat", f"black={user.model}", "--key-env", "LLMPASS", task="test/Duel-v0")
    sent = [{headers["authorization"] for headers in server.headers} for server in (agent, user)]
    assert sent == [{"Bearer planted-under-another-name"}, {f"Bearer {KEY}"}]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_key_is_struck_however_it_is_spelt(spelling):
    left = Secrets([KEY]).struck(f"before {SPELLINGS[spelling]} after")
    assert STRUCK in left
    assert [form for form in FORMS if form in left] == []
    assert len(left) < len(f"before {STRUCK} after") + 12  # no more than a few letters of what stood beside the key


def test_words_that_are_no_key_are_left():
    assert Secrets([KEY]).struck("sk-planted and 0123 in %2f/user") == "sk-planted and 0123 in %2f/user"


def test_an_openai_key_goes_to_openai_alone():
    assert key_variable("https://api.openai.com/v1") == "OPENAI_API_KEY"
    assert key_variable("https://api.openai.com.evil.example/v1") == "LMGYM_API_KEY"


def test_secrets_are_struck_in_every_form_and_longest_first():
    secrets = Secrets.of_environment({"A_KEY": "12345678", "B_TOKEN": "1234567890", "C_TOKENIZER": "none-of-it"})
    assert secrets.struck_all({"12345678": ["x1234567890y", 7, "none-of-it"]}) == {
        STRUCK: [f"x{STRUCK}y", 7, "none-of-it"]
    }
    assert Secrets.of_environment({"SHORT_KEY": "abc"}).struck("abc") == "abc"
