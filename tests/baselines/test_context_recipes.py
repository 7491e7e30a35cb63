"""SUPO, WebAgent-R1 and MGPO: what their contexts show, which tokens are trained, and with what weight."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lmgym.baselines.recipes import mgpo, supo, webagent_r1
from lmgym.errors import RecipeError
from lmgym.evaluation import report as reports
from lmgym.evaluation.runner import Report
from lmgym.policy.local.score import score
from lmgym.rollout.context import Stub
from lmgym.rollout.engine import Engine
from lmgym.train.collate import collate, turns_out
from lmgym.train.math import aggregation
from lmgym.train.parts.filters import mask_truncated
from lmgym.train.parts.tasks import Uniform
from lmgym.train.parts.turns import by_turn
from lmgym.train.preflight import check
from lmgym.train.state import InstancePool
from tests.command import command
from tests.train.batches import make_batch
from tests.train.chain import SPEC, chain_policy

pytestmark = pytest.mark.usefixtures("chain")


def play(context):
    jobs = Uniform(4, tries=3).draw(0, InstancePool(task=SPEC.id, size=1000, stage="rl"))
    policy = chain_policy()
    return policy, list(Engine(context=context).run(policy, jobs))


def rescored(policy, batch):
    """Log-probs (B, T) of the trained tokens under the weights that sampled them."""
    return score(policy.model, batch.ids, batch.attention, mask=batch.weight != 0)[0]


def test_summaries_are_trained_once_and_an_advantage_is_that_of_the_episode_in_all_its_segments():
    policy, episodes = play(supo.recipe(supo.Args(limit=12, most=2)).context)
    summaries = [turn for each in episodes for turn in each.turns if turn.kind == "summary"]
    assert len(summaries) > len(episodes)
    assert max(sum(turn.kind == "summary" for turn in each.turns) for each in episodes) == 2
    batch = collate(episodes)
    assert len(batch) > 2 * len(episodes)  # a row for each context
    assert int(batch.mask.sum()) == sum(len(turn.completion.ids) for each in episodes for turn in each.turns)
    assert (rescored(policy, batch) - batch.logprobs)[batch.mask].abs().max() < 1e-4  # under the context it was in
    batch.reward[:] = 0
    ends = {int(e): i for i, e in enumerate(batch.episode)}  # last row of each episode
    won = {int(group): int(number) for group, number in zip(batch.group, batch.episode, strict=True)}.values()
    for number in won:
        row = ends[number]
        batch.reward[row, batch.mask[row].nonzero()[-1]] = 1.0
    advantage = supo.recipe(supo.Args()).credit(batch)
    # one of three wins: (1 - 1/3) / sqrt(1/3) and (0 - 1/3) / sqrt(1/3), however many segments each has
    for row, number in enumerate(batch.episode.tolist()):
        expected = 2 / 3**0.5 if number in won else -1 / 3**0.5
        assert advantage[row][batch.mask[row]].numpy() == pytest.approx(expected, abs=1e-5)


def test_the_ablation_trains_actions_alone_and_both_mask_what_was_cut():
    fixed, trained = (supo.recipe(supo.Args(summaries=kind)).filter for kind in ("fixed", "trained"))
    assert mask_truncated in fixed
    assert mask_truncated in trained
    assert [each for each in fixed if each not in trained] == [supo.mask_summaries]
    _, episodes = play(supo.recipe(supo.Args(limit=12)).context)
    batch = collate(episodes)
    out = turns_out(batch, episodes, supo.mask_summaries(episodes).mask)
    sampled = sum(len(t.completion.ids) for each in episodes for t in each.turns if t.kind == "summary")
    assert int((batch.mask & out).sum()) == sampled > 0


def test_old_pages_are_stubs_and_each_answer_is_scored_as_it_was_sampled():
    context = webagent_r1.recipe(webagent_r1.Args()).context
    assert context == Stub(1, text="[An earlier observation is left out.]")
    policy, episodes = play(context)
    batch = collate(episodes)
    assert (rescored(policy, batch) - batch.logprobs)[batch.mask].abs().max() < 1e-4


def test_the_loss_is_a_mean_over_turns_of_means_over_tokens():
    # two episodes; turns of 1 and 3 tokens in rows of their own, and one turn of 2 tokens
    turn = torch.tensor([[-1, 0, -1, -1], [-1, 1, 1, 1], [-1, 0, 0, -1]])
    values = torch.tensor([[0, 2.0, 0, 0], [0, 1.0, 5.0, 3.0], [0, 4.0, 8.0, 0]])
    batch = make_batch((turn >= 0).tolist(), turn=turn, episode=[0, 0, 1], segment=[0, 1, 0])
    weighted = by_turn(batch, credit=lambda _: values)
    loss = float((weighted * aggregation(batch.mask, batch.episode, "seq_mean")).sum())
    expected = np.mean([np.mean([2.0, np.mean([1.0, 5.0, 3.0])]), np.mean([4.0, 8.0])])
    assert loss == pytest.approx(expected)


def test_mgpo_refuses_a_task_without_pictures_and_its_ablation_trains_the_answer_alone(tmp_path):
    with pytest.raises(RecipeError, match="Chain-v0 shows no pictures, and this recipe learns where to look"):
        check(mgpo.recipe(mgpo.Args()), SPEC.id, {}, tmp_path)
    _, episodes = play(mgpo.recipe(mgpo.Args()).context or Engine().context)
    batch = collate(episodes)
    kept = batch.mask & ~turns_out(batch, episodes, mgpo.mask_boxes(episodes).mask)
    assert torch.equal(kept, batch.mask & (batch.turn > 0))
    assert mgpo.mask_boxes not in mgpo.recipe(mgpo.Args()).filter


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        (("supo", "guess_number", "--limit", "60", "--most", "2"), "summarise:60:2"),
        (("grpo", "guess_number", "--context", "window:2"), "window:2"),
    ],
)
def test_the_line_that_a_run_ends_with_plays_its_last_evaluation_again(tmp_path, monkeypatch, capfd, words, rule):
    monkeypatch.chdir(tmp_path)
    few = ("--warmup", "2", "--warmup-episodes", "8", "--steps", "1", "--instances", "2", "--group", "2")
    args = ("--model", "tiny:1m", "--dtype", "float32", "--threads", "1", "--evaluate", "8", "--out", "run", *few)
    assert command("train", *words, *args) == 0
    (line,) = [line for line in capfd.readouterr().out.splitlines() if line.startswith("next:")]
    assert f" --context {rule} " in line
    assert command(*line.split()[2:], "--episodes", "8", "--out", "again") == 0
    last = Report.from_state(json.loads(Path("run/reports.json").read_text())["after RL"])
    again = [(one.index, one.success, one.turns, one.tokens_out) for one in reports.read(Path("again")).outcomes]
    assert again == [(one.index, one.success, one.turns, one.tokens_out) for one in last.outcomes]
