"""IGPO: gains telescope, an answer that is written gains nothing, and a turn that helps is reinforced."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pytest
import torch

from lmgym.baselines.recipes import igpo
from lmgym.policy.local.policy import LocalPolicy
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.math import aggregation
from lmgym.train.parts.losses import surrogate
from lmgym.train.parts.rewards import information_gain
from lmgym.train.schedule import StageProgress
from lmgym.types import Completion
from tests.train.batches import make_batch
from tests.train.chain import chain_policy
from tests.train.test_parts import EPISODE, TURN

HERE = StageProgress(0, 0.0)


class Scorer:
    """Services whose policy finds the answer likelier the more tokens it has seen: P = 1 - 1 / tokens."""

    def __init__(self) -> None:
        self.policy: LocalPolicy = chain_policy()

    def likelihoods(self, rows):
        return [torch.full((len(answer),), math.log(1 - 1 / len(prompt))) for prompt, answer in rows]


def turn(text: str, *, tokens: int):
    completion = Completion(text=text, prompt_ids=(1,) * (tokens - 1), ids=(2,), fresh=False)
    return replace(TURN, completion=completion, action=text)


def played(*texts: str):
    turns = tuple(turn(text, tokens=4) for text in texts)
    turns = (*turns[:-1], replace(turns[-1], reward=1.0))
    return replace(EPISODE, turns=turns, info={"answer": "c | d", "score": 1.0})


def test_the_gains_of_an_episode_telescope_to_the_last_probability():
    (gained,) = information_gain([played("a", "b", "a")], Scorer(), HERE, prefix="")
    rewards = [each.reward for each in gained.turns]
    seen = [3, 7, 11]  # tokens before each answer: three new ones, and the four of every turn before
    assert sum(rewards[:-1]) == pytest.approx((1 - 1 / seen[-1]) - (1 - 1 / seen[0]))
    assert rewards[0] == pytest.approx(1 / 3 - 1 / 7)
    assert rewards[-1] == 1.0
    assert [each.terms for each in gained.turns] == [{"gain": reward} for reward in rewards]


def test_a_turn_that_writes_the_answer_gains_nothing_and_short_episodes_keep_their_return():
    (gained,) = information_gain([played("it is D", "b", "a")], Scorer(), HERE, prefix="")
    assert [each.reward == 0 for each in gained.turns] == [True, False, False]
    (gained,) = information_gain([played("click[D]", "click[cd]", "a")], Scorer(), HERE, prefix="")
    assert [each.reward == 0 for each in gained.turns] == [True, False, False]  # an option, and a word that has it
    costly = tuple(replace(each, reward=-1.0) for each in played("a", "b", "a").turns)
    (gained,) = information_gain([replace(played("a", "b", "a"), turns=costly)], Scorer(), HERE, prefix="")
    assert gained.turns[-1].reward == 1.0
    one, none = information_gain(
        [played("a"), replace(EPISODE, info={"answer": "c", "score": 0.0})], Scorer(), HERE, prefix=""
    )
    assert [each.reward for each in one.turns] == [1.0]
    assert none.turns == ()


@dataclass
class Recorder:
    """Services whose policy gives each token of an answer another probability, by the length of the prompt."""

    policy: LocalPolicy = field(default_factory=chain_policy)
    prompts: list[list[int]] = field(default_factory=list)

    def likelihoods(self, rows):
        self.prompts += [list(prompt) for prompt, _ in rows]
        return [torch.log(torch.tensor(chances(len(prompt), len(answer)))) for prompt, answer in rows]


def chances(prompt: int, answer: int) -> list[float]:
    return [1 / (2 + (prompt + 3 * n) % 5) for n in range(answer)]


def test_gains_and_credit_are_those_of_numpy():
    services = Recorder()
    words = services.policy.template.vocabulary.words
    episodes = [replace(played("a", "b", "a"), id="e0"), replace(played("b", "a"), id="e1")]
    found = information_gain(episodes, services, HERE, prefix="a b")
    lead, answer = len(words("a b")), len(words("c | d"))
    assert all(prompt[-lead:] == list(words("a b")) for prompt in services.prompts)
    likely = {seen: np.prod(chances(seen + lead, answer)) ** (1 / answer) for seen in (3, 7, 11)}
    gains = [[likely[7] - likely[3], likely[11] - likely[7], 1.0], [likely[7] - likely[3], 1.0]]
    assert [[turn.reward for turn in each.turns] for each in found] == [pytest.approx(row) for row in gains]
    everything = np.concatenate(gains)
    normal = [(np.array(row) - everything.mean()) / (everything.std(ddof=1) + 1e-6) for row in gains]
    to_go = [[sum(0.5 ** (k - h) * row[k] for k in range(h, len(row))) for h in range(len(row))] for row in normal]
    reward = torch.zeros(2, 6)
    reward[0, 1::2], reward[1, 1:5:2] = torch.tensor(gains[0]), torch.tensor(gains[1])
    turn = torch.tensor([[-1, 0, -1, 1, -1, 2], [-1, 0, -1, 1, -1, -1]])
    advantage = igpo.credit(make_batch((turn >= 0).tolist(), turn=turn, reward=reward), gamma=0.5)
    assert advantage[0, 1::2].tolist() == pytest.approx(to_go[0], abs=1e-5)
    assert advantage[1, 1:5:2].tolist() == pytest.approx(to_go[1], abs=1e-5)


def step(loss_of, reward, steps: int = 60) -> float:
    """The probability that the first turn takes token 1 after training on the rewards of turns, from one half."""
    logits = torch.zeros(2, requires_grad=True)
    ids = torch.tensor([[0, 1, 0, 1], [0, 0, 0, 1]])
    batch = make_batch([[0, 1, 0, 1]] * 2, ids=ids, turn=[[-1, 0, -1, 1]] * 2, reward=reward)
    batch = replace(batch, advantage=igpo.credit(batch, gamma=1.0))
    for _ in range(steps):
        logprobs = torch.log_softmax(logits, -1)[ids] * torch.tensor([[0, 1, 0, 0]])
        losses, _ = loss_of(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros(2, 4)))
        (losses * batch.mask * aggregation(batch.mask, batch.episode, "seq_sum")).sum().backward()
        with torch.no_grad():
            logits -= 0.5 * logits.grad
            logits.grad.zero_()
    return float(torch.softmax(logits.detach(), -1)[1])


def test_a_turn_that_makes_the_answer_likelier_is_reinforced_and_not_the_other_way():
    reward = torch.tensor([[0, 0.4, 0, 0.0], [0, -0.2, 0, 0.0]])  # neither wins: GRPO would learn nothing
    clip = partial(surrogate, low=1e9, high=1e9)

    def turned(scored):
        tokens, figures = clip(scored)
        return -tokens, figures

    assert step(clip, reward) > 0.8
    assert step(turned, reward) < 0.2
