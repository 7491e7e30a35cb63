"""Whole entries of local policies, made and audited by the commands: no honest setting is taken for a forgery."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest
import torch

from lmgym.board import entry as entries
from lmgym.board.reproduce import score_again
from lmgym.cli.submit import load_local as load_entry_policy
from lmgym.errors import SubmissionError
from lmgym.policy.local.policy import LocalPolicy
from tests.board import small
from tests.board.conftest import Commands
from tests.plugins import installed
from tests.policy import models
from tests.vision.models import saved

ROOT = Path(__file__).resolve().parents[2]
JARS, DUELS, CORNERS = "test/FewJars-v0", "test/FewDuels-v0", "test/FewCorners-v0"
TOOLS = "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
Entered = Callable[..., tuple[Path, LocalPolicy]]


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Install the tasks of tests/board/small, also for worker processes."""
    with installed(small, tmp_path_factory.mktemp("site")) as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join([str(folder), str(ROOT)]))
        yield folder


@pytest.fixture(scope="module")
def thinker(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A model that thinks in nearly every answer, whose template shows tools."""
    model, tokenizer = models.model("qwen3"), models.tokenizer("qwen3")
    with torch.no_grad():
        marks = [tokenizer.convert_tokens_to_ids(mark) for mark in ("<think>", "</think>")]
        model.get_input_embeddings().weight[marks] *= 3.0
    folder = tmp_path_factory.mktemp("thinker")
    policy = LocalPolicy(model, tokenizer, name="thinker")
    policy.tokenizer.chat_template, plain = TOOLS + models.CHATML, policy.tokenizer.chat_template
    policy.save(folder)
    policy.tokenizer.chat_template = plain  # other tests share the tokenizer
    return f"hf:{folder}"


@pytest.fixture
def entered(lmgym: Commands) -> Entered:
    """Return a function that evaluates a model on a task and submits the entry."""

    def enter(task: str, model: str, *words: str) -> tuple[Path, LocalPolicy]:
        lmgym("eval", task, "--model", model, "--standard", "--quiet", "--max-tokens", "16", "--out", "run", *words)
        lmgym("submit", "run", "--author", "A. Uthor", "--name", "honest")
        (path,) = entries.all_paths(Path("leaderboards/entries"))
        return path, load_entry_policy(model)

    return enter


def test_a_policy_that_thinks_and_calls_tools_is_reproduced(entered: Entered, thinker: str, lmgym: Commands) -> None:
    path, _ = entered(JARS, thinker, "--tools", "template")
    output = lmgym("verify", str(path), "--workers", "1", "--model", thinker)
    assert "reproduced (exact): honest on test/FewJars-v0, 5 episodes" in output


@pytest.mark.parametrize(
    ("task", "words"),
    [
        (JARS, ("--tools", "none")),
        (JARS, ("--tools", "text")),
        (JARS, ("--tools", "text", "--system", "Be brief.", "--context", "window:1")),
        (JARS, ("--tools", "template", "--system", "Be brief.\n/no_think", "--context", "stub:1")),
        (JARS, ("--tools", "template", "--context", "summarise:300")),
        (DUELS, ("--temperature", "0")),
        (JARS, ("--tools", "none", "--max-tokens", "7", "--context", "markov")),
        (DUELS, ("--system", "")),
        (DUELS, ("--answers", "action")),
    ],
)
def test_ids_of_a_policy_pass_under_every_setting(
    entered: Entered, thinker: str, task: str, words: tuple[str, ...]
) -> None:
    path, policy = entered(task, thinker, *words)
    assert score_again(path, policy)["tokens"] > 50
    answers = [policy.text(turn.ids) for episode in entries.read_episodes(path) for turn in episode.turns]
    assert any("<think>" in answer or "</think>" in answer for answer in answers)  # else the test shows nothing


@pytest.mark.parametrize(("task", "model"), [(JARS, "tiny"), (CORNERS, "tiny-vl")])
@pytest.mark.parametrize("tools", ["none", "text"])
def test_built_in_models_pass_with_and_without_tools(entered: Entered, task: str, model: str, tools: str) -> None:
    path, policy = entered(task, model, "--tools", tools)
    assert score_again(path, policy)["drawn"] == 1.0


@pytest.mark.parametrize("family", ["qwen2_5_vl", "smolvlm"])
def test_other_vision_families_pass(entered: Entered, tmp_path: Path, family: str) -> None:
    path, policy = entered(CORNERS, f"hf:{saved(family, tmp_path / family)}", "--tools", "text", "--context", "markov")
    assert score_again(path, policy)["drawn"] == 1.0


@pytest.mark.parametrize("limit", [24, *(pytest.param(n, marks=pytest.mark.slow) for n in (32, 40))])
def test_another_seat_summarises_where_the_record_does(entered: Entered, limit: int) -> None:
    seat = ("--seat", "black=tiny?seed=4", "--context", f"summarise:{limit}", "--max-tokens", "24")
    path, policy = entered(DUELS, "tiny", *seat)
    turns = [turn for episode in entries.read_episodes(path) for turn in episode.turns]
    assert {turn.seat for turn in turns if turn.action is None} == {"agent", "black"}
    assert score_again(path, policy)["drawn"] == 1.0


@pytest.mark.parametrize(
    ("stated", "used", "message"),
    [
        ("none", "text", "are not the conversation as this policy renders it"),
        ("text", "none", "are not the conversation as this policy renders it"),
        ("template", "text", "are not the conversation as this policy renders it"),
        ("native", "template", "the entry states native tools, which only endpoints have"),
    ],
)
def test_a_misstated_tool_mode_is_refused(entered: Entered, thinker: str, stated: str, used: str, message: str) -> None:
    path, policy = entered(JARS, thinker, "--tools", used)
    entry = entries.read(path)
    forged = msgspec.structs.replace(entry, settings={**entry.settings, "tools": stated})
    path.write_bytes(entries.canonical(forged))
    with pytest.raises(SubmissionError, match=message):
        score_again(path, policy)
