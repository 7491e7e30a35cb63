from __future__ import annotations

import json

import pytest

from lmgym.evaluation import runner
from lmgym.evaluation.protocol import protocol
from lmgym.evaluation.runner import Report
from lmgym.policy.base import SimpleSession
from lmgym.policy.load import load_policy
from lmgym.rollout.engine import Engine
from lmgym.types import Completion

OPTIONS = {"highest": 8, "max_turns": 3}


def report(name: str, **more) -> Report:
    jobs = runner.episodes("guess_number", split="test", size=1000, count=30, options=OPTIONS, **more)
    return runner.evaluate(load_policy(name), jobs, engine=Engine())


def test_a_report_counts_what_was_played():
    found = report("demonstrator")
    assert len(found.outcomes) == 30
    assert [o.index for o in found.outcomes] == sorted(o.index for o in found.outcomes)
    assert found.success.mean == sum(o.success for o in found.outcomes) / 30
    assert all(o.truncated != o.success for o in found.outcomes)
    assert report("oracle").success.mean == 1.0


def test_a_report_comes_back_from_plain_values_and_pairs_with_one_of_the_same_episodes():
    random, oracle = report("random"), report("oracle")
    gain = oracle.since(random)
    assert gain.mean == pytest.approx(1.0 - random.success.mean)
    with pytest.raises(ValueError, match="do not pair up"):
        report("oracle", seed=1).since(random)
    found = report("random")
    assert Report.from_state(json.loads(json.dumps(found.state_dict()))) == found


def test_tries_are_episodes_of_their_own_and_a_small_split_is_played_whole():
    found = report("random", tries=3)
    assert len(found.outcomes) == 90
    assert [o.attempt for o in found.outcomes[:3]] == [0, 1, 2]
    assert len({o.score for o in found.outcomes}) == 2
    jobs = runner.episodes("guess_number", split="test", size=5, count=9, options={})
    assert [job.index for job in jobs] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("lockstep", [False, True])
def test_a_broken_policy_voids_its_episode_only(lockstep):
    class Breaks:
        name, version, wants = "breaks", 0, frozenset()

        def act(self, conversations):
            return [
                Completion(text="", finish="broken", usage={"fault": "gone"})
                if c.noise[1] == 0
                else Completion(text="4")
                for c in conversations
            ]

        def count(self, messages):
            return 0

        def session(self):
            return SimpleSession(self)

    jobs = runner.episodes("guess_number", split="test", size=1000, count=2, tries=2, options=OPTIONS)
    engine = Engine(lockstep=lockstep)
    found = runner.evaluate(Breaks(), jobs, engine=engine)
    assert [(o.attempt, o.voided, o.stop == "void") for o in found.outcomes] == [(0, True, True), (1, False, False)] * 2
    assert (engine.stats.voided, engine.stats.abandoned, engine.stats.latest) == (6, 2, "gone")
    assert len(found.played) == 2


def test_seeds_of_tries_are_the_leaderboards():
    rules = protocol("wordle")
    jobs = runner.episodes("wordle", split=rules.split, size=5, count=5, tries=2, options={})
    assert [job.seed for job in jobs] == [rules.seed(job.index, job.attempt) for job in jobs]
    assert len({job.seed for job in jobs}) == 10
    assert runner.try_seed("wordle", "test", 0, 0, seed=1) != runner.try_seed("wordle", "test", 0, 0)
