from __future__ import annotations

import pytest

from lmgym.rollout.context import Full, History, MarkovState, Stub, Summarise, Window
from lmgym.rollout.engine import Engine
from lmgym.rollout.planner import Planner, Replace
from lmgym.types import Completion, Job, Message, Turn

from .fakes import Bytes, assert_rescored, assert_trained_once

DICE = "test/Dice-v0"
NOTE = "[Earlier turns are left out.]"
CONTEXTS = [Full(), Window(2), Window(3, stride=2), Window(0), Stub(), Stub(2), Stub(page="o"), MarkovState(),
            MarkovState(task=False), Summarise(60), Summarise(60, most=1), Summarise(1)]  # fmt: skip


def user(text, *images):
    return Message(role="user", text=text, images=images)


def history(turns, prompt=None):
    """Observations o0, o1 ..., answers a0, a1 ...; the last observation waits."""
    made = History(user(f"o{turns}", f"i{turns}"), prompt)
    for n in range(turns):
        append(made, user(f"o{n}", f"i{n}"), f"a{n}")
    return made


def append(made, observation, text, kind="act"):
    made.append(Turn(observation=observation, completion=Completion(text=text), action=text, kind=kind))


def texts(context, made):
    return [message.text for message in context.messages(made)]


def test_full_is_everything_after_the_system_prompt():
    made = history(2, Message(role="system", text="s"))
    assert texts(Full(), made) == ["s", "o0", "a0", "o1", "a1", "o2"]
    assert [message.role for message in Full().messages(made)] == ["system", *["user", "assistant"] * 2, "user"]


@pytest.mark.parametrize(
    ("context", "turns", "view"),
    [
        (Window(2), 2, ["o0", "a0", "o1", "a1", "o2"]),
        (Window(2), 3, [f"o0\n\n{NOTE}\n\no1", "a1", "o2", "a2", "o3"]),
        (Window(0), 2, [f"o0\n\n{NOTE}\n\no2"]),
        (Window(2, stride=2), 3, [f"o0\n\n{NOTE}\n\no2", "a2", "o3"]),  # one too many: two go
        (Window(2, stride=2), 4, [f"o0\n\n{NOTE}\n\no2", "a2", "o3", "a3", "o4"]),  # so that this extends the last
        (Window(2, stride=9), 3, [f"o0\n\n{NOTE}\n\no3"]),
        (Stub(text="-"), 0, ["o0"]),
        (Stub(text="-"), 3, ["o0", "a0", "-", "a1", "-", "a2", "o3"]),
        (Stub(2, text="-"), 3, ["o0", "a0", "-", "a1", "o2", "a2", "o3"]),
        (Stub(5, text="-"), 3, ["o0", "a0", "o1", "a1", "o2", "a2", "o3"]),
        (Stub(text="-", page="0"), 0, ["o0"]),
        (Stub(text="-", page="0"), 1, ["o-", "a0", "o1"]),  # the first page goes, the task before it stays
        (Stub(text="-", page="0"), 3, ["o-", "a0", "-", "a1", "-", "a2", "o3"]),
        (Stub(2, text="-", page="0"), 1, ["o0", "a0", "o1"]),
        (Stub(text="-", page="x"), 1, ["o0", "a0", "o1"]),
        (MarkovState(), 0, ["o0"]),
        (MarkovState(), 3, ["o0\n\no3"]),
        (MarkovState(task=False), 3, ["o3"]),
    ],
)
def test_views_by_hand(context, turns, view):
    assert texts(context, history(turns)) == view


def test_pictures_go_where_their_observations_go():
    assert MarkovState().messages(history(3))[0].images == ("i0", "i3")
    assert Window(1).messages(history(3))[0].images == ("i0", "i2")
    assert [m.images for m in Stub(text="-").messages(history(2)) if m.role == "user"] == [("i0",), (), ("i2",)]
    assert [m.images for m in Stub(page="0").messages(history(2)) if m.role == "user"] == [(), (), ("i2",)]


def test_a_summary_stands_for_what_was_before_it():
    context = Summarise(3, words="sum up", heading="So far:")
    made = history(2)
    assert context.request(made, context.messages(made), len) == "sum up"
    append(made, user("sum up"), "a lot", kind="summary")
    assert texts(context, made) == ["o0\n\nSo far:\na lot\n\no2"]
    assert context.request(made, context.messages(made) * 9, len) is None  # not twice before an action
    append(made, user("o2"), "a2")
    made.observation = user("o3")
    assert texts(context, made) == ["o0\n\nSo far:\na lot\n\no2", "a2", "o3"]
    assert context.request(made, context.messages(made), len) is None  # three are no more than three
    assert Summarise(0, words="sum up").request(made, context.messages(made), len) == "sum up"
    assert Summarise(0, most=1).request(made, context.messages(made), len) is None


def test_thinking_counts_if_the_ids_of_the_segment_have_it():
    made = history(1)
    for ids, request in (((1,), "sum up"), ((), None)):  # an endpoint is not sent its thinking again
        spoken = Completion(text="a0", thinking="hm", ids=ids)
        made.turns, made.replies = [], []
        made.append(Turn(observation=user("o0"), completion=spoken, action="a0"))
        context = Summarise(6, words="sum up")
        assert context.request(made, context.messages(made), lambda m: sum(len(x.text) for x in m)) == request
    assert texts(Full(), made) == ["o0", "a0", "o1"]


def test_thinking_before_a_summary_does_not_count_as_the_summary_is_shown_without():
    made = history(1)
    summary = Turn(
        observation=user("o0"),
        completion=Completion(text="short", thinking="long " * 99, ids=(1,)),
        action="",
        kind="summary",
    )
    acted = Turn(observation=user("o1"), completion=Completion(text="a1", ids=(2,)), action="a1")
    made.turns, made.replies = [], []
    made.append(summary)
    made.append(acted)
    context = Summarise(100, words="sum up")
    assert context.request(made, context.messages(made), lambda m: sum(len(x.text) for x in m)) is None


def play(context, answer=None, **engine):
    policy = Bytes(answer) if answer else Bytes()
    jobs = [Job(task=DICE, index=i, id=f"job{i}", prompt="Roll.") for i in range(6)]
    return list(Engine(context=context, **engine).run(policy, jobs)), policy


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_every_sampled_token_is_trained_once_as_it_was_sampled(context):
    trajectories, policy = play(context)
    assert_rescored(trajectories)
    count = assert_trained_once(trajectories)
    assert count == sum(len(policy.answer(conversation).encode()) + 1 for conversation in policy.heard)
    assert all(sum(turn.action is not None for turn in t.turns) == 4 for t in trajectories)


@pytest.mark.parametrize(
    ("context", "fresh"),
    [
        (Full(), [True, False, False, False]),
        (Window(1), [True, False, True, True]),
        (Window(1, stride=2), [True, False, True, False]),
        (Stub(), [True, False, True, True]),  # the task is never stubbed
        (MarkovState(), [True, True, True, True]),
    ],
)
def test_a_turn_is_fresh_where_the_view_does_not_extend_the_last(context, fresh):
    trajectories, _ = play(context)
    assert {tuple(turn.fresh for turn in t.turns) for t in trajectories} == {tuple(fresh)}


def test_a_summary_is_a_turn_that_the_environment_never_sees():
    # "Roll." 7, "game 0" 8 and the role that answers 1: 16. Each exchange adds "roll" 6 and "rolled N" 10: 32, 48, 64
    words = "Sum up."
    trajectories, policy = play(Summarise(48, words=words), lambda c: "sum" if _asks(c) else "roll")
    for t in trajectories:
        assert [turn.kind for turn in t.turns] == ["act", "act", "act", "summary", "act"]
        assert [turn.action for turn in t.turns] == ["roll", "roll", "roll", None, "roll"]
        assert [turn.fresh for turn in t.turns] == [True, False, False, False, True]
        assert t.turns[3].observation == user(words)
        assert t.turns[4].observation.text.startswith("rolled")
        assert (t.turns[3].reward, t.turns[3].terms) == (0.0, {})
    asked = [c for c in policy.heard if _asks(c)]
    assert len(asked) == 6
    assert all(c.messages[-1].text.endswith(f"\n\n{words}") for c in asked)
    assert len({c.noise for c in policy.heard}) == len(policy.heard)


def _asks(conversation):
    return conversation.messages[-1].text.endswith("Sum up.")


def test_no_room_for_a_summary_cuts_the_episode():
    policy = Bytes(lambda _: "roll", context=45)
    (t,) = Engine(context=Summarise(30, words="Sum up. " * 9)).run(policy, [Job(task=DICE, index=0)])
    assert (t.stop, t.truncated, [turn.kind for turn in t.turns]) == ("context", True, ["act", "act"])


def test_a_policy_may_render_anew_what_the_view_extends():
    class Forgetful(Bytes):
        def completion(self, conversation):
            return super().completion(conversation.__class__(messages=conversation.messages, noise=conversation.noise))

    (t,) = Engine().run(Forgetful(), [Job(task=DICE, index=0)])
    assert all(turn.fresh for turn in t.turns)
    assert_rescored([t])
    assert_trained_once([t])


def test_a_planner_is_asked_once_an_action_even_where_a_summary_comes_between():
    class Counting(Planner):
        asked = 0

        def before_step(self, node):
            self.asked += 1

    planner = Counting()
    trajectories, _ = play(Summarise(40), planner=planner)
    assert planner.asked == sum(turn.action is not None for t in trajectories for turn in t.turns)


@pytest.mark.parametrize("context", CONTEXTS, ids=repr)
def test_replaced_words_are_never_trained_and_break_nothing(context):
    class Half(Planner):
        def before_step(self, node):
            return Replace("given") if len(node.turns) % 2 else None

    trajectories, _ = play(context, planner=Half())
    assert_rescored(trajectories)
    assert assert_trained_once(trajectories) > 0
    assert {turn.kind for t in trajectories for turn in t.turns} >= {"act", "given"}
