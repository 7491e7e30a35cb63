"""Ids scored again: whose words they are, as far as a model can tell."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import SimpleNamespace

import msgspec
import numpy as np
import pytest
import torch

from lmgym.board import submit
from lmgym.board.audit import audit
from lmgym.board.entry import Entry, PolicyRecord, RecordedEpisode, RecordedTurn
from lmgym.board.evidence import HALF, check_draws
from lmgym.errors import SubmissionError
from lmgym.evaluation.protocol import protocol
from lmgym.policy.load import load_local, load_policy
from lmgym.policy.local.audit import Auditor, parameters, weights_digest
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.local.sampling import Sampling
from lmgym.rollout.context import Window
from lmgym.rollout.engine import Engine
from lmgym.rollout.segments import segments
from lmgym.types import Trajectory
from tests.board.forge import signature
from tests.policy import models

LIMIT = 6  # tokens of an answer


@pytest.fixture(scope="module")
def tiny() -> LocalPolicy:
    """The embedded model, less uniform than it is born: its logits are stretched."""
    policy = load_local("tiny", seed=3, sampling=Sampling(max_tokens=LIMIT))
    with torch.no_grad():
        policy.model.get_input_embeddings().weight.mul_(4.0)
    policy.update()
    return policy


RULES = replace(protocol("guess_number"), instances=10)


@pytest.fixture(autouse=True)
def ten_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the protocol have ten episodes."""
    monkeypatch.setattr(submit, "protocol", lambda task: RULES)


@pytest.fixture(scope="module")
def own(tiny: LocalPolicy) -> list[Trajectory]:
    """Trajectories that the policy sampled at temperature 1."""
    return sorted(sampled(tiny), key=lambda each: each.index or 0)


def scorer(policy: LocalPolicy, temperature: float = 1.0, **sampling: float) -> Auditor:
    return Auditor(policy, temperature=temperature, **{"top_p": 1.0, "top_k": 0, **sampling})


def sampled(policy: LocalPolicy, engine: Engine | None = None, **sampling: float) -> list[Trajectory]:
    drawn = LocalPolicy(policy.model, policy.tokenizer, name="tiny", sampling=Sampling(max_tokens=LIMIT, **sampling))
    return list((engine or Engine()).run(drawn, RULES.jobs()))


def entry_of(trajectories: Sequence[Trajectory], **settings: object) -> tuple[Entry, list[RecordedEpisode]]:
    given = {"temperature": 1.0, "max_tokens": LIMIT, **settings}
    return submit.build(trajectories, signature(policy=PolicyRecord(name="tiny", kind="model"), settings=given))


def change(episodes: list[RecordedEpisode], edit: Callable[[RecordedTurn], RecordedTurn]) -> list[RecordedEpisode]:
    """Edit the second turn of the first episode."""
    first, second, *rest = episodes[0].turns
    return [msgspec.structs.replace(episodes[0], turns=(first, edit(second), *rest)), *episodes[1:]]


def test_a_policys_own_ids_are_its_own(tiny: LocalPolicy, own: list[Trajectory]) -> None:
    entry, episodes = entry_of(own)
    result = audit(entry, episodes, scorer(tiny), RULES)
    assert result["tokens"] == sum(len(ply.ids) for each in episodes for ply in each.turns) > 300
    assert abs(result["z"]) < 4
    assert result["drawn"] == 1.0


def test_another_try_than_the_protocols_is_seen(tiny: LocalPolicy) -> None:
    """The board has a single seed, so that the best of many cannot be submitted."""
    with pytest.raises(SubmissionError, match="the board's noise draws .*, and too few in 10 of 10 episodes"):
        audit(*entry_of(sampled(tiny, seed=5)), scorer(tiny), RULES)


def test_an_id_that_the_policy_does_not_know_is_refused(tiny: LocalPolicy, own: list[Trajectory]) -> None:
    entry, episodes = entry_of(own)
    vocabulary = tiny.model.get_input_embeddings().weight.shape[0]
    for strange in (vocabulary, 1 << 24, 10**19):
        forged = change(
            episodes, lambda ply, strange=strange: msgspec.structs.replace(ply, ids=(strange, *ply.ids[1:]))
        )
        with pytest.raises(SubmissionError, match=f"has the token id {strange}; this policy has {vocabulary:,} ids"):
            audit(entry, forged, scorer(tiny), RULES)


def figures_of(*episodes: tuple[int, int]) -> list[SimpleNamespace]:
    """Episodes of so many tokens, of which the noise draws so many."""
    return [SimpleNamespace(drawn=np.repeat([1.0, 0.0], [drawn, count - drawn])) for count, drawn in episodes]


@pytest.mark.parametrize(
    ("foreign", "own", "message"),
    [
        # half the episodes are short and an oracle's, which leaves 96 % or more of all tokens drawn
        *(
            ([(n, 0)] * 20, [(150, 150)] * 20, r"9[6-9]\.\d% of these tokens, and too few in 20 of 40")
            for n in (1, 2, 3, 6)
        ),
        ([(8, 0)], [(30, 30)] * 999, "too few in 1 of 1000 episodes"),
    ],
)
def test_episodes_of_anothers_do_not_hide_among_long_or_many(
    foreign: list[tuple[int, int]], own: list[tuple[int, int]], message: str
) -> None:
    with pytest.raises(SubmissionError, match=message):
        check_draws(figures_of(*foreign, *own), range(len(foreign) + len(own)))


def test_a_few_misses_of_other_hardware_are_none() -> None:
    noise = np.random.default_rng(0)
    for _ in range(200):
        counts = noise.integers(1, 200, size=60)
        own = figures_of(*((int(n), int(n - noise.binomial(n, 0.005))) for n in counts))
        assert check_draws(own, range(60)) > 0.98


def test_half_the_episodes_the_oracles_are_refused_at_the_highest_temperature(tiny: LocalPolicy) -> None:
    """A policy at temperature 2 is surprised by little, so that the protocol's noise must decide."""
    own = sorted(sampled(tiny, temperature=2.0), key=lambda each: each.index or 0)
    foreign = list(Engine().run(load_policy("oracle"), RULES.jobs()[:5]))
    mixed = entry_of([*as_sampled(tiny, foreign, temperature=2.0), *own[5:]], temperature=2.0)
    with pytest.raises(SubmissionError, match="did not sample|too surprising|noise draws"):
        audit(*mixed, scorer(tiny, 2.0), RULES)
    assert audit(*entry_of(own, temperature=2.0), scorer(tiny, 2.0), RULES)["drawn"] == 1.0


@pytest.mark.parametrize("sampling", [{"temperature": 0.7}, {"top_p": 0.8}, {"top_k": 20}])
def test_what_sampling_cut_off_is_taken_into_account(tiny: LocalPolicy, sampling: dict[str, float]) -> None:
    entry, episodes = entry_of(sampled(tiny, **sampling), **sampling)
    assert abs(audit(entry, episodes, scorer(tiny, **sampling), RULES)["z"]) < 4
    with pytest.raises(SubmissionError, match="log-probs are not this policy's"):
        audit(entry, episodes, scorer(tiny), RULES)


@pytest.fixture(scope="module")
def halves() -> list[LocalPolicy]:
    """Two policies with weights in 16 bits, whose logits are far apart."""
    policies = []
    for name, factor in (("tiny", 4.0), ("qwen3", 3.0)):
        model = models.model(name, seed=3)
        with torch.no_grad():
            model.get_input_embeddings().weight.mul_(factor)
        model.to(torch.bfloat16)
        policies.append(LocalPolicy(model, models.tokenizer(name), name="tiny", sampling=Sampling(max_tokens=LIMIT)))
    return policies


@pytest.mark.parametrize("heat", [1.0, 0.7, 0.0])
def test_a_policy_in_16_bits_is_known_by_its_own_ids(halves: list[LocalPolicy], heat: float) -> None:
    """They differ by whole steps of logits where batches are of another make-up; by how much, two audits may tell."""
    for policy in halves:
        entry, episodes = entry_of(sampled(policy, temperature=heat), temperature=heat)
        result = audit(entry, episodes, scorer(policy, heat), RULES, precision=HALF)
        assert result["tolerance"] == HALF.mean
        assert result.get("drawn", 1.0) > 0.99


def test_words_of_others_are_as_foreign_in_16_bits(halves: list[LocalPolicy]) -> None:
    foreign = list(Engine().run(load_policy("demonstrator"), RULES.jobs()))
    for policy in halves:
        with pytest.raises(SubmissionError, match="did not sample|too surprising"):
            audit(*entry_of(as_sampled(policy, foreign)), scorer(policy), RULES, precision=HALF)
        with pytest.raises(SubmissionError, match="and too few in 10 of 10 episodes"):
            audit(*entry_of(sampled(policy, seed=5)), scorer(policy), RULES, precision=HALF)
        with pytest.raises(SubmissionError, match="tokens are not the policy's likeliest, as temperature 0 requires"):
            audit(*entry_of(sampled(policy), temperature=0.0), scorer(policy, 0.0), RULES, precision=HALF)


def lowered(ply: RecordedTurn, nats: float) -> RecordedTurn:
    return msgspec.structs.replace(ply, logprobs=tuple(value - nats for value in ply.logprobs))


def test_log_probs_in_16_bits_agree_on_average(halves: list[LocalPolicy]) -> None:
    entry, episodes = entry_of(sampled(halves[0]))
    for less, message in ((0.05, "on average by 0.05"), (1.5, r"by up to 1\.[4-7]")):
        told = [
            msgspec.structs.replace(each, turns=tuple(lowered(ply, less) for ply in each.turns)) for each in episodes
        ]
        with pytest.raises(SubmissionError, match=f"log-probs are not this policy's: they differ {message}"):
            audit(entry, told, scorer(halves[0]), RULES, precision=HALF)


def as_sampled(policy: LocalPolicy, trajectories: Sequence[Trajectory], temperature: float = 1.0) -> list[Trajectory]:
    """Words of others with the ids and the log-probs that the policy gives them."""
    rescored = []
    for trajectory in (policy.encode(each) for each in trajectories):
        (row,) = segments(trajectory)
        scored = scorer(policy, temperature).rescore([(row.ids, row.given, [0.5] * sum(row.given), ())])[0]
        logprobs, entropy = (list(map(float, column)) for column in (scored.logprobs, scored.entropy))
        turns = []
        for turn in trajectory.turns:
            count = len(turn.completion.ids)
            completion = replace(turn.completion, logprobs=tuple(logprobs[:count]), entropy=tuple(entropy[:count]))
            logprobs, entropy = logprobs[count:], entropy[count:]
            turns.append(replace(turn, completion=completion, kind="act"))
        rescored.append(replace(trajectory, turns=tuple(turns)))
    return rescored


@pytest.mark.parametrize(("player", "count"), [("oracle", 10), ("demonstrator", 10), ("demonstrator", 1)])
def test_anothers_actions_are_caught_even_with_log_probs_computed_anew(
    tiny: LocalPolicy, own: list[Trajectory], player: str, count: int
) -> None:
    forged = as_sampled(tiny, list(Engine().run(load_policy(player), RULES.jobs()[:count])))
    assert all(each.success for each in forged)
    with pytest.raises(SubmissionError, match="did not sample|too surprising"):
        audit(*entry_of([*forged, *own[count:]]), scorer(tiny), RULES)


def test_tokens_at_temperature_0_are_the_likeliest_and_their_log_probs_are_0(
    tiny: LocalPolicy, own: list[Trajectory]
) -> None:
    greedy = scorer(tiny, temperature=0.0)
    entry, episodes = entry_of(sampled(tiny, temperature=0.0), temperature=0.0)
    assert audit(entry, episodes, greedy, RULES)["greedy"] is True
    with pytest.raises(SubmissionError, match="tokens are not the policy's likeliest, as temperature 0 requires"):
        audit(*entry_of(own, temperature=0.0), greedy, RULES)
    assert {value for each in episodes for ply in each.turns for value in (*ply.logprobs, *ply.entropy)} == {0.0}
    forged = change(episodes, lambda ply: msgspec.structs.replace(ply, logprobs=(-9.0,) * len(ply.ids)))
    with pytest.raises(
        SubmissionError, match=r"\d of \d+ log-probs are not 0, as temperature 0 requires; the lowest is -9"
    ):
        audit(entry, forged, greedy, RULES)


def test_greedy_words_under_a_samplers_name_surprise_too_little(tiny: LocalPolicy) -> None:
    greedy = list(sampled(tiny, temperature=0.0))
    bare = [
        replace(each, turns=tuple(replace(t, completion=replace(t.completion, ids=())) for t in each.turns))
        for each in greedy
    ]
    with pytest.raises(SubmissionError, match="did not sample|does not end as this policy ends one"):
        audit(*entry_of(as_sampled(tiny, bare)), scorer(tiny), RULES)


@pytest.mark.parametrize(
    ("edit", "message"),
    [
        (lambda ply: msgspec.structs.replace(ply, logprobs=tuple(x - 0.01 for x in ply.logprobs)), "log-probs are not"),
        (lambda ply: msgspec.structs.replace(ply, prompt=(7, *ply.prompt)), "are not the conversation"),
        (lambda ply: msgspec.structs.replace(ply, fresh=True), "are not the conversation"),
        (
            lambda ply: msgspec.structs.replace(ply, ids=(300,) * LIMIT, logprobs=(-1.0,) * LIMIT, entropy=()),
            "the ids of .* spell|does not end as",
        ),
        (lambda ply: msgspec.structs.replace(ply, ids=(), logprobs=(), entropy=()), "has no token ids to score"),
        (lambda ply: msgspec.structs.replace(ply, finish="context"), "does not end as this policy ends one"),
        (lambda ply: msgspec.structs.replace(ply, finish="filter"), r"does not end as this policy ends one \(filter\)"),
        (lambda ply: msgspec.structs.replace(ply, action="50", words=ply.action), "the action of .* not '50'"),
    ],
    ids=["logprobs", "prompt", "fresh", "ids", "none", "finish", "filter", "action"],
)
def test_forged_ids_are_refused(
    tiny: LocalPolicy,
    own: list[Trajectory],
    edit: Callable[[RecordedTurn], RecordedTurn],
    message: str,
) -> None:
    entry, episodes = entry_of(own)
    with pytest.raises(SubmissionError, match=message):
        audit(entry, change(episodes, edit), scorer(tiny), RULES)


def test_an_answer_does_not_go_on_after_its_end(tiny: LocalPolicy, own: list[Trajectory]) -> None:
    """Or one could choose between what was said and what would have come after."""
    (end,) = tiny.stops
    assert [scorer(tiny).end(ids) for ids in ([5, 7], [5, end], [5, end, 7], [end, 5, end])] == [None, 2, 2, 1]
    entry, episodes = entry_of(own)
    for ids in ((5, end, 7, end), (5, end, 7, 5, 7, 5)):
        finish = "stop" if ids[-1] == end else "length"
        more = {"ids": ids, "action": tiny.text(ids), "logprobs": (-1.0,) * len(ids), "entropy": (), "finish": finish}
        forged = change(episodes, lambda ply, more=more: msgspec.structs.replace(ply, **more))
        with pytest.raises(SubmissionError, match=rf"does not end as this policy ends one \({finish}\)"):
            audit(entry, forged, scorer(tiny), RULES)


def test_other_weights_have_other_log_probs_and_another_digest(tiny: LocalPolicy, own: list[Trajectory]) -> None:
    other = load_local("tiny", seed=4)
    with pytest.raises(SubmissionError, match="log-probs are not this policy's"):
        audit(*entry_of(own), scorer(other), RULES)
    assert weights_digest(tiny) != weights_digest(other) == weights_digest(load_local("tiny?seed=4"))
    assert parameters(other) == sum(weight.numel() for weight in other.model.parameters())


def test_prompts_follow_the_context_rule(tiny: LocalPolicy) -> None:
    trajectories = sampled(tiny, Engine(context=Window(2)))
    assert abs(audit(*entry_of(trajectories, context="window:2"), scorer(tiny), RULES)["z"]) < 4
    with pytest.raises(SubmissionError, match="are not the conversation"):
        audit(*entry_of(trajectories), scorer(tiny), RULES)


def test_an_episode_is_not_stopped_while_there_is_room(tiny: LocalPolicy, own: list[Trajectory]) -> None:
    """An author may not choose where to stop, since a task may score the present state."""
    with pytest.raises(
        SubmissionError, match="stopped for a full context, but its .* are less than this policy's 8192"
    ):
        audit(*entry_of([replace(own[0], turns=own[0].turns[:3], stop="context"), *own[1:]]), scorer(tiny), RULES)
    room = len(own[0].turns[0].completion.prompt_ids) + 20
    drawn = Sampling(max_tokens=LIMIT)
    short = LocalPolicy(tiny.model, tiny.tokenizer, name="tiny", sampling=drawn, context=room)
    cut = list(Engine().run(short, RULES.jobs()))
    assert {each.stop for each in cut} == {"context"}
    assert audit(*entry_of(cut), scorer(short), RULES)["tokens"] >= 80


def test_figures_of_a_token_are_those_of_its_distribution(tiny: LocalPolicy) -> None:
    ids = [5, 17, 300, 9, 42]
    noise = [0.0, 0.5, 1.0 - 2.0**-24]
    scored = scorer(tiny, temperature=0.5).rescore([(ids, [False, True, True, False, True], noise, ())])[0]
    with torch.no_grad():
        logits = tiny.model(input_ids=torch.tensor([ids])).logits[0].double()
    for place, token in enumerate((1, 2, 4)):
        p = torch.softmax(logits[token - 1] / 0.5, -1).numpy()
        surprisal = -np.log(p)
        entropy = float((p * surprisal).sum())
        assert scored.logprobs[place] == pytest.approx(math.log(p[ids[token]]), abs=1e-4)
        assert scored.entropy[place] == pytest.approx(entropy, abs=1e-4)
        assert scored.variance[place] == pytest.approx(float((p * surprisal**2).sum()) - entropy**2, rel=1e-3)
        assert scored.root[place] == pytest.approx(math.log(np.sqrt(p).sum()), abs=1e-4)
        assert scored.gap[place] == pytest.approx(
            float(logits[token - 1].max() - logits[token - 1][ids[token]]), abs=1e-3
        )
