"""The engine with the embedded model: what it sampled is what a row of ids scores, in every view and every fork."""

from __future__ import annotations

import pytest
import torch

from lmgym.policy.load import load_local
from lmgym.policy.local.sampling import Sampling
from lmgym.rollout.context import Full
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import fork
from lmgym.rollout.planner import Planner, Replace
from lmgym.rollout.segments import segments
from lmgym.types import Job
from tests.threads import one_thread

from .fakes import CONTEXTS, assert_trained_once

DICE = "test/Dice-v0"


@pytest.fixture(scope="module")
def policy():
    with one_thread():
        yield load_local("tiny", sampling=Sampling(max_tokens=6), device="cpu")


def assert_rescored(policy, trajectories):
    """Float32: log-probs within 1e-4 of those sampled."""
    rows = [row for trajectory in trajectories for row in segments(trajectory)]
    assert rows
    longest = max(map(len, rows))
    ids = torch.tensor([[*row.ids, *[0] * (longest - len(row))] for row in rows])
    attention = torch.tensor([[n < len(row) for n in range(longest)] for row in rows])
    with torch.inference_mode():
        logprobs, _ = policy.score(ids, attention)
    for row, again in zip(rows, logprobs.tolist(), strict=True):
        for sampled, before, after in zip(row.sampled, row.logprobs, again, strict=False):
            assert not sampled or after == pytest.approx(before, abs=1e-4)


def trunk(policy, context, **engine):
    jobs = [Job(task=DICE, index=i, id=f"p{i}", prompt="Roll the die.") for i in range(4)]
    return list(Engine(context=context, concurrency=3, **engine).run(policy, jobs))


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_every_sampled_token_of_a_tree_is_trained_once_and_scores_as_sampled(policy, context):
    parents = trunk(policy, context)
    forks = [fork(t, turn) for t in parents for turn in range(len(t.turns))]
    tree = [*parents, *Engine(context=context).run(policy, forks)]
    assert len(tree) > 4 * 4
    assert_trained_once(tree)
    assert_rescored(policy, tree)


def test_replaced_words_leave_the_rest_as_sampled(policy):
    class Second(Planner):
        def before_step(self, node):
            return Replace("roll <|im_end|>") if len(node.turns) == 1 else None

    trajectories = trunk(policy, Full(), planner=Second())
    assert_trained_once(trajectories)
    assert_rescored(policy, trajectories)
    encoded = [policy.encode(t) for t in trajectories]  # words nobody sampled have ids now, and are never trained by RL
    assert_trained_once(encoded)
    assert_rescored(policy, encoded)
    assert all(any(row.given) for row in (segments(t)[0] for t in encoded))


def test_a_context_that_is_full_cuts_the_episode():
    policy = load_local("tiny", sampling=Sampling(max_tokens=6), device="cpu", context=48)
    trajectories = trunk(policy, Full())
    assert {t.stop for t in trajectories} == {"context"}
    assert all(t.truncated and "score" in t.info for t in trajectories)
    assert_rescored(policy, trajectories)


def test_lockstep_and_inline_runs_repeat_bit_by_bit(policy):
    assert trunk(policy, Full()) == trunk(policy, Full())
    strict = trunk(policy, Full(), lockstep=True)
    assert trunk(policy, Full(), lockstep=True, player="thread") == strict
