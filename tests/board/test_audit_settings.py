"""Whole entries of local policies, made and checked as the commands do it: no honest setting is taken for a forgery."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from lmgym.board import entry as entries
from lmgym.board import parsing
from lmgym.board.entry import RecordedEpisode
from lmgym.cli.again import Again
from lmgym.errors import SubmissionError
from lmgym.policy.load import load_local
from lmgym.policy.local.policy import LocalPolicy
from tests.board import small
from tests.board.test_commands import command
from tests.plugins import installed
from tests.policy import models
from tests.vision.models import saved

ROOT = Path(__file__).resolve().parents[2]
JARS, DUELS, CORNERS = "test/FewJars-v0", "test/FewDuels-v0", "test/FewCorners-v0"
TOOLS = "{%- if tools %}<|im_start|>system\n{{ tools | tojson }}<|im_end|>\n{% endif %}"
Entered = Callable[..., tuple[Path, Again]]


@pytest.fixture(scope="module", autouse=True)
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The tasks of tests/board/small."""
    with installed(small, tmp_path_factory.mktemp("site")) as folder:
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
    policy.tokenizer.chat_template = plain  # which other tests share
    return f"hf:{folder}"


@pytest.fixture
def entered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Entered:
    """Evaluate a model on a task and hand that in."""
    monkeypatch.chdir(tmp_path)

    def enter(task: str, model: str, *words: str) -> tuple[Path, Again]:
        run = ("eval", task, "--model", model, "--standard", "--quiet", "--max-tokens", "16", "--out", "run", *words)
        assert command(monkeypatch, *run) == 0
        assert command(monkeypatch, "submit", "run", "--author", "A. Uthor", "--name", "honest") == 0
        (path,) = entries.all_paths(Path("leaderboards/entries"))
        return path, Again.of(model, seat=None)

    return enter


def scored(path: Path, again: Again) -> dict[str, Any]:
    return again._audit(path, entries.read(path))


def episodes(path: Path) -> list[RecordedEpisode]:
    return [entries.episode(line, "line") for line in parsing.lines(entries.episodes_path(path))]


def test_a_policy_that_thinks_and_calls_tools_is_reproduced(
    entered: Entered,
    thinker: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    plugin: Path,
) -> None:
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(plugin), str(ROOT)]))
    path, _ = entered(JARS, thinker, "--tools", "template")
    assert command(monkeypatch, "verify", str(path), "--workers", "1", "--model", thinker) == 0
    assert "reproduced (exact): honest on test/FewJars-v0, 5 episodes" in capsys.readouterr().out


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
    ],
)
def test_however_a_policy_was_asked_its_ids_are_its_own(
    entered: Entered, thinker: str, task: str, words: tuple[str, ...]
) -> None:
    path, again = entered(task, thinker, *words)
    assert scored(path, again)["tokens"] > 50
    policy = load_local(thinker)
    spoken = [policy.text(ply.ids) for each in episodes(path) for ply in each.turns]
    assert sum("<think>" in words or "</think>" in words for words in spoken) > 0  # or nothing is shown


@pytest.mark.parametrize("tools", ["none", "text"])
def test_tiny_is_told_of_tools_in_words_or_not_at_all(entered: Entered, tools: str) -> None:
    path, again = entered(JARS, "tiny", "--tools", tools)
    assert scored(path, again)["drawn"] == 1.0


@pytest.mark.parametrize("tools", ["none", "text"])
def test_a_policy_that_sees_is_shown_the_pictures_again(entered: Entered, tools: str) -> None:
    path, again = entered(CORNERS, "tiny-vl", "--tools", tools)
    assert scored(path, again)["drawn"] == 1.0


@pytest.mark.parametrize("family", ["qwen2_5_vl", "smolvlm"])
def test_a_family_that_sees_otherwise_is_shown_them_as_well(entered: Entered, tmp_path: Path, family: str) -> None:
    path, again = entered(CORNERS, f"hf:{saved(family, tmp_path / family)}", "--tools", "text", "--context", "markov")
    assert scored(path, again)["drawn"] == 1.0


@pytest.mark.parametrize("limit", [24, 32, 40])
def test_another_seat_sums_up_where_the_record_says_so(entered: Entered, limit: int) -> None:
    seat = ("--seat", "black=tiny?seed=4", "--context", f"summarise:{limit}", "--max-tokens", "24")
    path, again = entered(DUELS, "tiny", *seat)
    summaries = [(ply.seat, ply.action) for each in episodes(path) for ply in each.turns if ply.action is None]
    assert {seat for seat, _ in summaries} == {"agent", "black"}
    assert scored(path, again)["drawn"] == 1.0


@pytest.mark.parametrize(("stated", "was"), [("none", "text"), ("text", "none"), ("template", "text")])
def test_tools_that_were_told_otherwise_than_stated_are_found(
    entered: Entered, thinker: str, stated: str, was: str
) -> None:
    path, again = entered(JARS, thinker, "--tools", was)
    found = entries.read(path)
    other = msgspec.structs.replace(found, settings={**found.settings, "tools": stated})
    with pytest.raises(SubmissionError, match="are not what was shown, as this policy renders it"):
        again._audit(path, other)


def test_no_local_policy_was_told_of_tools_as_endpoints_are(entered: Entered, thinker: str) -> None:
    path, again = entered(JARS, thinker, "--tools", "template")
    found = entries.read(path)
    native = msgspec.structs.replace(found, settings={**found.settings, "tools": "native"})
    with pytest.raises(SubmissionError, match="tools are native, which is for endpoints"):
        again._audit(path, native)
