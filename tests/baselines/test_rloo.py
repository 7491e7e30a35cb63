from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import ClassVar

import pytest
import torch

from lmgym.baselines import grpo, ppo, rloo
from lmgym.env import registry
from lmgym.env.env import Reply
from lmgym.errors import BackendError, RecipeError
from lmgym.train import loop
from lmgym.train.batch import masked
from lmgym.train.log import read_metrics
from lmgym.train.parts.tasks import order
from tests.train.batches import make_batch
from tests.train.chain import SPEC, Chain, chain_policy


def test_a_group_of_one_is_refused():
    with pytest.raises(RecipeError, match="at least 2"):
        rloo.recipe(rloo.Args(group=1))
    with pytest.raises(RecipeError, match="group >= 2"):
        rloo.credit(make_batch([[0, 1], [0, 1], [0, 1]], group=[0, 0, 1]))


class Brittle(Chain):
    """One instance cannot be opened when it is asked for the first, third and fourth time."""

    SPEC = replace(SPEC, id="test/Brittle-v0", entry_point=f"{__name__}:Brittle")
    opened: ClassVar[list[int]] = []

    def begin(self, index: int) -> Reply:
        if index == order(0, 0, 1000)[0]:
            self.opened.append(index)
            if len(self.opened) in (1, 3, 4):
                raise BackendError("the chain broke")
        return super().begin(index)


@pytest.mark.parametrize("module", [grpo, rloo])
def test_an_episode_whose_group_was_given_up_is_dropped_and_counted(tmp_path, monkeypatch, module):
    known = MappingProxyType({**registry.specs(), Brittle.SPEC.id: Brittle.SPEC})
    monkeypatch.setattr(registry, "specs", lambda: known)
    Brittle.opened.clear()
    args = module.Args(warmup=0, steps=1, instances=20, group=2, drop_flat=False, evaluate=2, autocast=False)
    loop.run(module.recipe(args), chain_policy(), task=Brittle.SPEC.id, folder=tmp_path / "run", quiet=True)
    (step,) = [row for row in read_metrics(tmp_path / "run") if row["stage"] == "rl"]
    assert (step["episodes"], step["abandoned"], step["dropped"]) == (39, 1, 1)
    assert step["trained_tokens"] > 0


def test_an_episode_in_two_rows_has_one_return_and_seats_have_their_own_statistics():
    batch = make_batch(
        [[0, 1, 1], [0, 1, 0], [0, 1, 1], [0, 0, 1], [0, 1, 1]],
        episode=[0, 0, 1, 2, 3],
        seat=[0, 0, 0, 1, 1],
        reward=torch.tensor([[0, 0, 0.5], [0, 0.5, 0], [0, 0, 0], [0, 0, 7.0], [0, 0, 7.0]]),
    )
    expected = [[0, 1, 1], [0, 1, 0], [0, -1, -1], [0, 0, 0], [0, 0, 0]]
    assert rloo.credit(batch).tolist() == expected


def test_a_flat_group_gets_exactly_zero_and_masked_episodes_count_in_the_baseline_of_the_others():
    batch = make_batch([[0, 1]] * 3, reward=torch.full((3, 2), 0.1) * torch.tensor([0.0, 1.0]))
    assert rloo.credit(batch).tolist() == [[0, 0]] * 3
    batch = make_batch([[0, 1]] * 3, reward=torch.tensor([[0, 3.0], [0, 0], [0, 0]]))
    batch = masked(replace(batch, advantage=rloo.credit(batch)), torch.tensor([[True] * 2, [False] * 2, [False] * 2]))
    assert batch.advantage[1:, 1].tolist() == [-1.5, -1.5]
    assert not batch.weight[0].any()


def test_one_update_is_the_policy_gradient_and_several_clip_a_ratio():
    (single,) = rloo.terms(rloo.Args())
    (several,) = rloo.terms(rloo.Args(minibatches=2))
    assert single.loss is rloo.reinforce
    assert (single.aggregation, several.aggregation) == ("seq_sum", "seq_sum")
    assert several.together is rloo.whole_episodes


def test_a_mean_of_ratios_of_turns_counts_each_turn_once():
    turns = torch.tensor([[-1, 0, 0, -1, 1], [-1, 0, -1, 1, 1]])
    batch = make_batch((turns >= 0).tolist(), turn=turns)
    (term,) = ppo.terms(ppo.Shared(level="turn", ratio="turn"))
    assert term.tokens(batch).nonzero().tolist() == [[0, 1], [0, 4], [1, 1], [1, 3]]


def test_a_ratio_of_turns_needs_an_advantage_of_turns():
    with pytest.raises(RecipeError, match="level=turn"):
        ppo.recipe(ppo.Args(ratio="turn"))
