from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.errors import RecipeError
from lmgym.evaluation.runner import size_of
from lmgym.policy.base import Conversation
from lmgym.policy.scripted import hinted
from lmgym.rollout.context import Full, MarkovState, Stub, Summarise, Window, views
from lmgym.rollout.engine import Engine
from lmgym.rollout.segments import segments
from lmgym.train import source
from lmgym.train.batch import masked, with_observations
from lmgym.train.collate import check, collate, turns_out
from lmgym.train.parts.filters import mask_stumbles
from lmgym.train.parts.planners import Stumble
from lmgym.train.parts.tasks import Uniform
from lmgym.train.state import InstancePool
from tests.train.chain import SPEC, chain_policy

POOL = InstancePool(task=SPEC.id, size=1000)


def played(engine: Engine, *, tries: int = 2, instances: int = 4):
    policy = chain_policy()
    return policy, source.played(engine, policy, Uniform(instances, tries=tries).draw(0, POOL))


def test_tokens_are_trained_once_and_a_breach_of_the_invariants_is_noticed():
    _, episodes = played(Engine())
    paid = [replace(e, turns=tuple(replace(t, reward=0.5 + n) for n, t in enumerate(e.turns))) for e in episodes]
    batch = collate(paid)
    for row, episode in enumerate(paid):
        ids = [i for turn in episode.turns for i in turn.completion.ids]
        assert batch.ids[row][batch.mask[row]].tolist() == ids
        assert batch.logprobs[row][batch.mask[row]].tolist() == pytest.approx(
            [x for turn in episode.turns for x in turn.completion.logprobs]
        )
        for number, turn in enumerate(episode.turns):
            own = (batch.turn[row] == number).nonzero()[:, 0]
            assert batch.reward[row, own].tolist() == [0.0] * (len(own) - 1) + [turn.reward]
    assert batch.returns().tolist() == pytest.approx([e.reward for e in paid])
    assert batch.group[batch.first_rows()].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    batch = collate(episodes)
    with pytest.raises(AssertionError, match="of its"):
        check(replace(batch, mask=batch.mask & (batch.turn != 0)), episodes, "sampled")
    with pytest.raises(AssertionError, match="padded"):
        check(replace(batch, attention=batch.attention & False), episodes, "sampled")
    with pytest.raises(AssertionError, match="terminated and truncated"):
        check(batch, [replace(e, terminated=True, truncated=True) for e in episodes], "sampled")
    with pytest.raises(RecipeError, match="nothing to train on"):
        collate([replace(e, turns=()) for e in episodes])


@pytest.mark.parametrize("context", [Full(), Window(turns=2)], ids=["full", "window"])
def test_the_tokens_of_an_answer_that_was_no_action_are_known(context):
    _, episodes = played(Engine(context=context))
    wrong = {(e.id, n) for e in episodes for n in range(len(e.turns)) if (len(e.id) + n) % 3 == 0}
    told = [
        replace(e, turns=tuple(replace(t, info={"valid": (e.id, n) not in wrong}) for n, t in enumerate(e.turns)))
        for e in episodes
    ]
    batch = collate(told)
    assert batch.invalid.any()
    assert torch.equal(batch.invalid, turns_out(batch, told, frozenset(wrong)))


def test_scoring_a_batch_gives_the_log_probs_as_sampled():
    policy, episodes = played(Engine())
    batch = collate(episodes)
    logprobs, entropy = policy.score(batch.ids, batch.attention, mask=batch.mask)
    assert (logprobs - batch.logprobs).abs().max() < 1e-4
    assert (entropy - batch.entropy)[batch.mask].abs().max() < 1e-4


def test_an_episode_of_several_segments_has_a_row_for_each():
    _, episodes = played(Engine(context=Window(turns=2)))
    batch = collate(episodes)
    assert len(batch) > len(episodes)
    assert int(batch.mask.sum()) == sum(len(t.completion.ids) for e in episodes for t in e.turns)
    first = batch.first_rows()
    assert batch.episode[first].tolist() == list(range(len(episodes)))
    assert batch.segment[first].tolist() == [0] * len(episodes)


def test_the_reward_of_a_turn_without_tokens_is_not_lost():
    _, (episode, *_) = played(Engine())
    silent = replace(episode.turns[2], completion=replace(episode.turns[2].completion, ids=(), logprobs=(), entropy=()))
    turns = list(episode.turns)
    turns[2] = silent
    turns = [replace(turn, reward=float(n)) for n, turn in enumerate(turns)]
    batch = collate([replace(episode, turns=tuple(turns))])
    assert float(batch.reward.sum()) == sum(range(len(turns)))
    at = (batch.turn[0] == 1).nonzero()[-1]
    assert batch.reward[0, at].tolist() == [3.0]  # its own 1 and the silent turn's 2


def test_demonstrations_get_ids_and_the_stumbles_in_them_are_shown_but_not_trained():
    policy = chain_policy()
    engine = Engine(planner=Stumble(0.4))
    episodes = source.demonstrated(engine, policy, Uniform(16).draw(0, POOL))
    stumbles = {(e.id, n) for e in episodes for n, turn in enumerate(e.turns) if turn.info.get("stumble")}
    share = len(stumbles) / sum(len(e.turns) for e in episodes)
    assert 0.2 < share < 0.6
    batch = collate(episodes, trained="given")
    out = turns_out(batch, episodes, mask_stumbles(episodes).mask)
    kept = masked(batch, out)
    words = sum(len(turn.completion.ids) for e in episodes for turn in e.turns if turn.info.get("stumble"))
    assert int(out.sum()) == words
    assert int(batch.mask.sum() - kept.mask.sum()) == int(out.sum())
    assert torch.equal(kept.ids, batch.ids)
    assert not kept.weight[out].any()
    again = source.demonstrated(engine, policy, Uniform(16).draw(0, POOL))
    assert again == episodes


def test_observations_weigh_what_is_asked_on_average_and_are_not_counted():
    policy = chain_policy()
    batch = collate(source.demonstrated(Engine(), policy, Uniform(30).draw(0, POOL)), trained="given")
    observed = batch.attention & (batch.turn < 0)
    observed[:, 0] = False
    weighed = with_observations(batch, 0.3)
    assert torch.equal(weighed.mask, batch.mask)
    assert float(weighed.weight[observed].mean()) == pytest.approx(0.3, rel=0.1)
    assert torch.equal(weighed.weight[batch.mask], batch.weight[batch.mask])
    assert not weighed.weight[:, 0].any()
    assert not weighed.weight[~batch.attention].any()


def test_a_demonstrator_recovers_from_a_stumble():
    episodes = source.played(Engine(planner=Stumble(0.2)), hinted("demonstrator"), Uniform(32).draw(0, POOL))
    stumbled = [e for e in episodes if any(turn.info.get("stumble") for turn in e.turns) and e.success]
    assert stumbled


def test_uniform_tasks_show_every_instance_once_a_lap():
    pool = InstancePool(task=SPEC.id, size=10, seed=3)
    laps = [
        [job.index for step in range(lap * 5, lap * 5 + 5) for job in Uniform(2).draw(step, pool)] for lap in (0, 1)
    ]
    assert sorted(laps[0]) == sorted(laps[1]) == list(range(10))
    assert laps[0] != laps[1]
    assert Uniform(2).draw(3, pool) == Uniform(2).draw(3, pool)


def test_the_tries_of_a_group_share_their_seed_and_differ_in_their_attempt():
    jobs = Uniform(2, tries=3).draw(4, POOL)
    for group in (jobs[:3], jobs[3:]):
        assert len({(job.group, job.index, job.seed) for job in group}) == 1
        assert [job.attempt for job in group] == [0, 1, 2]
    assert len({job.id for job in (*jobs, *Uniform(2, tries=3).draw(5, POOL))}) == 12


def test_sizes_come_from_the_environment():
    assert size_of("guess_number", "test", {}) == 1000


@pytest.mark.parametrize("context", [MarkovState(), MarkovState(task=False), Window(1), Window(1, stride=2), Stub()])
def test_imitated_words_follow_what_the_context_shows(context):
    policy = chain_policy()
    with Engine(context=context) as engine:
        episodes = source.demonstrated(engine, policy, Uniform(6).draw(0, POOL))
    for episode in episodes:
        seen = views(context, episode, policy.count)
        for turn, messages in zip(episode.turns, seen, strict=False):
            whole = policy.prompt(Conversation(messages=tuple(messages)))[0]
            assert before(episode, turn) == whole
            assert turn.completion.ids == tuple(
                policy.template.answer(turn.completion.text, turn.completion.prompt_ids)
            )
    batch = collate(episodes, trained="given")
    assert int(batch.mask.sum()) == sum(len(turn.completion.ids) for episode in episodes for turn in episode.turns)
    assert len(batch) > len(episodes)  # what the view leaves out makes rows of their own


def before(episode, turn) -> list[int]:
    """The ids that the answer of a turn follows in its row."""
    (row,) = (row for row in segments(episode) if turn in episode.turns[row.start : row.stop])
    place = row.turn.index(episode.turns.index(turn))
    return list(row.ids[:place])


def test_a_demonstration_ends_where_a_summary_would_be_asked_for_or_its_view_is_too_long():
    policy = chain_policy()
    with Engine(context=Summarise(limit=12)) as engine:
        episodes = source.demonstrated(engine, policy, Uniform(2).draw(0, POOL))
    longest = max(policy.count(list(messages)) for e in episodes for messages in views(Full(), e, policy.count)[:-1])
    assert longest <= 12
    assert [len(episode.turns) for episode in episodes] == [2, 2]
    policy = chain_policy()
    policy.context = 12
    jobs = Uniform(2).draw(0, POOL)
    with pytest.raises(RecipeError, match="fits into the 12 tokens"), Engine() as engine:
        source.demonstrated(engine, policy, jobs)
    with Engine(context=MarkovState(task=False)) as engine:
        assert len(source.demonstrated(engine, policy, jobs)) == 2
