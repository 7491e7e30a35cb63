"""Tools and system prompts by seat and turn: in play, in records, in evaluation and in imitation alike."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lmgym.policy.base import tools_by_turn
from lmgym.policy.load import load_local
from lmgym.policy.local.policy import LocalPolicy
from lmgym.policy.scripted import hinted
from lmgym.rollout import episodes
from lmgym.rollout.context import Full, views
from lmgym.rollout.engine import Engine
from lmgym.rollout.episode_state import SeatConfig
from lmgym.rollout.following import following
from lmgym.rollout.fork import fork
from lmgym.rollout.replay import replay
from lmgym.types import Completion, Job, Trajectory

from .fakes import Bytes, assert_trained_once

PHONE = "test/Phone-v0"
SHOWS = "{% if tools %}{% for tool in tools %}{{ tool.function.name }} {% endfor %}{% endif %}"


def play(policy, seats=None, job=None, **engine) -> dict[str, Trajectory]:
    job = job or Job(task=PHONE, index=4, id="g")
    return {each.seat: each for each in Engine(seats=seats or {}, **engine).run(policy, [job])}


def names(tools) -> list[str]:
    return [tool["name"] for tool in tools]


@pytest.fixture(params=["in words", "by template"])
def local(request):
    """The embedded model, with and without a place for tools in its template."""
    policy = load_local("tiny")
    if request.param == "by template":
        policy.tokenizer.chat_template = SHOWS + policy.tokenizer.chat_template
        policy = LocalPolicy(policy.model, policy.tokenizer, name="shows")
    return policy


def test_each_seat_has_its_own_tools_at_each_turn_and_several_calls_are_made_in_order():
    agent, user = Bytes(lambda c: "a"), Bytes(lambda c: "u")
    play(agent, {"user": SeatConfig(policy=user)})
    assert [names(conversation.tools) for conversation in agent.heard] == [["refund"], ["refund", "close"]] + [
        ["refund", "close"]
    ]
    assert [names(conversation.tools) for conversation in user.heard] == [["restart"]] * 3
    calls = "\n".join(json.dumps({"name": name, "arguments": {}}) for name in ("refund", "close"))
    agent = Bytes(lambda c: f"I do both.\n{calls}")
    user = Bytes(lambda c: "u")
    play(agent, {"user": SeatConfig(policy=user)})
    assert agent.heard[0].parallel_calls
    assert user.heard[0].messages[-1].text == "1 refund close"


def test_prompts_are_the_seats_and_tools_are_recorded_where_they_change(tmp_path):
    seats = play(Bytes(lambda c: "a"), {"user": SeatConfig()})
    episodes.write(tmp_path / "x.jsonl", seats.values())
    agent, user = episodes.read(tmp_path / "x.jsonl")
    assert ["tools" in turn.info for turn in agent.turns] == [True, True, False]
    assert list(map(names, tools_by_turn(agent.turns))) == [["refund"], ["refund", "close"], ["refund", "close"]]
    assert list(map(names, tools_by_turn(user.turns))) == [["restart"]] * 3
    again = replay(agent, others=[user])
    assert tools_by_turn(again.turns) == tools_by_turn(agent.turns)
    assert {seat: each.prompt for seat, each in seats.items()} == {
        "agent": "You answer call 4.",
        "user": "You have a problem.",
    }
    job = Job(task=PHONE, index=4, prompt="Be brief.")
    seats = play(Bytes(lambda c: "a"), {"user": SeatConfig(prompt="Shout.")}, job)
    assert [each.prompt for each in seats.values()] == ["Be brief.", "Shout."]


def test_new_tools_start_a_segment_and_a_fork_continues_it(local):
    seats = play(local, {"user": SeatConfig()}, max_tokens=4)
    assert [turn.fresh for turn in seats["agent"].turns] == [True, True, False]
    assert [turn.fresh for turn in seats["user"].turns] == [True, False, False]
    for trajectory in seats.values():
        shown = local.template.vocabulary.text(trajectory.turns[0].completion.prompt_ids)
        assert ("restart" in shown) == (trajectory.seat == "user")
        assert ("refund" in shown) == (trajectory.seat == "agent")
    assert_trained_once(list(seats.values()))
    agent, user = seats["agent"], seats["user"]
    forked = play(local, {"user": SeatConfig()}, fork(agent, 2, others=[user]), max_tokens=4)
    assert [turn.fresh for turn in forked["agent"].turns] == [True, True, False]
    assert forked["agent"].turns[2].completion.prompt_ids == agent.turns[2].completion.prompt_ids
    assert_trained_once([*seats.values(), *forked.values()])


def test_training_evaluation_and_demonstrations_show_tools_in_the_same_way(local):
    """A stage plays the policy itself; an evaluation wraps it, and its default for local models is "template"."""
    training = play(local, max_tokens=4)["agent"]
    evaluated = play(local, {"agent": SeatConfig(tools="template")}, max_tokens=4)["agent"]
    assert [turn.completion for turn in training.turns] == [turn.completion for turn in evaluated.turns]
    shown = play(hinted("demonstrator"))["agent"]
    encoded = local.encode(shown, views(Full(), shown, local.count))
    assert encoded.turns[0].completion.prompt_ids == training.turns[0].completion.prompt_ids


def test_imitation_encodes_what_the_policy_would_have_seen(local):
    played = play(local, max_tokens=4)["agent"]
    words = [replace(turn, completion=Completion(text=turn.completion.text)) for turn in played.turns]
    bare = replace(played, turns=tuple(words))
    encoded = local.encode(bare, views(Full(), bare, local.count))
    for before, after in zip(played.turns, encoded.turns, strict=True):
        assert after.fresh == before.fresh
        if before.fresh:  # other prompts follow the answer as sampled, which need not end where its text does
            assert after.completion.prompt_ids == before.completion.prompt_ids
    assert encoded.final_ids == tuple(local.prompt(following(encoded, Full(), local.count))[0])


def test_a_local_users_thinking_is_not_spoken_to_the_agent(monkeypatch):
    user, agent = load_local("tiny"), Bytes(lambda c: "a")
    monkeypatch.setattr(user, "text", lambda answer: "<think>I lie</think>it broke")
    seats = play(agent, {"user": SeatConfig(policy=user)}, max_tokens=3)
    assert {turn.action for turn in seats["user"].turns} == {"it broke"}
    assert {turn.completion.thinking for turn in seats["user"].turns} == {"I lie"}
