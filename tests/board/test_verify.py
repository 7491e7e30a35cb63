"""Verification: what replay compares, what it says, and what it does when a worker breaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from lmgym.board import parsing, validate, workers
from lmgym.board import verify as board
from lmgym.board.entry import PolicyRecord, RecordedEpisode, canonical, episodes_path, folder_name, parse_episode, write
from lmgym.board.replay import replay
from lmgym.board.submit import build
from lmgym.board.submit import record_episode as record
from lmgym.board.verdict import Figure, figures, outcomes
from lmgym.errors import BackendError, SubmissionError
from lmgym.evaluation.protocol import Protocol, promise, protocol
from lmgym.policy.load import load_policy
from lmgym.rollout.engine import Engine
from lmgym.rollout.env_handle import EnvHandle, Setting
from lmgym.rollout.episode_state import SeatConfig
from lmgym.types import FIRST_SEAT, Job, Trajectory
from tests.board.forge import signature, wavering
from tests.components import bubblewrap
from tests.rollout.conftest import plugin
from tests.rollout.fakes import Bytes

__all__ = ["plugin"]  # the tasks of tests/rollout/games.py, also for the processes that are made here
ROOT = Path(__file__).resolve().parents[2]
DICE, TRIO = "test/Dice-v0", "test/Trio-v0"


@pytest.fixture
def found_by_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let worker processes find the tests' plug-in."""
    paths = [path for path in sys.path if (Path(path) / "games-1.dist-info").exists()]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([*paths, str(ROOT)]))


def say(text: str) -> Bytes:
    return Bytes(lambda _: text)


def three_seats() -> RecordedEpisode:
    seats = {seat: SeatConfig(policy=say(f"I am {seat}")) for seat in ("red", "black")}
    seats = {each.seat: each for each in Engine(seats=seats).run(say("me"), [Job(task=TRIO, split="train", index=0)])}
    return record(seats)


def edited(episode: RecordedEpisode, change: Callable[[list[dict[str, object]]], object]) -> RecordedEpisode:
    """Change the turns of an episode as plain values."""
    state = json.loads(canonical(episode))
    change(state["turns"])
    return parse_episode(parsing.canonical(state), "line")


def stage(task: str, *seats: str) -> EnvHandle:
    return EnvHandle(Setting(task=task, split="train", options={}, seats=frozenset(seats)))


def test_recorded_words_of_other_seats_are_played_again() -> None:
    episode = three_seats()
    # red, agent, black speak in turn, twice; a turn pays 1, and 10 to who comes next: the agent's two turns earn
    # 1 + 10 (by red's second turn) and 1; what red's first turn brought came before its first turn: another 10
    assert [ply.seat for ply in episode.turns] == ["red", "agent", "black"] * 2
    assert [ply.reward for ply in episode.turns if ply.seat == "agent"] == [21.0, 1.0]
    outcome = replay(stage(TRIO, "agent", "red", "black"), episode, exact=True)
    # each of the agent's answers has 3 tokens: m, e, end
    figures = {"score": 0.5, "success": False, "reward": 22.0, "turns": 2, "invalid": 0, "tokens": 6}
    assert outcome == {**figures, "figures": {}}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda plies: plies[0].update(action="another word"), "turn 1 answers another observation"),
        (lambda plies: plies[0].update(seat="black"), "turn 0 is of seat 'black', but it was the turn of 'red'"),
        (lambda plies: plies[1].update(reward=22.0), r"turn 1 states reward 22\.0; replay gives 21\.0"),
    ],
    ids=["words", "seat", "income"],
)
def test_a_changed_turn_of_another_seat_is_refused(change: Callable[..., object], message: str) -> None:
    forged = edited(three_seats(), change)
    with pytest.raises(SubmissionError, match=message):
        replay(stage(TRIO, "agent", "red", "black"), forged, exact=True)


def test_an_invalid_action_of_another_seat_is_not_the_agents() -> None:
    black = SeatConfig(policy=Bytes(lambda talk: "1" if talk.messages[-1].text == "1 or 2" else "x"))
    job = Job(task="test/Race-v0", split="train", index=0)
    seats = {each.seat: each for each in Engine(seats={"black": black}).run(say("1"), [job])}
    assert sum(not turn.info["valid"] for turn in seats["black"].turns) == 2
    outcome = replay(stage(job.task, "agent", "black"), record(seats), exact=True)
    assert (outcome["turns"], outcome["invalid"]) == (3, 0)


def test_tries_of_an_instance_are_one_sample_of_turns() -> None:
    def turns(tries: int) -> Figure:
        rest = {"score": 0.0, "success": False, "invalid": 0, "tokens": 0}
        rows = [{"index": i, "attempt": j, "turns": 2 + i, **rest} for i in range(5) for j in range(tries)]
        return figures(outcomes(rows))["turns"]  # type: ignore[no-any-return]

    assert turns(8) == turns(1)


def dice(budget: int | None = None) -> Trajectory:
    (trajectory,) = Engine().run(say("roll"), [Job(task=DICE, split="train", index=0, seed=7, budget=budget)])
    return trajectory


def test_a_full_context_cuts_an_episode_only_before_its_end() -> None:
    cut = dice(budget=2)
    outcome = replay(stage(DICE, FIRST_SEAT), record({FIRST_SEAT: replace(cut, stop="context")}), exact=True)
    assert outcome["score"] == cut.score > 0
    assert outcome["turns"] == 2
    whole = record({FIRST_SEAT: replace(dice(), stop="context")})
    with pytest.raises(SubmissionError, match="states stop 'context'; replay gives 'max_turns'"):
        replay(stage(DICE, FIRST_SEAT), whole, exact=True)


def test_outcomes_are_compared_where_observations_are_not() -> None:
    recorded = edited(record({FIRST_SEAT: dice()}), lambda turns: [turn.update(observation="0" * 16) for turn in turns])
    assert replay(stage(DICE, FIRST_SEAT), recorded, exact=False)["score"] == dice().score
    with pytest.raises(SubmissionError, match="another observation"):
        replay(stage(DICE, FIRST_SEAT), recorded, exact=True)


@pytest.mark.parametrize(
    ("change", "isolating", "level", "reason"),
    [
        ({"deterministic": False}, True, "none", "the same actions may lead elsewhere"),
        ({"runs_code": True}, False, "none", "no isolating sandbox"),
        ({"runs_code": True}, True, "exact", ""),
        ({"goldens": "outcome"}, True, "outcome", ""),
    ],
)
def test_an_entry_that_cannot_be_replayed_stays_reported(
    honest: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, object], isolating: bool, level: str, reason: str
) -> None:
    rules = protocol("wordle")
    monkeypatch.setattr(validate, "protocol", lambda task: replace(rules, spec=replace(rules.spec, **change)))
    monkeypatch.setattr(board, "can_isolate", lambda: isolating)
    monkeypatch.setattr(workers, "BUBBLE", ("env",))  # where a sandbox is, it is tested below
    verdict = board.verify(honest, workers=1)
    assert (verdict.level, verdict.mark) == (level, "reported" if level == "none" else "verified")
    assert reason in verdict.reason


def test_a_task_with_sandboxes_of_its_own_is_replayed_outside_of_one() -> None:
    spec = replace(protocol("wordle").spec, runs_code=True)
    assert spec.isolated
    assert not replace(spec, sandboxed=True).isolated


def test_a_sandbox_has_no_network_and_nothing_to_write_to() -> None:
    bubblewrap()
    script = "import os, socket\nprint(os.listdir('/sys/class/net') if os.path.isdir('/sys/class/net') else [])\n"
    script += "for place in ('/root/x', '/var/tmp/x', '/home/x', '/proc/sys/kernel/core_pattern'):\n"
    script += "  try: open(place, 'r+' if os.path.exists(place) else 'w')\n  except OSError as e: print(e.errno)\n"
    script += "try: socket.create_connection(('192.0.2.1', 80), 1)\nexcept OSError as e: print('no network')\n"
    done = subprocess.run([*workers.BUBBLE, sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[1:] == ["30", "30", "30", "30", "no network"]  # 30: read-only file system


def test_actions_that_are_code_are_replayed_in_a_sandbox(honest: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bubblewrap()
    rules = protocol("wordle")
    monkeypatch.setattr(validate, "protocol", lambda task: replace(rules, spec=replace(rules.spec, runs_code=True)))
    verdict = board.verify(honest, workers=1)
    assert (verdict.level, verdict.mark) == ("exact", "verified")


def lines(count: int) -> Iterator[bytes]:
    jobs = [Job(task=DICE, split="train", index=index, seed=index) for index in range(count)]
    played = sorted(Engine().run(say("roll"), jobs), key=lambda each: each.index or 0)
    return iter([canonical(record({FIRST_SEAT: each})) for each in played])


ORDER = {"task": DICE, "split": "train", "seats": [FIRST_SEAT], "exact": True}


@pytest.mark.usefixtures("found_by_workers")
def test_workers_answer_every_line_once() -> None:
    answers = dict(workers.WorkerPool(ORDER, workers=2).run(lines(20)))
    assert sorted(answers) == list(range(20))
    assert all(answer["outcome"]["turns"] == 4 for answer in answers.values())


@pytest.mark.usefixtures("found_by_workers")
def test_a_hanging_worker_is_ended() -> None:
    with pytest.raises(
        BackendError, match=r"episode 0 could not be replayed in 3 tries: .* longer than 0\.001 seconds"
    ):
        dict(workers.WorkerPool(ORDER, workers=1, timeout=0.001).run(lines(1)))


def test_a_worker_that_cannot_start_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "BUBBLE", ("false",))
    with pytest.raises(BackendError, match="a worker ended with code 1"):
        dict(workers.WorkerPool(ORDER, workers=1, isolated=True).run(lines(1)))


def test_missing_data_is_no_forgery() -> None:
    order = {**ORDER, "task": "lmgym/ALFWorldOfficial-v0", "split": "valid_unseen"}
    with pytest.raises(BackendError, match="could not be replayed in 3 tries: no official ALFWorld games"):
        dict(workers.WorkerPool(order, workers=1).run(lines(1)))


def test_workers_get_no_secrets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("SOME_API_KEY", "planted")
    monkeypatch.setenv("PLAIN", "seen")
    told = tmp_path / "environment"
    monkeypatch.setattr(workers, "BUBBLE", ("sh", "-c", f"env > {told}; exit 1"))
    with pytest.raises(BackendError):
        dict(workers.WorkerPool(ORDER, workers=1, isolated=True).run(lines(1)))
    assert "PLAIN=seen" in told.read_text()
    assert "planted" not in told.read_text()


def test_a_task_has_a_standard_set_with_seeds_of_version_instance_and_try() -> None:
    rules = protocol("wordle")
    next_version = replace(rules, spec=replace(rules.spec, id="lmgym/Wordle-v1"))
    seeds = [rules.seed(0, 0), rules.seed(0, 1), rules.seed(1, 0), next_version.seed(0, 0)]
    assert len(set(seeds)) == 4
    assert all(0 <= seed < 1 << 31 for seed in seeds)
    assert rules.seed(0, 0) == protocol("lmgym/Wordle-v0").seed(0, 0)
    assert (len(protocol("wordle")), len(protocol("alfworld")), len(protocol("textworld"))) == (93, 1000, 500)
    assert list(replace(protocol("wordle"), instances=2, tries=2).names()) == [(0, 0), (0, 1), (1, 0), (1, 1)]


def played(rules: Protocol) -> list[Trajectory]:
    return sorted(Engine().run(wavering(), rules.jobs()), key=lambda each: each.index or 0)


def test_a_run_that_violates_the_protocol_is_refused() -> None:
    rules = protocol("wordle")
    whole = played(rules)
    cases = {
        "has no episodes": [],
        "lacks 1 of them, the first is instance 5, try 0": whole[:5] + whole[6:],
        "in this run twice": [*whole, whole[0]],
        "is of lmgym/Wordle-v0 train": [replace(whole[0], split="train"), *whole[1:]],
        "was played with options": [replace(whole[0], options={"colouring": "lmrl"}), *whole[1:]],
        "which is not the board's": [replace(whole[0], seed=1), *whole[1:]],
        "continues another episode": [replace(whole[0], parent="e0"), *whole[1:]],
    }
    for message, trajectories in cases.items():
        with pytest.raises(SubmissionError, match=message):
            build(trajectories, signature())


def test_an_entry_is_never_overwritten(tmp_path: Path) -> None:
    entry, episodes = build(played(protocol("wordle")), signature())
    path = write(tmp_path, entry, episodes)
    before = path.read_bytes()
    with pytest.raises(SubmissionError, match="never overwritten"):
        write(tmp_path, entry, episodes)
    assert path.read_bytes() == before
    assert path.parent.name == folder_name("lmgym/Wordle-v0") == "Wordle-v0"


def test_an_entry_names_no_path_and_no_host_and_its_verdict_the_golden_episodes(honest: Path) -> None:
    words = honest.read_bytes() + b"".join(parsing.lines(episodes_path(honest)))
    for told in (str(Path.home()), str(ROOT), os.uname().nodename, "/tmp"):
        assert told.encode() not in words
    verdict = board.verify(honest)
    assert verdict.promise == promise("lmgym/Wordle-v0")
    assert len(verdict.promise) == 64
    assert promise("lmgym/Wordle-v9") is None


def test_an_entry_of_the_random_policy_is_verified(tmp_path: Path) -> None:
    rules = protocol("wordle")
    who = PolicyRecord(name="random", kind="random")
    entry, episodes = build(Engine().run(load_policy("random"), rules.jobs()), signature("random", policy=who))
    assert board.verify(write(tmp_path, entry, episodes), workers=1).mark == "verified"
