"""ARPO and AEPO: where episodes fork, and what shared tokens are credited with."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from lmgym.baselines.recipes import aepo, arpo
from lmgym.errors import RecipeError
from lmgym.rollout.engine import Engine
from lmgym.rollout.planner import CONTINUE, Fork, Group
from lmgym.train.collate import collate
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.parts.losses import open_surrogate
from lmgym.train.parts.planners import BalancedFork, EntropyFork, first_entropy
from lmgym.train.parts.tasks import Uniform
from lmgym.train.state import InstancePool
from lmgym.types import Completion, Job, Message, Turn
from tests.baselines.test_enumerated import tree_batch
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy

pytestmark = pytest.mark.usefixtures("chain")


def play(planner, *, tries, groups=3):
    jobs = Uniform(groups, tries=tries).draw(0, InstancePool(task=SPEC.id, size=1000, stage="rl"))
    return list(Engine(planner=planner).run(chain_policy(), jobs))


def answer(*entropy):
    observation, completion = Message(role="user", text="?"), Completion(text="x", entropy=entropy)
    return Turn(observation=observation, completion=completion, action="x")


@dataclass
class Moment:
    """A moment of an episode."""

    job: Job
    turns: list[Turn]
    group: Group = field(init=False)

    def __post_init__(self) -> None:
        self.group = Group("g", jobs=[self.job])


def moment(*entropies, prefix=()):
    return Moment(Job(task="t", id="e", prefix=prefix), [answer(value) for value in entropies])


@pytest.mark.parametrize(("entropies", "expected"), [((1.0, 1.0), 0.5), ((1.0, 2.5), 0.8), ((3.0, 0.0), 0.0)])
def test_the_probability_of_a_fork_rises_with_the_entropy_after_an_observation(entropies, expected):
    assert EntropyFork(8, 4).probability(moment(*entropies)) == pytest.approx(expected, abs=0.101)
    assert EntropyFork(8, 4, base=0.5, weight=0.2).probability(moment(1.0, 2.5)) == pytest.approx(0.5 + 0.2 * 1.5)


def test_entropy_is_that_of_the_first_tokens():
    assert first_entropy(answer(1.0, 2.0, 9.0), 2) == 1.5
    assert first_entropy(answer(), 2) == 0.0


def test_neither_the_first_answer_nor_one_that_is_a_fork_already_is_forked():
    always = EntropyFork(8, 1, base=1.0)
    assert always.after_step(moment(1.0)) is CONTINUE
    assert always.after_step(moment(1.0, 1.0)) == Fork(1, turn=1)
    assert always.after_step(moment(1.0, 1.0, prefix=(answer(1.0),))) is CONTINUE
    assert always.after_step(moment(1.0, 1.0, 1.0, prefix=(answer(1.0),))) == Fork(1, turn=2)


@pytest.mark.parametrize("planner", [EntropyFork(7, 2, base=1.0), EntropyFork(7, 2, base=0.0, weight=0.0)])
def test_a_group_has_its_episodes_by_forks_or_by_further_tries(planner):
    episodes = play(planner, tries=2)
    assert Counter(each.group for each in episodes) == {f"rl-0-{n}": 7 for n in range(3)}
    forks = [each for each in episodes if each.parent]
    assert len(forks) == (15 if planner.base else 0)
    by_id = {each.id: each for each in episodes}
    for fork in forks:
        parent = by_id[fork.parent]
        shared = fork.forked_at
        assert shared >= 1
        assert all(a is b for a, b in zip(fork.turns[:shared], parent.turns[:shared], strict=True))
        own = [each.turns[shared].observation for each in (fork, parent)]
        assert own[0] == own[1]  # the same observation is answered anew


@pytest.mark.parametrize("planner", [EntropyFork(7, 2, base=0.15), BalancedFork(7, 2, base=0.15)])
def test_tries_that_fill_a_group_are_forked_only_while_there_is_room(planner):
    episodes = play(planner, tries=2 if type(planner) is EntropyFork else 1, groups=12)
    assert set(Counter(each.group for each in episodes).values()) == {7}


def test_the_answer_that_ends_an_episode_is_forked_too():
    episodes = play(EntropyFork(40, 2, base=1.0), tries=2)
    lengths = {each.id: len(each.turns) for each in episodes}
    assert any(each.parent and each.forked_at == lengths[each.parent] - 1 for each in episodes)


def test_each_token_of_a_tree_is_trained_once_and_shared_ones_get_the_mean():
    episodes = play(EntropyFork(6, 2, base=1.0), tries=2)
    batch = collate(episodes)
    sampled = sum(len(turn.completion.ids) for each in episodes for turn in each.turns[each.forked_at :])
    assert int(batch.mask.sum()) == sampled
    # returns 1, 0, 0 have mean 1/3 and deviation 1/sqrt(3); the turn that the first two share gets the mean of theirs
    first, rest = 2 / math.sqrt(3), -1 / math.sqrt(3)
    expected = [[0, (first + rest) / 2, first], [0, 0, rest], [0, rest, rest]]
    assert arpo.credit(tree_batch()).numpy() == pytest.approx(np.array(expected), abs=1e-5)


def test_more_tries_than_episodes_are_refused():
    with pytest.raises(RecipeError, match="2 <= roots <= group; got roots=9 and group=8"):
        arpo.recipe(arpo.Args(roots=9, group=8))


def test_the_first_try_divides_the_group():
    group = Group("g", jobs=[Job(task="t", id="e")])
    planner = BalancedFork(16, 2, beta=2.0)
    assert planner.tries(group) == 16  # not measured yet: no fork
    (episode,) = play(EntropyFork(1, 1), tries=1, groups=1)
    first, *later = (first_entropy(turn, 20) for turn in episode.turns)
    group = Group("g", jobs=[Job(task="t", id=episode.id)], trajectories=[episode])
    rise = first - np.mean(later)
    assert planner.tries(group) == round(16 / (1 + math.exp(-2.0 * rise)))
    assert BalancedFork(16, 2, beta=1e9 * -np.sign(rise)).tries(group) == 2
    assert BalancedFork(16, 2, beta=1e9 * np.sign(rise)).tries(group) == 16
    group.trajectories = [replace(episode, turns=())]  # the first prompt did not fit into the context
    assert planner.tries(group) == 8


def test_groups_of_aepo_begin_with_one_try_and_end_with_all_episodes():
    planner = BalancedFork(8, 2, base=1.0, in_a_row=100)
    episodes = play(planner, tries=1)
    for name, count in Counter(each.group for each in episodes).items():
        assert count == 8
        members = [each for each in episodes if each.group == name]
        roots = [each for each in members if each.parent is None]
        first = next(each for each in roots if each.attempt == 0)
        group = Group(name, jobs=[Job(task=SPEC.id, id=first.id)], trajectories=[first])
        assert len(roots) >= planner.tries(group) >= 2
        assert len(members) - len(roots) <= 8 - planner.tries(group)


@pytest.mark.parametrize(
    ("turns", "expected"), [((), 1.0), ((3,), 2 / 3), ((2, 3), 1 / 3), ((1, 2, 3), 0.0), ((2,), 1)]
)
def test_forks_in_a_row_make_the_next_less_likely(turns, expected):
    node = moment(*[1.0] * 5)  # the latest answer has number 4
    node.group.jobs += [Job(task="t", id=f"f{n}", parent="e", prefix=(answer(1.0),) * n) for n in turns]
    assert BalancedFork(16, 2, base=1.0).probability(node) == pytest.approx(expected)
    # the same on a path that left its parent at the last of these turns
    if turns:
        child = next(job for job in node.group.jobs if len(job.prefix) == turns[-1])
        node.job = child
        assert BalancedFork(16, 2, base=1.0).probability(node) == pytest.approx(expected)


def test_forks_of_an_ancestor_after_the_path_left_it_do_not_count():
    node = moment(*[1.0] * 5)
    left, later = (Job(task="t", id=f"f{n}", parent="e", prefix=(answer(1.0),) * n) for n in (1, 3))
    node.group.jobs += [left, later]
    node.job = left
    assert BalancedFork(16, 2, base=1.0).probability(node) == 1.0  # its parent forked at 3, on another path


def test_every_token_of_a_group_weighs_the_same():
    """A fork has its own tokens alone; a mean over episodes would give each of them more weight."""
    for recipe in (arpo.recipe(arpo.Args()), aepo.recipe(aepo.Args())):
        assert {term.aggregation for term in recipe.loss} == {"token_mean"}


def test_tokens_of_high_entropy_get_more_of_the_same_sign():
    entropy = torch.tensor([[0.0, 0.0, 3.0], [0.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    batch = tree_batch()
    batch.entropy[:] = entropy
    of_arpo = arpo.credit(batch)
    scaled = aepo.credit(batch, entropy_weight=0.3)
    values = entropy[batch.mask]
    z = ((values - values.mean()) / values.std(correction=0)).clamp(-1, 1)
    assert scaled[batch.mask].numpy() == pytest.approx((of_arpo[batch.mask] * (1 + 0.3 * z)).numpy(), abs=1e-5)
    assert torch.equal(scaled.sign(), of_arpo.sign())


def test_a_token_clipped_from_above_keeps_its_gradient():
    old = torch.zeros(1, 4)
    new = torch.tensor([[0.0, 1.0, 1.0, -1.0]], requires_grad=True)
    batch = make_batch([[1, 1, 1, 1]], logprobs=old, advantage=[[2.0, 2.0, -2.0, -2.0]])
    loss, figures = open_surrogate(ScoredBatch(batch=batch, logprobs=new, entropy=old), low=0.2, high=0.28)
    assert loss[0].tolist() == pytest.approx([-2.0, -2.56, 2.0 * math.e, 1.6])
    loss.sum().backward()
    assert new.grad[0].tolist() == pytest.approx([-2.0, -2.56, 2.0 * math.e, 0.0])
    assert figures["clipped_above"].tolist() == [[0, 1, 0, 0]]
