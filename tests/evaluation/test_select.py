"""`lmgym eval` with a policy that chooses among its tries, and its entry on the leaderboard."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from lmgym.board import entry as entries
from lmgym.board import run_folder, submit
from lmgym.board.reproduce import score_again
from lmgym.errors import PolicyError, SubmissionError
from lmgym.evaluation import report as reports
from lmgym.evaluation.config import EvalConfig
from lmgym.evaluation.plan import EvalPlan
from lmgym.evaluation.policies import default_max_tokens, kind_of
from lmgym.evaluation.protocol import protocol
from lmgym.policy.load import load_local
from lmgym.rollout import episodes
from lmgym.train import api
from tests.command import command

from .server import serving

NAME = "majority:3:tiny:1m"
GUESS = ("eval", "guess_number", "--episodes", "4", "--quiet")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder."""
    monkeypatch.chdir(tmp_path)


def test_a_vote_is_evaluated_submitted_under_its_name_and_has_no_ids_to_audit(here, monkeypatch):
    rules = replace(protocol("guess_number"), instances=4)
    monkeypatch.setattr("lmgym.evaluation.plan.protocol", lambda task: rules)
    monkeypatch.setattr(submit, "protocol", lambda task: rules)
    for out in ("run", "again"):
        assert command("eval", "guess_number", "--model", NAME, "--standard", "--quiet", "--out", out) == 0
    played, again = (list(episodes.read(Path(out) / "episodes.jsonl")) for out in ("run", "again"))
    assert played == again
    report = reports.read(Path("run"))
    assert report.policy == json.loads(Path("run/run.json").read_text())["policy"] == NAME
    for trajectory, outcome in zip(played, report.outcomes, strict=True):
        used = [turn.completion.usage for turn in trajectory.turns]
        assert {usage["tries"] for usage in used} <= {2, 3}
        assert outcome.tokens_out == sum(usage["out"] for usage in used)
        assert outcome.tokens_out > sum(len(turn.completion.ids) for turn in trajectory.turns)
    run = run_folder.read(Path("run"))
    signed = {"authors": ("A",), "date": "2026-01-01"}
    tiny = load_local("tiny:1m")
    with pytest.raises(SubmissionError, match="an entry of majority:3:tiny:1m states no weights"):
        submit.submit(run, Path("board"), policy=tiny, **signed)
    monkeypatch.setattr(submit, "validate_entry", lambda *_: None)  # it wants all instances of the board
    path = submit.submit(run, Path("board"), policy=None, **signed)
    entry, recorded = entries.read(path), list(entries.read_episodes(path))
    assert (entry.name, entry.policy.name, entry.policy.kind) == (
        "majority-3-of-tiny-1m",
        "majority:3 of tiny:1m",
        "model",
    )
    assert entry.policy.weights is None
    assert not any(turn.ids or turn.prompt or turn.logprobs for episode in recorded for turn in episode.turns)
    assert [episode.tokens_out for episode in recorded] == [outcome.tokens_out for outcome in report.outcomes]
    with pytest.raises(SubmissionError, match="the entry states no weights"):
        score_again(path, tiny)


def test_an_endpoints_votes_are_calls_of_their_own_and_are_not_paid_for_twice(here):
    with serving() as server:
        model = f"majority:3:{server.model}"
        words = (*GUESS, "--model", model, "--temperature", "0.7", "--out", "run")
        assert command(*words) == 0
        turns = [turn for episode in episodes.read(Path("run/episodes.jsonl")) for turn in episode.turns]
        assert {turn.completion.usage["tries"] for turn in turns} == {2}  # it always agrees with itself
        assert server.requests == 2 * len(turns)
        assert sum(outcome.tokens_in or 0 for outcome in reports.read(Path("run")).outcomes) == 10 * server.requests
        Path("run/episodes.jsonl").unlink()
        assert command(*words, "--resume") == 0
        assert server.requests == 2 * len(turns)


def test_a_choice_has_its_models_settings_and_its_own_folder_and_estimate():
    assert [kind_of(f"majority:3:{model}") for model in ("tiny", "http://x/v1#y")] == ["local", "remote"]
    assert default_max_tokens("verified:3:http://x/v1#y") == 2048
    one, three = (EvalPlan.of(EvalConfig(tasks=["wordle"], model=m), "wordle") for m in ("tiny", "majority:3:tiny"))
    assert one.settings == three.settings  # the policy is not part of them
    assert [plan.folder().name for plan in (one, three)] == ["wordle-tiny", "wordle-majority-3-tiny"]
    single, triple = (plan.dry_run()[0] for plan in (one, three))
    for name in ("calls", "max_calls", "max_tokens_out", "tokens_in", "tokens_out"):
        assert getattr(triple, name) == pytest.approx(3 * getattr(single, name)), name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--model", "majority:1:tiny"), "majority:N:MODEL needs a whole number N of tries from 3 to 9999; got '1'"),
        (("--model", "majority:3:oracle"), "oracle is a scripted player"),
        (("--model", "majority:3:tiny", "--temperature", "0"), "needs a temperature above 0"),
        (("--model", "verified:3:http://localhost:1/v1#x"), "only a model with weights can verify"),
    ],
)
def test_a_choice_that_cannot_be_made_is_refused_in_a_line(here, capsys, words, message):
    assert command(*GUESS, *words) == 2
    error = capsys.readouterr().err
    assert (message in error, error.count("\n")) == (True, 1), error
    assert not [*Path().glob("runs/eval/*")]


def test_training_refuses_a_choice(here):
    with pytest.raises(PolicyError, match="majority:N:MODEL has no weights of its own to train or score"):
        api.run("grpo", task="guess_number", model="majority:3:tiny", quiet=True)
