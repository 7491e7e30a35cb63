"""The guided policies of MC and ILQL are restored from the folders of their runs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lmgym.board.reproduce import check_weights_alone
from lmgym.errors import PolicyError, SubmissionError
from lmgym.evaluation import report as reports
from lmgym.evaluation.runner import Report
from lmgym.train.load import load_policy, load_run
from tests.command import command

FEW = ["--warmup", "2", "--warmup-episodes", "4", "--steps", "3", "--episodes", "6", "--sampled", "0", "--lr", "3e-2"]
LEVEL = ["--option", "highest=8", "--option", "max_turns=4"]
CASES = [
    ("ilql", "own", None),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in (("mc", "own", None), ("ilql", "policy", 2))),
]


def lmgym(capfd, *words: str) -> tuple[int, str]:
    return command(*words), "".join(capfd.readouterr())


def played(report: Report):
    return [(o.index, o.success, o.turns, o.invalid, o.tokens_out) for o in report.outcomes]


@pytest.mark.parametrize(("algorithm", "base", "lora"), CASES)
def test_after_rl_is_played_again_by_the_line_that_the_run_ends_with(
    tmp_path, monkeypatch, capfd, algorithm, base, lora
):
    monkeypatch.chdir(tmp_path)
    model = "tiny:1m"
    if lora is not None:
        load_policy("tiny:1m", 1.0, 0).save("base")
        model = "hf:base"
    args = [*FEW, *LEVEL, "--beta", "60", "--base", base, "--demonstrated", "64", "--evaluate", "24", "--threads", "1"]
    args += ["--lora", str(lora)] if lora else []
    code, said = lmgym(capfd, "train", algorithm, "guess_number", "--model", model, "--out", "run", *args)
    assert code == 0, said
    state = json.loads(Path("run/reports.json").read_text())
    before, after = (played(Report.from_state(state[f"{when} RL"])) for when in ("before", "after"))
    assert before != after
    (line,) = [line for line in said.splitlines() if line.startswith("next:")]
    words = line.removeprefix("next:").split()[1:]
    assert words[-1] == "run:run"
    lmgym(capfd, *words, "--episodes", "24", "--out", "again")
    assert played(reports.read(Path("again"))) == after
    assert played(reports.read(Path("again"))) == after
    lmgym(capfd, *words[:-1], "hf:run/policy", "--episodes", "24", "--out", "alone")
    assert played(reports.read(Path("alone"))) != after
    code, said = lmgym(capfd, "submit", "again", "--author", "A", "--leaderboard", "board")
    assert (code, "besides its weights" in said) == (2, True), said
    with pytest.raises(SubmissionError, match="besides its weights"):
        check_weights_alone(load_run(Path("run")))
    shutil.rmtree("run/checkpoints")
    with pytest.raises(PolicyError, match="hf:run/policy is the policy without"):
        load_run(Path("run"))


@pytest.mark.parametrize(("words", "stop"), [((), ()), (("--cut-at-newline",), ("\n",))])
def test_an_answer_ends_where_those_of_the_run_did(tmp_path, monkeypatch, capfd, words, stop):
    monkeypatch.chdir(tmp_path)
    few = ["--warmup", "0", "--fit", "1", "--steps", "1", "--rollouts", "2"]
    args = [
        *few,
        "--critic-draws",
        "4",
        "--actor-draws",
        "4",
        *LEVEL,
        "--evaluate",
        "2",
        "--threads",
        "1",
        "--out",
        "run",
        *words,
    ]
    code, said = lmgym(capfd, "train", "archer", "guess_number", "--model", "tiny:1m", *args)
    assert code == 0, said
    assert load_policy("run:run", 1.0, 0).sampling.stop == stop
    shutil.rmtree("run/policy")
    assert load_run(Path("run")).sampling.stop == stop  # by its last checkpoint
