"""The conversation after a cut episode equals that of a longer episode at the same turn."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lmgym.policy.load import load_local
from lmgym.policy.local.sampling import Sampling
from lmgym.rollout.context import Full, MarkovState, Summarise
from lmgym.rollout.engine import Engine
from lmgym.rollout.following import following
from lmgym.types import Job
from tests.threads import one_thread

from .fakes import CONTEXTS

DICE = "test/Dice-v0"


@pytest.fixture(scope="module")
def policy():
    with one_thread():
        yield load_local("tiny", sampling=Sampling(max_tokens=4), device="cpu")


def played(policy, context, budget):
    jobs = [Job(task=DICE, index=i, id=f"j{i}", prompt="Roll the die.", budget=budget) for i in range(2)]
    return list(Engine(context=context, lockstep=True).run(policy, jobs))


@pytest.mark.parametrize("context", [*CONTEXTS, MarkovState(task=False), Summarise(40)], ids=repr)
def test_a_cut_episode_would_have_been_asked_what_a_longer_one_is_asked(policy, context):
    seen = set()
    for budget in (1, 2):
        for short, long in zip(played(policy, context, budget), played(policy, context, budget + 1), strict=True):
            asked = following(short, context, policy.count)
            ids, fresh = policy.prompt(asked)
            there = long.turns[len(short.turns)].completion
            assert short.truncated
            assert long.turns[: len(short.turns)] == short.turns
            assert (tuple(ids), fresh) == (there.prompt_ids, there.fresh)
            seen.add(fresh)
    assert seen != {True} or not isinstance(context, Full)


def test_words_without_ids_are_not_gone_on_from_and_an_idle_seat_is_asked_nothing(policy):
    (episode, _) = played(policy, Full(), 1)
    assert following(replace(episode, final=None), Full(), policy.count) is None
    (episode, _) = played(policy, Full(), 2)
    *turns, last = episode.turns
    silent = replace(last, completion=replace(last.completion, ids=(), prompt_ids=(), logprobs=(), entropy=()))
    asked = following(replace(episode, turns=(*turns, silent)), Full(), policy.count)
    assert asked.spoken == ()
