from __future__ import annotations

import json
import math
import random
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from lmgym.baselines import bc, grpo
from lmgym.errors import RecipeError
from lmgym.policy.load import load_local
from lmgym.policy.local.policy import LocalPolicy
from lmgym.rollout.engine import Engine
from lmgym.rollout.episodes import read
from lmgym.train import checkpoint, loop, source
from lmgym.train.log import read_metrics
from lmgym.train.schedule import constant
from tests.train.interrupted import Interrupted, dying
from tests.train.victim import ARGS, toy_policy, train

ROOT = Path(__file__).parents[2]
QUICK = replace(ARGS, warmup=2, steps=1, evaluate=4)


def figures(folder: Path) -> list[dict[str, object]]:
    rows = read_metrics(folder)
    return [{name: value for name, value in row.items() if not name.startswith("seconds")} for row in rows]


def weights(folder: Path) -> torch.Tensor:
    state = checkpoint.load(folder / "checkpoints")
    return torch.cat([weight.flatten() for weight in state["model"].values()])


def victim(folder: Path, moment: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-W", "ignore", "-m", "tests.train.victim", str(folder), moment]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A run that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    train(folder)
    return folder


@pytest.mark.parametrize(
    "moments", [("update",), pytest.param(("checkpoint", "rollout", "update"), marks=pytest.mark.slow)]
)
def test_a_run_killed_again_and_again_ends_with_the_same_bits(whole, tmp_path, moments):
    folder = tmp_path / "run"
    for moment in moments:
        assert victim(folder, moment).wait() == -signal.SIGKILL, moment
    train(folder, resume=True)
    assert figures(folder) == figures(whole)
    assert torch.equal(weights(folder), weights(whole))
    assert not list((folder / "checkpoints").glob("*.partial"))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_run_killed_at_any_time_ends_with_the_same_bits(whole, tmp_path, seed):
    folder, clock = tmp_path / "run", random.Random(seed)
    lines = 0
    while lines < 8:
        process = victim(folder, "none")
        goal = lines + clock.randint(1, 3)
        while process.poll() is None and lines < goal:
            time.sleep(0.01)
            log = folder / "metrics.jsonl"
            lines = log.read_bytes().count(b"\n") if log.exists() else 0
        time.sleep(0.3 * clock.random())
        process.kill()
        process.wait()
    train(folder, resume=True)
    assert figures(folder) == figures(whole)
    assert torch.equal(weights(folder), weights(whole))


def test_a_finished_run_resumed_does_nothing_and_has_left_its_files(whole):
    before = figures(whole)
    result = train(whole, resume=True)
    assert figures(whole) == before
    assert list(result.reports) == ["before RL", "after RL"]
    assert result.paired_gain is not None
    assert result.paired_gain.low <= result.paired_gain.mean <= result.paired_gain.high
    names = {path.name for path in whole.iterdir()}
    assert names == {
        "run.json", "metrics.jsonl", "checkpoints", "policy", "curve.png", "reports.json", "tensorboard"
    }  # fmt: skip
    facts = json.loads((whole / "run.json").read_text())
    assert facts["arguments"]["group"] == 4
    assert facts["packages"]["torch"] == torch.__version__


def test_a_run_is_neither_begun_again_nor_resumed_with_another_argument(whole):
    with pytest.raises(RecipeError, match="clip_high=0.2, not 0.3"):
        train(whole, resume=True, args=replace(ARGS, clip_high=0.3))
    before = (whole / "metrics.jsonl").read_bytes()
    with pytest.raises(RecipeError, match="--resume"):
        train(whole)
    assert (whole / "metrics.jsonl").read_bytes() == before


def test_a_run_is_not_resumed_with_another_number_of_processes(whole, tmp_path):
    facts = json.loads((whole / "run.json").read_text())
    assert facts.pop("processes") == 1
    shutil.copytree(whole, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_text(json.dumps({**facts, "processes": 2}))
    with pytest.raises(RecipeError, match="was begun with 2 processes, not 1"):
        train(tmp_path / "run", resume=True)
    (tmp_path / "run" / "run.json").write_text(json.dumps(facts))  # of a run that did not record it
    train(tmp_path / "run", resume=True)


def test_episodes_are_kept_on_request_and_imitated_in_laps_and_a_log_shorter_than_its_checkpoint_is_reported(tmp_path):
    run = {"folder": tmp_path / "run", "args": QUICK, "keep_episodes": [0, 2]}
    train(**run)
    path, played = sorted((tmp_path / "run" / "episodes").iterdir())
    found = list(read(played))
    assert len(found) == QUICK.instances * QUICK.group
    assert all(turn.completion.ids for episode in found for turn in episode.turns)
    first, second = (source.recorded(path, toy_policy(), step=step, count=8, seed=0) for step in (0, 1))
    assert {episode.index for episode in first} == {episode.index for episode in second}
    assert len({episode.id for episode in (*first, *second)}) == 16
    assert all(turn.kind == "given" and turn.completion.ids for episode in first for turn in episode.turns)
    args = bc.Args(recorded=str(path), steps=2, episodes=8, evaluate=4)
    train(tmp_path / "again", args=args, recipe=bc.recipe(args))
    assert read_metrics(tmp_path / "again")[1]["loss"] > 0
    (tmp_path / "run" / "metrics.jsonl").write_text("")
    with pytest.raises(RecipeError, match="shorter than its checkpoint"):
        train(**run, resume=True)


def test_there_must_be_something_to_resume_or_to_read_and_a_folder_to_write(tmp_path):
    with pytest.raises(RecipeError, match="nothing to resume"):
        train(tmp_path / "none", resume=True)
    (tmp_path / "locked").write_text("a file, under which nobody can write, not even root")
    with pytest.raises(RecipeError, match="cannot write"):
        train(tmp_path / "locked" / "run")
    (tmp_path / "none.jsonl").touch()
    for name, words in (("none", "no episodes"), ("missing", "cannot read")):
        with pytest.raises(RecipeError, match=words):
            source.recorded(tmp_path / f"{name}.jsonl", toy_policy(), step=0, count=1, seed=0)


def bc_run(base: Path, folder: Path, *, resume: bool = False) -> LocalPolicy:
    """Imitate for three steps at a rate of 1e-6, from the policy in `base`; return it trained."""
    args = bc.Args(steps=3, episodes=4, evaluate=1, lr=1e-6, optimiser="adamw", weight_decay=0.0)
    made = load_local(f"hf:{base}", device="cpu")
    settings = {"folder": folder, "task": "guess_number", "options": {"highest": 8, "max_turns": 4}}
    loop.run(bc.recipe(args), made, resume=resume, save_seconds=0.0, quiet=True, **settings)
    return made


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([weight.detach().float().flatten() for weight in model.parameters()])


def test_small_steps_move_every_weight_of_a_policy_in_16_bits_which_also_resumes(tmp_path):
    base = toy_policy()
    base.model.to(torch.bfloat16)
    base.save(tmp_path / "base")
    made = bc_run(tmp_path / "base", tmp_path / "run")
    moved = flat(made.model) != flat(base.model)
    assert moved.float().mean() > 0.99  # in bfloat16 the steps would round away
    assert (made.model.dtype, made.dtype) == (torch.float32, torch.bfloat16)
    with dying(lambda run: run.cursor.step == 2, written=True), pytest.raises(Interrupted):
        bc_run(tmp_path / "base", tmp_path / "again")
    shutil.copytree(tmp_path / "again", tmp_path / "half")
    assert torch.equal(flat(bc_run(tmp_path / "base", tmp_path / "again", resume=True).model), flat(made.model))
    state = checkpoint.load(tmp_path / "half" / "checkpoints")  # as of a run that was trained in 16 bits
    state["model"] = {name: weight.to(torch.bfloat16) for name, weight in state["model"].items()}
    checkpoint.save(tmp_path / "half" / "checkpoints", state, number=9)
    assert bc_run(tmp_path / "base", tmp_path / "half", resume=True).model.dtype == torch.float32


def test_a_run_killed_before_its_first_checkpoint_begins_anew(whole, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.json").write_text((whole / "run.json").read_text())
    (tmp_path / "run" / "metrics.jsonl").write_text('{"stage": "sft"}\n{"cut o')
    train(tmp_path / "run", resume=True)
    assert figures(tmp_path / "run") == figures(whole)


@pytest.mark.parametrize("harm", ["flip", "cut", "digest"])
def test_a_damaged_checkpoint_is_reported_and_nothing_is_deleted(tmp_path, harm):
    folder = tmp_path / "run"
    train(folder, args=QUICK)
    (newest,) = (folder / "checkpoints").iterdir()
    content = bytearray((newest / "state.pt").read_bytes())
    if harm == "flip":
        content[len(content) // 2] ^= 1
    elif harm == "cut":
        del content[1000:]
    (newest / "state.pt").write_bytes(content)
    if harm == "digest":
        (newest / "state.sha256").unlink()
    files = sorted(folder.rglob("*"))
    with pytest.raises(RecipeError, match="nothing was deleted") as caught:
        train(folder, resume=True, args=QUICK)
    assert "\n" not in str(caught.value)
    assert sorted(folder.rglob("*")) == files


def test_a_full_disk_is_one_line_and_the_run_goes_on_later(whole, tmp_path, monkeypatch):
    folder, original, calls = tmp_path / "run", torch.save, []

    def full(state, file):
        calls.append(1)
        if len(calls) == 3:
            file.write(b"half")
            raise OSError(28, "No space left on device")
        original(state, file)

    monkeypatch.setattr(torch, "save", full)
    with pytest.raises(RecipeError, match="No space left on device.*the last good one is"):
        train(folder)
    train(folder, resume=True)
    assert figures(folder) == figures(whole)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_a_run_that_goes_on_from_its_last_good_step(whole, tmp_path, bad):
    folder, seen, recipe = tmp_path / "run", [], grpo.recipe(ARGS)
    clip = recipe.loss[0].loss

    def broken(scored):
        seen.append(1)
        tokens, figures = clip(scored)
        return (tokens * bad if len(seen) > 3 else tokens), figures

    wrong = replace(recipe, loss=[replace(recipe.loss[0], loss=broken), recipe.loss[1]])
    with pytest.raises(RecipeError, match="the weights before this step are in the last checkpoint") as caught:
        train(folder, recipe=wrong)
    assert "\n" not in str(caught.value)
    assert torch.isfinite(weights(folder)).all()
    assert figures(folder) == figures(whole)[: len(figures(folder))]
    assert 4 < len(figures(folder)) < len(figures(whole))  # imitation, an evaluation, a step or more
    train(folder, resume=True)
    assert figures(folder) == figures(whole)
    assert torch.equal(weights(folder), weights(whole))


def test_weights_that_are_no_numbers_leave_the_last_good_checkpoint(tmp_path):
    folder, recipe = tmp_path / "run", grpo.recipe(QUICK)
    *before, rl, after = recipe.stages
    wild = replace(rl, optimiser=replace(rl.optimiser, schedule=constant(math.inf), minibatches=1))
    with pytest.raises(RecipeError, match="NaN or infinite; the weights before this step") as caught:
        train(folder, args=QUICK, recipe=replace(recipe, stages=[*before, wild, after]))
    assert "\n" not in str(caught.value)
    assert torch.isfinite(weights(folder)).all()
    train(folder, args=QUICK, resume=True)


def test_a_run_ends_when_its_tokens_are_spent_and_evaluates_on_the_way(tmp_path):
    result = train(tmp_path / "run", tokens=300, evaluate_every=100)
    rows = read_metrics(tmp_path / "run")
    played = [row.get("sampled_tokens", 0) + row.get("demonstrated_tokens", 0) for row in rows]
    assert sum(played) >= 300
    assert sum(played[: max(place for place, tokens in enumerate(played) if tokens)]) < 300
    assert len([row for row in rows if "evaluated_success" in row]) > len(result.reports)


def test_evaluations_on_the_way_take_no_time_from_the_limit_of_their_stage(tmp_path, monkeypatch):
    ahead, clock, evaluate = [0.0], time.perf_counter, loop.Training._evaluate

    def slow(self, *args, **options):
        ahead[0] += 1000.0
        return evaluate(self, *args, **options)

    monkeypatch.setattr(loop.time, "perf_counter", lambda: clock() + ahead[0])
    monkeypatch.setattr(loop.Training, "_evaluate", slow)
    result = train(tmp_path / "run", args=replace(QUICK, warmup=0, steps=3, seconds=900.0), evaluate_every=1)
    stages = [row["stage"] for row in read_metrics(tmp_path / "run")]
    assert stages == ["before RL", *["rl", "after RL"] * 3, "after RL"]
    assert result.seconds["rl"]["total"] > result.seconds["rl"]["evaluate"] > 3000.0


@pytest.mark.parametrize(("given", "engine"), [(None, (64, True)), (3, (3, False))])
def test_a_given_number_of_episodes_at_once_stands_in_for_the_limit_of_a_task(tmp_path, monkeypatch, given, engine):
    seen, play = [], Engine.run
    monkeypatch.setattr(
        Engine, "run", lambda self, *jobs: seen.append((self.concurrency, self.task_limits)) or play(self, *jobs)
    )
    train(tmp_path / "run", args=QUICK, concurrency=given)
    assert set(seen) == {engine}
