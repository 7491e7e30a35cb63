"""The programs of docs/how-to/interop.md, each with its library; only ports, endpoints and sizes differ."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from lmgym.env.registry import build
from lmgym.evaluation import report as reports
from lmgym.evaluation.runner import Report
from tests.evaluation.server import Server, reply, serving

from .venvs import NEEDS, ROOT, play, python
from .wordle import jobs, secrets

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
PAGE = (ROOT / "docs/how-to/interop.md").read_text()
BLOCKS = {
    name.lower(): re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    for name, text in re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
}
EPISODES, TRIES = 3, 2
SIZE = {"episodes=50, tries=4": f"episodes={EPISODES}, tries={TRIES}"}


def block(library: str, number: int = 0, changes: dict[str, str] | None = None) -> str:
    """A block of a library's section; what is changed in it stands there once."""
    text = BLOCKS[library][number]
    for there, here in (changes or {}).items():
        assert text.count(there) == 1, f"{there!r} is not in the block of {library}"
        text = text.replace(there, here)
    return text


def run(library: str, text: str) -> Any:
    """Return the output of a block, run by its library's interpreter."""
    return play(library, "docs_play.py", {"library": library, "block": text})


def guesser(body: dict[str, Any]) -> dict[str, Any]:
    """Knows the words of all instances but the last, in either dialect of OpenAI's."""
    words = secrets(EPISODES)[:-1]
    said = body.get("messages") or body["input"]
    word = [*words, "crane"][min(sum(each.get("role") == "assistant" for each in said), len(words))]
    if "messages" in body:
        usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
        return reply({"role": "assistant", "content": word}, created=0, model=body["model"], usage=usage)
    content = [{"type": "output_text", "text": word, "annotations": []}]
    message = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    return {
        "raw": {
            **{"id": "r", "object": "response", "created_at": 0, "model": body["model"], "status": "completed"},
            **{"output": [message], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []},
            "usage": {"input_tokens": 10, "output_tokens": 2, "total_tokens": 12, **details},
        }
    }


def scores(report: Report) -> list[tuple[int | None, int, float, int]]:
    return [(each.index, each.attempt, each.score, each.turns) for each in report.outcomes]


def expected() -> list[tuple[int | None, int, float, int]]:
    """Return the scores of the guesser's words in our environment, by instance and try."""
    turns = [(1.0, 1), (1.0, 2), (0.0, 6)]  # its first word, its second, and none of six
    return [(job.index, t, *turns[place]) for place, job in enumerate(jobs(EPISODES)) for t in range(TRIES)]


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Server]:
    """A model on loopback, and a folder to write into."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENAI_API_KEY", "a key for the loopback")
    with serving(guesser) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def test_every_block_of_the_page_is_run_here_and_versions_are_those_that_are_tested() -> None:
    libraries = NEEDS.keys() - {"litellm"}  # which reaches models and plays nothing
    assert {name: len(found) for name, found in BLOCKS.items()} == {**dict.fromkeys(libraries, 1), "openenv": 2}
    assert PAGE.count("```") == 2 * sum(map(len, BLOCKS.values()))
    rows = re.findall(r"^\| \w+ \| `pip install 'lmgym\[(\w+)\]'` \|.*\| ([\d.]+) \|$", PAGE, re.MULTILINE)
    assert {name: NEEDS[name][0].partition("==")[2] for name, _ in rows} == dict(rows)
    assert {name for name, _ in rows} == set(BLOCKS)


def test_block_of_trl_trains(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    few = "num_generations=8, use_cpu=True, max_steps=2, logging_steps=1, generation_kwargs={'max_new_tokens': 6}"
    run("trl", block("trl", changes={"num_generations=8": few}))
    (state,) = Path("runs/trl").glob("checkpoint-*/trainer_state.json")
    log = [line for line in json.loads(state.read_text())["log_history"] if "loss" in line]
    assert log[-1]["step"] == 2
    assert {line["tools/call_frequency"] for line in log} == {6.0}
    assert all(0 <= line["reward"] <= 1 for line in log)


def test_block_of_inspect_writes_a_report(endpoint: Server) -> None:
    result = run("inspect", block("inspect", changes=SIZE))
    assert (result["status"], result["error"]) == ("success", None)
    assert scores(reports.read(Path("runs/inspect"))) == expected()
    assert {body["model"] for body in endpoint.bodies} == {"gpt-5"}


def test_block_of_verifiers_makes_a_report(endpoint: Server) -> None:
    result = run("verifiers", block("verifiers", changes={**SIZE, "http://localhost:8000/v1": endpoint.url}))
    assert result["pushed"] is False
    assert scores(Report.from_state(result["report"])) == expected()
    assert {body["model"] for body in endpoint.bodies} == {"qwen3"}


@contextmanager
def served(port: int) -> Iterator[None]:
    """The block that serves, in a process of its own, until it is left."""
    text = block("openenv", 0, {"port=8000": f"port={port}"})
    process = subprocess.Popen([python("openenv"), "-c", text])
    try:
        while process.poll() is None:
            with socket.socket() as probe:
                if not probe.connect_ex(("127.0.0.1", port)):
                    break
            time.sleep(0.1)
        assert process.poll() is None
        yield
    finally:
        process.terminate()
        process.wait(30)


def test_blocks_of_openenv_serve_and_play() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with served(port):
        result = run("openenv", block("openenv", 1, {":8000": f":{port}"}))
    env = build("wordle", split="test")
    assert result["text"] == env.reset(options={"index": 3})[0]["text"]
    observation, reward, terminated, *_ = env.step("crane")
    assert (result["observation"]["text"], result["reward"], result["done"]) == (
        observation["text"],
        reward,
        terminated,
    )
