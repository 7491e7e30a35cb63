"""The commands of the leaderboard: their output, and one clear line for each refusal."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from lmgym.board import entry as entries
from lmgym.board import history, parsing
from lmgym.board import run_folder as runs
from lmgym.board.texts import check_line
from lmgym.board.validate import check_name
from lmgym.env.registry import find
from lmgym.policy.load import load_local
from lmgym.policy.local.audit import weights_digest
from tests.board.conftest import Commands
from tests.board.forge import Forger

ROOT = Path(__file__).resolve().parents[2]


def test_a_run_becomes_an_entry_that_is_verified_and_shown(lmgym: Commands) -> None:
    lmgym("eval", "wordle", "--model", "demonstrator", "--standard", "--quiet", "--out", "runs/demonstrator")
    path = "leaderboards/entries/Wordle-v0/demonstrator.json"
    assert f"next:  lmgym verify {path}" in lmgym("submit", "runs/demonstrator", "--author", "A. Uthor")
    output = lmgym("verify", path, "--out", "verdicts")
    assert output.startswith("verified (exact): demonstrator on lmgym/Wordle-v0, 93 episodes, score 1.0000 [0.9603, ")
    assert json.loads(Path("verdicts/Wordle-v0-demonstrator.json").read_bytes())["mark"] == "verified"
    assert "demonstrator on lmgym/Wordle-v0 has no verdict as it is" in lmgym.refused("board")
    lmgym("board", "grade")
    assert "First" not in lmgym("board", "--out", "site")
    assert "0.960 to 1.000" in Path("site/tasks/Wordle-v0.html").read_text()
    assert "an entry is never overwritten" in lmgym.refused("submit", "runs/demonstrator", "--author", "A. Uthor")
    next_version = ("lmgym/Wordle-v0", "lmgym/WordleCounting-v0")
    lmgym("board", "archive", *next_version, "--reason", "Letters are counted.")
    assert Path("leaderboards/archive/Wordle-v0.json").is_file()
    lmgym("board", "--out", "site")  # the history tells where the entry went
    assert Path("site/archive/Wordle-v0.html").is_file()


def test_a_refusal_is_one_line(lmgym: Commands, forger: Forger) -> None:
    path = forger.change(lambda entry, episodes: episodes[7].update(score=1.0 - episodes[7]["score"]))
    assert "instance 7, try 0 states score" in lmgym.refused("verify", str(path))


def test_other_weights_than_the_entrys_are_refused(lmgym: Commands, forger: Forger) -> None:
    own, other = (weights_digest(load_local(f"tiny?seed={seed}")) for seed in (4, 5))
    path = forger.change(lambda entry, _: entry["policy"].update(kind="model", name="tiny?seed=4", weights=own))
    for model, message in (
        ("tiny?seed=5", f"the entry's weights are {own[:16]}, those of tiny?seed=5 are {other[:16]}"),
        ("tiny?seed=4", "has no token ids to score"),  # the weights are the entry's
        ("null", "null has no weights here to score ids under"),
    ):
        assert message in lmgym.refused("verify", str(path), "--workers", "1", "--model", model)


def test_a_key_in_place_of_a_model_is_refused_and_not_repeated(
    lmgym: Commands, honest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMGYM_API_KEY", "planted-0123456789")
    assert "planted" not in lmgym.refused("verify", str(honest), "--model", "cmd:play planted-0123456789")


def test_declared_tokens_are_in_the_verdict(lmgym: Commands, forger: Forger) -> None:
    def change(_: object, episodes: list[dict[str, Any]]) -> None:
        for number, each in enumerate(episodes):
            each.update(tokens_in=100 + number, tokens_out=7)

    lmgym("verify", str(forger.change(change)), "--workers", "1", "--out", "out")
    verdict = json.loads(Path("out/Wordle-v0-honest.json").read_bytes())
    assert (verdict["tokens_in"], verdict["tokens_out"]) == (146.0, 7.0)  # 100 + the mean of 0 to 92
    assert "tokens" not in verdict


def test_a_proposal_is_verified_against_the_board_before(lmgym: Commands, honest: Path) -> None:
    Path("base").mkdir()
    shutil.copytree(honest.parent.parent, "proposed/entries")
    assert "verified (exact): honest on lmgym/Wordle-v0" in lmgym("verify", "proposed", "--base", "base")
    Path("proposed/verdicts").mkdir()
    Path("proposed/verdicts/honest.json").write_text("{}")
    assert "the board writes verdicts and history itself" in lmgym.refused("verify", "proposed", "--base", "base")


def test_a_proposal_that_repeats_an_entrys_actions_is_refused(lmgym: Commands, honest: Path, forger: Forger) -> None:
    shutil.copytree(honest.parent.parent, "base/entries")
    shutil.copytree("base", "proposed")

    def change(entry: dict[str, Any], episodes: list[dict[str, Any]]) -> None:
        entry.update(name="copy", authors=["A. Copyist"])
        for each in episodes:
            each["tokens_in"] = each.get("tokens_in", 0) + 1

    changed = forger.change(change)
    for path in (changed, entries.episodes_path(changed)):
        shutil.copy(path, Path("proposed/entries/Wordle-v0") / path.name.replace("honest", "copy"))
    error = lmgym.refused("verify", "proposed", "--base", "base", "--workers", "1")
    assert "copy repeats the actions or token ids of honest on lmgym/Wordle-v0" in error


def test_a_history_that_was_cut_is_refused(lmgym: Commands) -> None:
    for name, lines in (("before", 1), ("after", 2)):
        for number in range(lines):
            log = Path(name) / "history.jsonl"
            history.append(log, date="2026-11-21", what="archived", task="lmgym/Wordle-v0", reason=str(number))
    assert "1 lines were added" in lmgym("board", "follows", "before", "--leaderboard", "after")
    assert "lines may only be appended" in lmgym.refused("board", "follows", "after", "--leaderboard", "before")


def test_a_board_from_which_entries_vanished_is_refused(lmgym: Commands, honest: Path) -> None:
    shutil.copytree(honest.parent.parent, "before/entries")
    lmgym("board", "grade", "--leaderboard", "before")
    shutil.copytree("before", "after")
    lmgym("board", "follows", "before", "--leaderboard", "after")
    shutil.rmtree("after/entries")
    shutil.rmtree("after/verdicts")
    for words in (("follows", "before"), (), ("--base", "before")):
        error = lmgym.refused("board", *words, "--leaderboard", "after")
        assert "entries/Wordle-v0/honest.json is missing; remove entries by lmgym board remove" in error


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("submit", "no/such", "--author", "A"), "no/such has no episodes.jsonl"),
        (("verify", "no/such.json"), "no/such.json is missing"),
        (("verify", "a", "b", "--base", "c"), "--base takes one folder"),
        (("board", "remove", "lmgym/Wordle-v0", "nobody", "--reason", "none"), "there is no entry nobody"),
        (("board", "archive", "lmgym/Wordle-v0", "lmgym/Wordle-v1", "--reason", "none"), "there are no entries on"),
    ],
)
def test_an_error_is_one_line(lmgym: Commands, words: tuple[str, ...], line: str) -> None:
    assert line in lmgym.refused(*words)


@pytest.mark.parametrize(
    ("policy", "name", "kind"),
    [
        ("tiny?seed=3", "tiny?seed=3", "model"),
        ("smollm2", "smollm2", "model"),
        ("hf:Qwen/Qwen3-0.6B", "hf: Qwen/Qwen3-0.6B", "model"),
        ("hf:/home/someone/models/mine", "hf: mine", "model"),
        ("hf:runs/grpo-alfworld-tiny-0/policy", "hf: grpo-alfworld-tiny-0", "model"),
        ("run:../else/grpo-1", "run: grpo-1", "model"),
        ("runs/grpo-1", "run: grpo-1", "model"),
        ("http://gpu7.lab:8000/v1#qwen3", "endpoint: qwen3", "model"),
        ("https://user:key@host/v1", "endpoint: unnamed", "model"),
        ("cmd:/opt/agent/run.sh --fast", "cmd: run.sh", "script"),
        ("majority:8:hf:/home/someone/models/mine", "majority:8 of hf: mine", "model"),
        ("verified:3:cmd:/opt/agent/run.sh", "verified:3 of cmd: run.sh", "script"),
        ("python:my.module:play", "python:my.module:play", "script"),
        ("oracle", "oracle", "oracle"),
        ("demonstrator", "demonstrator", "script"),
    ],
)
def test_a_policys_name_tells_no_path_and_no_host(policy: str, name: str, kind: str) -> None:
    assert runs.public_name(policy) == name
    assert runs.kind_of(policy) == kind
    check_line(name, "policy")
    check_name(runs.slug(policy))


def test_a_curve_names_the_command_that_made_it(lmgym: Commands) -> None:
    Path("run").mkdir()
    arguments = {"task": "lmgym/Wordle-v0", "algorithm": "grpo", "options": {"colouring": "lmrl"}}
    arguments |= {"policy": "hf:/home/someone/start-2/policy", "tokens": 60000, "std": False, "threads": 1}
    Path("run/run.json").write_text(json.dumps({"arguments": {**arguments, "seed": 2, "steps": 7, "group": 8}}))
    points = [
        {"run_step": step, "evaluated_success": 0.5, "evaluated_low": 0.4, "evaluated_high": 0.6} for step in (3, 10)
    ]
    Path("run/metrics.jsonl").write_text("".join(json.dumps(point) + "\n" for point in points))
    lmgym("board", "curve", "run", "--name", "grpo-2")
    curve = json.loads(Path("leaderboards/curves/Wordle-v0/grpo-2.json").read_bytes())
    assert curve["command"] == (
        "lmgym train grpo lmgym/Wordle-v0 --model hf:start-2/policy --option colouring=lmrl "
        "--steps=7 --no-std --seed=2 --tokens=60000"
    )
    assert [point["step"] for point in curve["points"]] == [3, 10]
    assert "choose another --name" in lmgym.refused("board", "curve", "run", "--name", "grpo-2")
    Path("run/metrics.jsonl").write_text(json.dumps({**points[0], "evaluated_low": 0.6}) + "\n")
    assert "low <= mean <= high" in lmgym.refused("board", "curve", "run", "--name", "wrong")
    assert not Path("leaderboards/curves/Wordle-v0/wrong.json").exists()


def test_entries_of_this_repository_name_no_path() -> None:
    for path in entries.all_paths(ROOT / "leaderboards/entries"):
        statement, episodes = path.read_bytes(), b"".join(parsing.lines(entries.episodes_path(path)))
        assert str(Path.home()).encode() + b"/" not in statement + episodes
        in_sandbox = find(json.loads(statement)["task"]).sandboxed  # whose /tmp policies name in their actions
        assert b"/tmp/" not in (statement if in_sandbox else statement + episodes)
