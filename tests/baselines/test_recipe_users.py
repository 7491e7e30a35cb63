"""Recipes with a user in the loop: MUA-RL, REFUEL with a user, DoctorAgent-RL, RecoWorld and UFO."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from lmgym.baselines import refuel
from lmgym.baselines.recipes import doctor_agent_rl, mua_rl, recoworld, refuel_user, ufo
from lmgym.env.registry import build
from lmgym.errors import RecipeError
from lmgym.policy.scripted import Scripted, hinted
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.tasks.retail_desk.customer import facts
from lmgym.train.collate import collate
from lmgym.train.parts.credit import compares_groups
from lmgym.train.preflight import check
from lmgym.train.seats import Seat
from lmgym.train.state import InstancePool
from lmgym.types import Job
from tests.train.batches import make_batch
from tests.train.test_parts import EPISODE, TURN
from tests.train.victim import toy_policy

POOL = InstancePool(task="t", size=9, options={"level": 2})


def first_words(index: int, **options) -> str:
    env = build("retail_desk", **options)
    return env.reset(options={"index": index})[0]["text"]


@pytest.mark.parametrize("index", range(4))
def test_the_customer_tells_details_when_asked_or_with_the_first_message(index):
    env = build("retail_desk")
    env.reset(options={"index": index})
    told = facts(env.unwrapped.goal).splitlines()
    assert len(told) > 2
    assert first_words(index, upfront=True).endswith("\n".join(told))
    assert first_words(index, upfront=True).startswith(first_words(index))
    hidden = [*env.unwrapped.goal.identity.values(), *env.unwrapped.goal.matters[0].details.values()]
    assert not any(detail in first_words(index) for detail in hidden)


def test_requests_in_full_are_of_training_alone():
    full, asked = (mua_rl.recipe(mua_rl.Args(request=kind)) for kind in ("upfront", "asked"))
    assert {str(job.options) for job in full.tasks.draw(0, POOL)} == {"{'level': 2, 'upfront': True}"}
    assert all(job.options == {"level": 2} for job in asked.tasks.draw(0, POOL))
    assert asked.seats == full.seats == {"user": Seat(player="scripted", trained=False)}
    assert not asked.seats["user"].learns


def test_an_option_that_the_task_lacks_is_refused(tmp_path):
    recipe = mua_rl.recipe(mua_rl.Args(request="upfront"))
    with pytest.raises(RecipeError, match="unknown option 'upfront' for lmgym/Wordle-v0"):
        check(recipe, "wordle", {}, tmp_path)


def dialogues(rewind: str, count: int = 4):
    """Dialogues of a toy policy with a partner in a seat of its own, and their second halves."""
    planner = refuel_user.recipe(refuel_user.Args(rewind=rewind, budget=3)).planner
    partner = Scripted(
        "partner", lambda talk: f"Take it.\nOFFER: price={len(talk.messages) % 5 + 1}, delivery=1, warranty=1"
    )
    seats = {"partner": SeatConfig(policy=partner, trained=False)}
    jobs = [Job(task="lmgym/Negotiate-v0", split="train", index=n, id=f"e{n}", budget=3) for n in range(count)]
    return list(Engine(planner=planner, seats=seats, lockstep=True).run(toy_policy(), jobs))


@pytest.mark.parametrize("rewind", ["last", "any"])
def test_a_dialogue_is_rewound_and_continued_with_the_partner(rewind):
    episodes = dialogues(rewind)
    forks = [episode for episode in episodes if episode.parent and episode.seat == "agent"]
    whole = {episode.id: episode for episode in episodes}
    for fork in forks:
        parent, partner = whole[fork.parent], whole[f"{fork.id}/partner"]
        assert fork.turns[: fork.forked_at] == parent.turns[: fork.forked_at]
        assert partner.tags["trained"] is False
        assert partner.turns[: partner.forked_at] == whole[f"{fork.parent}/partner"].turns[: partner.forked_at]
        if rewind == "last":
            assert fork.forked_at == len(parent.turns) - 1
    if rewind == "any":
        assert len({fork.forked_at for fork in forks}) > 1
        return
    pairs = refuel.Pairs()  # by the ablation, the answer of the last turn alone is trained
    pairs.put([episode for episode in episodes if episode.seat == "agent"])
    batch = collate(pairs.pairs, trained="sampled")
    assert len(batch) == len(pairs.pairs) >= 2
    for row, pair in enumerate(pairs.pairs):
        assert set(batch.turn[row][batch.mask[row]].tolist()) == {len(pair.turns) - 1}


def test_the_number_of_turns_is_drawn_or_fixed_in_training():
    fixed, drawn = (doctor_agent_rl.recipe(doctor_agent_rl.Args(turns=turns)) for turns in (10, 0))
    assert {job.options["budget"] for job in fixed.tasks.draw(0, POOL)} == {10}
    assert all("budget" not in job.options for job in drawn.tasks.draw(0, POOL))
    env, shown = build("doctor"), set()
    for index in range(60):
        env.reset(options={"index": index})
        shown.add(env.unwrapped.turns)
    assert shown == set(range(2, 11))
    assert drawn.temperature == 0.7
    assert drawn.loss[-1].name == "entropy_bonus"


def test_a_session_pays_for_its_length_and_in_the_ablation_for_clicks():
    paid = {}
    for kind in ("session", "clicks"):
        recipe = recoworld.recipe(recoworld.Args(paid=kind, instances=6, group=2))
        assert recipe.seats == {"user": Seat(player="scripted", trained=False)}
        jobs = recipe.tasks.draw(0, InstancePool(task="lmgym/Recommender-v0", size=50))
        paid[kind] = list(Engine(lockstep=True).run(Scripted("first", lambda _: "SHOW 1, 2, 3"), jobs))
    for stayed, clicked in zip(paid["session"], paid["clicks"], strict=True):
        assert stayed.index == clicked.index
        assert [turn.action for turn in stayed.turns] == [turn.action for turn in clicked.turns]
        assert stayed.score == clicked.score == pytest.approx(stayed.reward / 12)
        assert clicked.reward == pytest.approx(clicked.figures["click_rate"] * len(clicked.turns))
    assert len({episode.reward for episode in paid["session"]}) > 1


def test_the_agent_reads_what_the_user_asks_for():
    user = Scripted("user", lambda talk: "INSTRUCTION: more jazz")
    seats = {"user": SeatConfig(policy=user, trained=False)}
    job = Job(task="lmgym/Recommender-v0", split="train", index=0, id="e")
    agent, asked = list(Engine(seats=seats, lockstep=True).run(hinted("demonstrator"), [job]))
    assert asked.tags["trained"] is False
    assert all("more jazz" in turn.observation.text for turn in agent.turns[1:])


def test_groups_only_choose_what_is_trained_and_the_return_less_the_value_is_the_advantage():
    recipe = ufo.recipe(ufo.Args(whiten=False))
    assert not compares_groups(recipe.credit)
    values = torch.tensor([[0, 0.25, 0.5, 0, 0.75]] * 2)
    reward = torch.tensor([[0, 0, 0, 0, 0.5], [0, 0, 0, 0, -0.25]])
    batch = make_batch([[0, 1, 1, 0, 1]] * 2, turn=[[-1, 0, 0, -1, 1]] * 2, reward=reward, value=values)
    advantage = recipe.credit(batch)
    assert advantage[0].tolist() == [0, 0.25, 0, 0, -0.25]
    assert advantage[1].tolist() == [0, -0.5, -0.75, 0, -1.0]


def test_the_quarter_of_problems_that_vary_most_is_kept():
    (keep,) = ufo.recipe(ufo.Args()).filter

    def tried(group: int, reward: float):
        turns = (replace(TURN, reward=reward),)
        return replace(EPISODE, id=f"{group}-{reward}-{len(turns)}", group=f"g{group}", turns=turns)

    episodes = [tried(group, reward) for group in range(8) for reward in (-1.0, group / 8)]
    assert {episode.group for episode in episodes if episode.id not in keep(episodes).drop} == {"g6", "g7"}
