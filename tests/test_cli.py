"""The commands: their output, and one line for every error."""

from __future__ import annotations

import io
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from lmgym.baselines import grpo
from lmgym.board import references
from lmgym.board.store import BoardStore
from lmgym.cli.options import between, literal, read_args, task_options
from lmgym.cli.tasks import END, SCORES, SCORES_END, START, built_in, markdown_table
from lmgym.cli.train import closing_table, evaluation_command
from lmgym.env.env import Reply
from lmgym.env.registry import find, load
from lmgym.errors import RecipeError
from lmgym.evaluation.runner import Report
from lmgym.train.state import RunResult
from tests.command import command
from tests.evaluation.reports import report

ROOT = Path(__file__).resolve().parents[1]


def test_docs_have_the_tables_of_tasks_and_reference_scores() -> None:
    page = (ROOT / "docs/reference/tasks.md").read_text()
    assert page == between(page, markdown_table(built_in()), START, END), "run `make cards`"
    scores = references.markdown_table(BoardStore(ROOT / "leaderboards"), [spec.id for spec in built_in()])
    assert page == between(page, scores, SCORES, SCORES_END), "run `make cards`"


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("eval", "wordel", "--model", "oracle"), "did you mean wordle"),
        (("eval", "wordle", "--model", "oracle", "--split", "dev"), "unknown split 'dev' for lmgym/Wordle-v0"),
        (("eval", "wordle", "--model", "oracle", "--option", "colour=1"), "unknown option 'colour'"),
        (("eval", "wordle", "--model", "sage"), "unknown policy 'sage'"),
        (("eval", "wordle", "--model", "hf:/no/such/folder"), "/no/such/folder"),
        (("eval", "wordle", "--model", "oracle", "--episodes", "0"), "must be at least 1; got 0"),
        (("play", "guess_number", "--player", "oracle", "--index", "5000"), "has instances 0 to 999; got index 5000"),
        (("train", "gpro", "wordle"), "unknown algorithm 'gpro'; choose "),
        (("train", "grpo", "wordle", "--stpes", "3"), "unknown option '--stpes'"),
        (("train", "grpo", "wordle", "--steps", "many"), "--steps takes int"),
        (("train", "grpo", "wordle", "--option", "colour=1"), "unknown option 'colour'"),
        (("replay", "no/such.jsonl"), "no file of episodes at no/such.jsonl"),
    ],
)
def test_an_error_is_one_line(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str) -> None:
    assert command(*words) == 2
    printed = capsys.readouterr()
    assert line in printed.err
    assert printed.err.count("\n") == 1
    assert [text for text in printed.out.splitlines() if not text.startswith(("training ", "presets: "))] == []


def test_evaluated_episodes_are_shown_and_replayed(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    evaluation = ("eval", "guess_number", "--model", "demonstrator", "--episodes", "5", "--out", str(tmp_path))
    assert command(*evaluation) == 0
    assert "1.000" in capsys.readouterr().out
    assert command("replay", str(tmp_path / "episodes.jsonl"), "--number", "4") == 0
    assert "replayed without a difference" in capsys.readouterr().out
    assert command("replay", str(tmp_path / "episodes.jsonl"), "--number", "5") == 2


def test_play_shows_the_oracle_winning(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("play", "wordle", "--player", "oracle", "--index", "3") == 0
    assert "success True" in capsys.readouterr().out


def test_play_shows_escapes_of_the_terminal_as_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    env_type = load(find("guess_number"))
    monkeypatch.setattr(env_type, "begin", lambda self, index: Reply("\x1b[2Jone\ntwo", done=False))
    monkeypatch.setattr(env_type, "act", lambda self, action: Reply("\x1b]0;x\x07", done=True, score=0.0))
    monkeypatch.setattr("builtins.input", lambda *_: "1")
    assert command("play", "guess_number", "--terminal") == 0
    printed = capsys.readouterr().out
    assert "\\x1b[2Jone\ntwo\n" in printed
    assert "\\x1b]0;x\\x07" in printed
    assert "\x1b[2J" not in printed


def test_arguments_become_fields_of_their_types_or_are_refused() -> None:
    args = read_args(grpo.Args, ["--steps", "7", "--lr=1", "--no-std", "--aggregation", "seq_mean", "--dual", "None"])
    assert (args.steps, args.lr, args.std, args.aggregation, args.dual) == (7, 1.0, False, "seq_mean", None)
    assert type(args.lr) is float
    for words in (["--aggregation", "median"], ["--lr", "fast"], ["--steps"], ["steps", "3"]):
        with pytest.raises(RecipeError):
            read_args(grpo.Args, words)


def test_options_of_a_task_are_literals() -> None:
    assert task_options(["receptacles=6", "source=official", "words=[1, 2]"]) == {
        "receptacles": 6,
        "source": "official",
        "words": [1, 2],
    }
    assert literal("None") is None
    with pytest.raises(RecipeError, match="NAME=VALUE"):
        task_options(["receptacles"])


@pytest.mark.parametrize(
    ("words", "std", "autocast"),
    [
        (["--no-std", "--no-autocast"], False, False),
        (["--std", "--autocast"], True, True),
        (["--std=false", "--autocast=True"], False, True),
        (["--autocast=None"], True, None),
    ],
)
def test_switches_are_on_off_or_set(words: list[str], std: bool, autocast: bool | None) -> None:
    args = read_args(grpo.Args, words)
    assert (args.std, args.autocast) == (std, autocast)


@pytest.mark.parametrize("words", [["--no-lr", "3"], ["--no-std=true"], ["--std=maybe"], ["--autocast=3"]])
def test_invalid_switches_are_refused(words: list[str]) -> None:
    with pytest.raises(RecipeError):
        read_args(grpo.Args, words)


def test_recorded_episodes_can_be_imitated(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    data = str(tmp_path / "games.parquet")
    recorded = command("record", "guess_number", "--episodes", "16", "--stumble", "0.2", "--out", data)
    assert recorded == 0
    assert "16 episodes" in capsys.readouterr().out
    words = ["--recorded", data, "--steps", "1", "--episodes", "4", "--evaluate", "2", "--out", str(tmp_path / "run")]
    assert command("train", "bc", "guess_number", *words) == 0


def closing_text(reports: dict[str, Report]) -> str:
    """The closing table of a run with these reports."""
    result = RunResult(folder=Path(), policy=Path(), reports=reports, seconds={})
    console = Console(record=True, width=200, file=io.StringIO())
    console.print(closing_table(result, find("wordle"), {}, "grpo"))
    return console.export_text()


def closing(*scores: float) -> str:
    """The closing table of a run whose evaluations had one episode each, with these scores."""
    reports = {f"at {score}": report([[score == 1]]) for score in scores}
    reports = {
        name: replace(made, outcomes=(replace(made.outcomes[0], score=score),))
        for score, (name, made) in zip(scores, reports.items(), strict=True)
    }
    return closing_text(reports)


def test_the_next_command_is_quoted_for_a_shell() -> None:
    shown = evaluation_command("babyai", ["levels=['GoTo', 'Open']", "rows=3"], "hf:my runs/policy", seen="window:2")
    assert shlex.split(shown)[3:] == [
        *("--option", "levels=['GoTo', 'Open']", "--option", "rows=3"),
        *("--context", "window:2", "--model", "hf:my runs/policy"),
    ]


def test_the_closing_table_has_the_gain_at_temperature_0() -> None:
    names = ("before RL", "before RL, greedy", "after RL, greedy", "after RL")
    rows = ([1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1])
    reports = {name: report([row]) for name, row in zip(names, rows, strict=True)}
    sampled, greedy = (line for line in closing_text(reports).splitlines() if "paired gain" in line)
    assert "+75.0 %" in sampled
    assert "paired gain, greedy" in greedy
    assert "+25.0 %" in greedy


def test_the_closing_table_has_the_mean_score_if_it_differs_from_success() -> None:
    table = closing(0.25, 0.75)
    assert "mean score at 0.25" in table
    assert "0.750 [" in table
    assert "paired gain in score" in table
    assert "+0.500 [" in table
    assert "score" not in closing(0, 1)
    assert "gain in score" not in closing(0.5)
