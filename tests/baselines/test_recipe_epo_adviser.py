"""EPO's adviser: its words reach the agent, both earn, a judge marks turns, and the adviser alone is trained."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch

from lmgym.baselines import bc
from lmgym.baselines.recipes import epo_adviser
from lmgym.env.registry import build
from lmgym.policy.scripted import Scripted, hinted
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.rollout.episodes import read
from lmgym.tasks.alfworld.advised import changes, strategy
from lmgym.train import checkpoint, curve, loop
from lmgym.train.interfaces import ScoredBatch
from lmgym.train.log import read_metrics
from lmgym.train.math import aggregation
from lmgym.train.parts.losses import reinforce
from lmgym.train.parts.rewards import critical_turns
from lmgym.train.schedule import StageProgress
from lmgym.types import FIRST_SEAT, Job
from tests.train.batches import make_batch
from tests.train.victim import toy_policy

TASK = "lmgym/ALFWorldAdvised-v0"
HERE = StageProgress(0, 0.0)
JUDGE = epo_adviser.Args().judge


class Judge:
    """Services that ask the function of the recipe's judge."""

    def judge(self, texts, *, model):
        assert model == JUDGE
        return [changes([{"role": "user", "content": text}]) for text in texts]


def played(index: int, adviser: Scripted | None = None):
    """An episode of the oracle, as the agent and the adviser saw it."""
    seats = {"adviser": SeatConfig(policy=adviser or hinted("oracle"))}
    return list(Engine(seats=seats).run(hinted("oracle"), [Job(task=TASK, split="train", index=index, id=f"e{index}")]))


def test_the_agent_reads_the_strategy_and_both_earn():
    agent, adviser = played(0, Scripted("fixed", lambda _: "go\n home"))
    assert [turn.observation.text.endswith("\nStrategy: go home") for turn in agent.turns] == [True] * len(agent.turns)
    assert [turn.observation.text.partition("\n")[0] for turn in adviser.turns[1:]] == [
        f"> {turn.action}" for turn in agent.turns[:-1]
    ]
    assert agent.reward == adviser.reward == 1.0
    assert agent.success
    assert adviser.prompt.startswith("You advise a player")


def test_the_scripted_adviser_names_the_demonstrators_next_command_without_its_particulars():
    env = build(TASK)
    env.reset(options={"index": 3})
    task = env.unwrapped
    for command in task.demonstrator():
        assert task.latest_text.endswith(f"\nStrategy: {strategy(command)}")
        *_, done, _, info = env.step(command)
        if done:
            break
    assert info["success"]
    assert strategy("take apple 1 from fridge 1") == "take apple"


def test_strategies_after_which_a_thing_was_moved_or_treated_are_critical():
    agent, adviser = played(2)
    kept, marked = critical_turns([agent, adviser], Judge(), HERE, seat="adviser", judge=JUDGE)
    assert kept is agent
    expected = [float(turn.action.split()[0] not in ("go", "open", "close", "look")) for turn in agent.turns]
    expected[-1] = adviser.reward / 10
    assert 1.0 in expected
    assert [turn.reward for turn in marked.turns] == expected
    (lost,) = critical_turns([replace(adviser, turns=adviser.turns[:-1])], Judge(), HERE, seat="adviser", judge=JUDGE)
    assert not any(turn.reward for turn in lost.turns)


def test_the_ablation_rewards_as_many_turns_elsewhere():
    episodes = [played(index)[1] for index in range(6)]
    mark = partial(critical_turns, episodes, Judge(), HERE, seat="adviser", judge=JUDGE)
    judged, drawn, again = mark(), mark(chosen="random"), mark(chosen="random")
    assert drawn == again
    places = [[{n for n, t in enumerate(e.turns[:-1]) if t.reward} for e in kind] for kind in (judged, drawn)]
    assert places[0] != places[1]
    assert all(abs(len(a) - len(b)) <= 1 for a, b in zip(*places, strict=True))  # the last turn keeps the outcome


TURN = torch.tensor([[-1, 0, 0, -1, 1], [-1, 0, -1, 1, 1]])
REWARD = torch.tensor([[0, 0.0, 0.0, 0, 0.1], [0, 1.0, 0, 0.0, 0.1]])


def test_the_credit_is_that_of_plain_loops():
    batch = make_batch((TURN >= 0).tolist(), turn=TURN, reward=REWARD)
    found = epo_adviser.recipe(epo_adviser.Args()).credit(batch)
    most = 1 + 0.99 * 0.1
    to_go = [[0.99 * 0.1 / most, 0.1 / most], [1.0, 0.1 / most]]
    for row, column in batch.mask.nonzero().tolist():
        turn = int(TURN[row, column])
        tokens = int((TURN[row] == turn).sum())
        of_episode = int(batch.mask[row].sum())
        assert float(found[row, column]) == pytest.approx(to_go[row][turn] / tokens * of_episode / 2)


@pytest.mark.parametrize(("sign", "higher"), [(1, True), (-1, False)])
def test_a_critical_strategy_becomes_likelier_unless_the_sign_is_flipped(sign, higher):
    logits, ids = torch.zeros(2, requires_grad=True), torch.tensor([[0, 1, 1, 0, 0], [0, 1, 0, 0, 0]])
    batch = make_batch((TURN >= 0).tolist(), turn=TURN, reward=REWARD, ids=ids)
    batch = replace(batch, advantage=epo_adviser.recipe(epo_adviser.Args()).credit(batch))
    for _ in range(30):
        logprobs = torch.log_softmax(logits, -1)[ids]
        losses, _ = reinforce(ScoredBatch(batch=batch, logprobs=logprobs, entropy=torch.zeros(2, 5)))
        (sign * losses * batch.mask * aggregation(batch.mask, batch.episode, "seq_mean")).sum().backward()
        with torch.no_grad():
            logits -= 0.5 * logits.grad
            logits.grad.zero_()
    assert (float(torch.softmax(logits.detach(), -1)[1]) > 0.5) is higher


def test_the_adviser_alone_is_trained_and_imitation_includes_it(tmp_path, monkeypatch):
    monkeypatch.setattr(curve, "draw", lambda folder: folder)
    args = epo_adviser.Args(warmup=1, warmup_episodes=2, evaluate=1, steps=1, instances=2, epochs=1, autocast=False)
    recipe = replace(epo_adviser.recipe(args), max_tokens=4)
    more = {"options": {"max_turns": 2}, "train_instances": 4, "keep_episodes": [0, 1], "quiet": True}
    loop.run(recipe, toy_policy(), task=TASK, folder=tmp_path, **more)
    imitated, fresh = (list(read(tmp_path / "episodes" / f"{step:06d}.jsonl")) for step in (0, 1))
    assert [episode.seat for episode in imitated] == ["agent", "adviser"] * 2
    assert not any("trained" in episode.tags for episode in imitated)
    assert {(e.seat, e.tags.get("trained", True)) for e in fresh} == {("agent", False), ("adviser", True)}
    (row,) = (row for row in read_metrics(tmp_path) if row["stage"] == "rl")
    tokens = [len(turn.completion.ids) for e in fresh if e.seat == "adviser" for turn in e.turns]
    assert row["trained_tokens"] == sum(tokens)


def test_the_agent_is_the_imitated_policy_also_where_imitation_is_evaluated_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr(curve, "draw", lambda folder: folder)
    args = epo_adviser.Args(warmup=2, warmup_episodes=2, evaluate=1, steps=0, autocast=False)
    recipe = replace(epo_adviser.recipe(args), max_tokens=4)
    more = {"options": {"max_turns": 2}, "train_instances": 4, "evaluate_every": 1, "quiet": True}
    loop.run(recipe, toy_policy(), task=TASK, folder=tmp_path, **more)
    state = checkpoint.load(tmp_path / "checkpoints")
    frozen, imitated = state["learner"]["seats"]["start"][FIRST_SEAT], state["model"]
    assert all(torch.equal(frozen[name], weight) for name, weight in imitated.items())


def test_imitation_alone_can_include_the_adviser():
    recipe = bc.recipe(bc.Args(seats="adviser"))
    assert recipe.seats["adviser"].imitated
    assert recipe.stages[-1].others == "seats"
    assert not bc.recipe(bc.Args()).seats
