from __future__ import annotations

import os
import signal
import struct
import time
import zlib
from multiprocessing.context import SpawnProcess

import pytest

from lmgym.errors import BackendError, InstanceError
from lmgym.rollout.engine import Engine
from lmgym.rollout.env_handle import Setting
from lmgym.rollout.env_pool import EnvPool
from lmgym.rollout.episodes import dump
from lmgym.rollout.workers import Bug, Fault
from lmgym.types import Job

from . import games
from .fakes import Bytes

DICE = "test/Dice-v0"
KINDS = ["inline", "thread", "process"]


def roll(conversation):
    return f"roll {conversation.noise[0] % 7}"


def moody(tmp_path, mood, count=8, **options):
    """Jobs of which the first odd one in its second turn gets that mood, once."""
    options = {"mood": mood, "flag": str(tmp_path / "flag"), **options}
    return [Job(task=DICE, index=i, id=f"job{i}", options=options) for i in range(count)]


@pytest.fixture(scope="module")
def undisturbed():
    jobs = [Job(task=DICE, index=i, id=f"job{i}") for i in range(8)]
    return {t.id: [turn.completion for turn in t.turns] for t in Engine().run(Bytes(roll), jobs)}


def completions(trajectories):
    return {t.id: [turn.completion for turn in t.turns] for t in trajectories}


def test_lockstep_gives_the_same_bits_with_any_player():
    def dumps(**engine):
        jobs = [Job(task="lmgym/GuessNumber-v0", index=i, id=f"job{i}", attempt=i) for i in range(12)]
        jobs += [Job(task=DICE, index=i, id=f"dice{i}", seed=i) for i in range(12)]
        return [dump(t) for t in Engine(lockstep=True, concurrency=7, **engine).run(Bytes(pace=2), jobs)]

    inline = dumps(player="inline")
    assert len(inline) == 24
    assert dumps(player="thread") == inline
    assert dumps(player="process", processes=2) == inline


@pytest.mark.parametrize("player", KINDS)
def test_a_broken_backend_voids_the_episode_and_plays_it_again(tmp_path, undisturbed, player):
    engine = Engine(player=player, concurrency=4, processes=1)
    trajectories = list(engine.run(Bytes(roll), moody(tmp_path, "break")))
    assert completions(trajectories) == undisturbed  # each job once, with the words it would have had
    stats = engine.stats
    assert (stats.played, stats.voided, stats.retried, stats.abandoned, stats.faults) == (8, 1, 1, 0, 1)


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_job_whose_backend_breaks_three_times_is_given_up(tmp_path, lockstep):
    jobs = moody(tmp_path, "break", every=True)
    given = [job if job.index == 3 else Job(task=DICE, index=job.index, id=job.id) for job in jobs]
    engine = Engine(lockstep=lockstep)
    assert [t.index for t in engine.run(Bytes(roll), given)] == [0, 1, 2, 4, 5, 6, 7]
    stats = engine.stats
    assert (stats.played, stats.voided, stats.retried, stats.abandoned, stats.faults) == (7, 3, 2, 1, 3)


def test_a_run_stops_when_nothing_can_be_played_or_more_than_a_tenth_breaks(tmp_path):
    engine = Engine()
    with pytest.raises(BackendError, match="no episode completed: all 12 attempts broke; the die broke"):
        list(engine.run(Bytes(roll), [job for job in moody(tmp_path, "break", every=True) if job.index % 2]))
    assert (engine.stats.voided, engine.stats.abandoned) == (12, 4)
    engine = Engine(concurrency=4)
    with pytest.raises(BackendError, match="the die broke"):
        list(engine.run(Bytes(roll), moody(tmp_path, "break", count=100, every=True)))
    assert engine.stats.played + engine.stats.voided == 20


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_killed_process_loses_nothing_but_its_episodes(undisturbed, lockstep):
    jobs = [Job(task=DICE, index=i, id=f"job{i}") for i in range(8)]
    engine = Engine(player="process", concurrency=4, processes=2, lockstep=lockstep)
    killed = []

    def answer(conversation):
        if len(conversation.messages) == 5 and not killed:  # the third turn of whoever comes first
            killed.append(engine.pids()[0])
            os.kill(killed[0], signal.SIGKILL)
        return roll(conversation)

    trajectories = list(engine.run(Bytes(answer, pace=1), jobs))
    assert killed
    assert completions(trajectories) == undisturbed
    assert [t.id for t in trajectories] == sorted(undisturbed) or not lockstep
    stats = engine.stats
    assert (stats.played, stats.faults, stats.abandoned) == (8, 1, 0)
    assert 1 <= stats.voided == stats.retried <= 2  # of the two that lived there


def test_a_process_that_dies_in_a_step_is_started_again(tmp_path, undisturbed):
    engine = Engine(player="process", concurrency=4, processes=1)
    trajectories = list(engine.run(Bytes(roll), moody(tmp_path, "die")))
    assert completions(trajectories) == undisturbed
    assert (engine.stats.faults, engine.stats.voided) == (1, 4)


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_process_that_dies_after_an_answer_voids_the_answer_too(tmp_path, undisturbed, monkeypatch, lockstep):
    collect = EnvPool.collect

    def patient(self, wait=0.0):
        """Collect what every slot answers as one batch: the end of the first episode and the death in the second."""
        answers = collect(self, wait)
        while self.busy:
            answers += collect(self, 0.1)
        return answers

    def stop(conversation):
        messages = conversation.messages
        return "stop" if messages[0].text == "game 0" and len(messages) == 3 else roll(conversation)

    monkeypatch.setattr(EnvPool, "collect", patient)
    engine = Engine(player="process", concurrency=2, processes=1, lockstep=lockstep)
    first, second = sorted(engine.run(Bytes(stop), moody(tmp_path, "die", count=2)), key=lambda t: t.index)
    assert (first.score, len(first.turns)) == (0.25, 2)
    assert [turn.completion for turn in second.turns] == undisturbed["job1"]
    assert (engine.stats.faults, engine.stats.voided, engine.stats.played) == (1, 2, 2)


def test_a_process_that_cannot_start_is_a_fault(monkeypatch):
    def full(process):
        raise OSError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(SpawnProcess, "start", full)
    with pytest.raises(BackendError, match="an environment's process was lost: .*unavailable"):
        list(Engine(player="process").run(Bytes(roll), [Job(task=DICE, index=0)]))


@pytest.mark.parametrize("player", ["thread", "process"])
def test_a_step_that_takes_too_long_is_a_fault(tmp_path, undisturbed, player):
    engine = Engine(player=player, concurrency=4, processes=2, timeout=3.0)
    trajectories = list(engine.run(Bytes(roll), moody(tmp_path, "stall")))
    assert completions(trajectories) == undisturbed
    assert engine.stats.faults == 1


@pytest.mark.parametrize(
    ("player", "error"), [("inline", ZeroDivisionError), ("thread", ZeroDivisionError), ("process", RuntimeError)]
)
def test_a_bug_in_a_task_is_raised(tmp_path, player, error):
    with pytest.raises(error, match="a bug in the task"):
        list(Engine(player=player).run(Bytes(roll), moody(tmp_path, "bug")))


@pytest.mark.parametrize("player", KINDS)
def test_bad_input_is_raised(player):
    with Engine(player=player) as engine:
        with pytest.raises(InstanceError, match="unknown option 'mod'"):
            list(engine.run(Bytes(), [Job(task=DICE, index=0, options={"mod": "x"})]))
        with pytest.raises(InstanceError, match="got index 100"):
            list(engine.run(Bytes(), [Job(task=DICE, index=100)]))
        assert len(list(engine.run(Bytes(), [Job(task=DICE, index=0)]))) == 1


def test_several_environments_share_a_process_which_ends_with_the_run():
    engine = Engine(player="process", concurrency=6, processes=2)
    run = engine.run(Bytes(roll), [Job(task=DICE, index=i) for i in range(12)])
    next(run)
    pids = engine.pids()
    assert len(pids) == 2
    run.close()
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_pictures_are_named_by_what_they_show_and_kept_once():
    engine = Engine(player="process", processes=1)
    trajectories = list(engine.run(Bytes(roll), [Job(task="test/Gallery-v0", index=i) for i in range(2)]))
    result = [turn.observation.images for turn in trajectories[0].turns] + [trajectories[0].final.images]
    assert [len(images) for images in result] == [0, 1, 2, 3, 4]
    assert result[4][:3] == result[3]
    assert set(engine.pictures) == {name for t in trajectories for name in t.final.images}
    png = engine.pictures[result[4][2]]
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (2, 3)  # width, height
    length = struct.unpack(">I", png[33:37])[0]
    rows = zlib.decompress(png[41 : 41 + length])
    assert rows == 3 * bytes([0, *[10 * trajectories[0].index + 2] * 6])


def settle(players, count):
    answers = []
    while len(answers) < count:
        answers += players.collect(0.1)
    return answers


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_can_be_asked_reseeded_and_cut(kind):
    players = EnvPool(processes=1)
    slot = players.acquire(Setting(task=DICE, split="train", options={}), kind)
    players.send(slot, "reset", 0, {"index": 1}, {"agent": frozenset({"oracle"})})
    players.send(slot, "step", "oracle 0", 7)
    players.send(slot, "cut")
    (_, first), (_, second), (_, last) = settle(players, 3)
    assert (first.observation.text, first.hints) == ("game 1", {"oracle": "oracle 0"})
    assert second.hints == {"oracle": "oracle 1"}
    assert (last.truncated, last.info["score"]) == (True, int(second.observation.text[-1]) / 24)
    players.release(slot)
    assert players.acquire(Setting(task=DICE, split="train", options={}), kind) == slot
    players.close()


def test_calls_to_a_retired_slot_come_to_nothing():
    players = EnvPool(processes=1)
    setting = Setting(task=DICE, split="train", options={})
    first, second = (players.acquire(setting, "process") for _ in range(2))
    players.send(first, "reset", 0, {"index": 1}, {})
    settle(players, 1)
    os.kill(players.pids()[0], signal.SIGKILL)
    players.send(first, "step", "x")
    (fault,) = settle(players, 1)
    assert isinstance(fault, Fault)
    assert set(fault.slots) == {first, second}
    third = players.acquire(setting, "process")
    players.send(third, "reset", 0, {"index": 2}, {})
    ((slot, result),) = settle(players, 1)
    assert (slot, result.observation.text) == (third, "game 2")
    players.close()


def test_what_a_retired_slot_raises_late_comes_to_nothing():
    players = EnvPool(processes=1)
    setting = Setting(task=DICE, split="train", options={})
    slot, other = (players.acquire(setting, "thread") for _ in range(2))
    players.retire(slot)
    players._answers.put(Bug(slot, ValueError("late")))
    assert players.collect() == []
    players._answers.put(Bug(other, ValueError("a bug of the task")))
    with pytest.raises(ValueError, match="a bug of the task"):
        players.collect()
    players.close()


def test_closing_does_not_wait_for_a_stuck_environment(tmp_path):
    for kind in ("thread", "process"):
        options = {"mood": "stall", "flag": str(tmp_path / kind)}
        players = EnvPool(processes=1)
        slot = players.acquire(Setting(task=DICE, split="train", options=options), kind)
        players.send(slot, "reset", 0, {"index": 1}, {})
        players.send(slot, "step", "x")
        players.send(slot, "step", "x")
        settle(players, 2)
        while not (tmp_path / kind).exists():
            time.sleep(0.01)
        players.close()  # it sleeps for longer than a test may take


def test_made_environments_are_closed_after_a_fault(tmp_path):
    games.made.clear(), games.closed.clear()
    list(Engine(concurrency=2).run(Bytes(roll), moody(tmp_path, "break")))
    assert sorted(map(id, games.closed)) == sorted(map(id, games.made))
