"""RetailDesk: the customer's script, refusals, judgement and the audit."""

import itertools
import json
import re

import pytest

from lmgym.backends.user.endings import STOP
from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.tasks.retail_desk.env import PROMPT, canonical


@pytest.fixture(scope="module")
def env():
    return build("retail_desk", split="test")


@pytest.fixture(scope="module")
def seat():
    return build("retail_desk", split="test", others="caller")


def opened(env, index):
    env.reset(seed=0, options={"index": index})
    return env.unwrapped


def find(env, wanted, limit=200):
    return next(index for index in range(limit) if wanted(opened(env, index % 100).goal))


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def test_a_third_of_the_instances_want_a_refusal_and_none_is_solved_by_doing_nothing(env):
    refusals = 0
    for index in range(100):
        task = opened(env, index)
        refusals += task.goal.refusal
        assert task.wanted != canonical(task.desk.data)
    assert refusals >= 20


def test_there_are_seventeen_tools_with_described_parameters(env):
    schemas = opened(env, 0).tools()
    assert len(schemas) == 17
    assert all(schema["description"] for schema in schemas)
    cancel = next(schema for schema in schemas if schema["name"] == "cancel_order")
    assert cancel["parameters"]["required"] == ["order_id", "reason"]
    assert cancel["parameters"]["properties"]["reason"]["enum"][0] == "no longer needed"


def test_the_oracle_uses_nothing_that_the_observations_have_not_told(env):
    """Arguments of calls stand in earlier observations, so the oracle's episodes teach no guessing."""
    spoken = re.compile(r"no longer need|by mistake|takes too long")
    for index in range(40):
        trace = play(env, lambda task: task.oracle(), index=index)
        assert trace.infos[-1]["score"] == 1.0
        for turn, action in enumerate(trace.actions):
            if not action.startswith("{"):
                continue
            texts = " ".join(each["text"] for each in trace.observations[: turn + 1]).lower()
            for name, value in json.loads(action)["arguments"].items():
                if name in ("request", "rule", "topic"):
                    continue
                if name == "reason":
                    assert spoken.search(value)[0] in texts
                else:
                    assert str(value).lower() in texts, (index, action)


def test_the_customer_tells_a_fact_only_when_asked(env):
    index = find(env, lambda goal: goal.level == 1 and "email" in goal.identity and goal.matters[0].kind == "cancel")
    first, *_ = env.reset(seed=0, options={"index": index})
    task = env.unwrapped
    order = task.goal.matters[0].order_id
    assert order not in first["text"].removeprefix(PROMPT)
    email = task.goal.customer["email"]
    assert email not in first["text"]
    assert email in env.step("May I have your email address?")[0]["text"]
    text = env.step("Which order number is it?")[0]["text"]
    assert order in text
    assert "reason" not in text
    reason = task.goal.matters[0].details["reason"]
    for words in ("How is the weather over there?", "Could you hold on for a moment, please?", "Which size is it?"):
        assert reason not in env.step(words)[0]["text"]
    assert reason in env.step("Is there anything more that I should know? Please tell me more.")[0]["text"]


def test_the_customer_never_says_what_it_does_not_know(env):
    index = find(env, lambda goal: "email" not in goal.identity)
    goal = opened(env, index).goal
    questions = ("Your email address?", "What is the order number?", "Please tell me everything.", "Who are you?")
    for question in itertools.islice(itertools.cycle(questions), 12):
        observation, *_, info = env.step(question)
        assert not any(fact in observation["text"] for fact in goal.unknown)
        if "score" in info:
            break


def test_words_without_sense_and_declining_without_a_record_fail(env):
    trace = play(env, given(["bla"] * 60), index=0)
    assert trace.terminated
    assert trace.infos[-1]["score"] == 0.0
    assert trace.infos[-1]["figures"]["failed_by_agent"] == 1.0
    index = find(env, lambda goal: goal.level == 1 and goal.refusal)
    trace = play(env, given(["I am sorry, I cannot do that."] * 9), index=index)
    assert trace.terminated
    assert (trace.infos[-1]["score"], trace.infos[-1]["figures"]["database_right"]) == (0.0, 0.0)


def test_a_message_of_many_numbers_tells_none(env):
    task = opened(env, 0)
    env.step(" ".join(map(str, range(13))))
    assert task.told == set()
    env.step("It is 1,074.50 euros.")
    assert task.told == {1074.5}


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("", "Write a message"),
        (STOP, "Write a message"),
        ('{"name": "get_order"', "no JSON object"),
        ("<tool_call>{}</tool_call>", "no JSON object"),
        (call("get_order"), "'order_id' is missing"),
        (call("get_order", order_id="N1", more=1), "unknown argument 'more'"),
        (call("get_order", order_id=1), "must be of type string"),
        (call("Get_Order", order_id="N1"), "no tool 'Get_Order'"),
        (call("get_order", order_id="N1"), "no order 'N1'"),
        (call("cancel_order", order_id="N1", reason="bored"), "must be one of"),
        (call("calculate", expression="9**9**9"), "cannot calculate"),
        (call("calculate", expression="1/0"), "cannot calculate"),
        (call("calculate", expression="9" * 2000), "at most"),
        (f"{call('list_products')}\n{call('list_products')}", "One tool call at a time"),
    ],
)
def test_bad_input_is_answered(env, action, answer):
    opened(env, 0)
    observation, reward, terminated, _, info = env.step(action)
    assert answer in observation["text"]
    assert (reward, terminated, info["valid"]) == (0.0, False, False)


def test_the_customers_token_and_words_beside_a_call_do_not_reach_the_customer(seat):
    opened(seat, 0)
    seat.step("Hello.")
    observation, *_, info = seat.step(f"Goodbye. {STOP}")
    assert (info["seat"], observation["text"]) == ("user", "The desk: Goodbye.")
    opened(seat, 0)
    seat.step("Hello.")
    observation, *_, info = seat.step(f"Let me look.\n{call('list_products')}")
    assert info["seat"] == "agent"
    assert "tent" in json.loads(observation["text"])


def faults(seat, *words, agent="Hello?", index=0):
    """Return the figures of an episode in which the user says `words`, the last with the stop token."""
    opened(seat, index)
    for each in words[:-1]:
        seat.step(each)
        seat.step(agent)
    *_, info = seat.step(words[-1])
    return info["figures"]


def test_the_audit_names_the_users_faults(seat):
    index = find(seat, lambda goal: goal.level == 2 and goal.matters[0].kind == "cancel" and not goal.matters[0].rule)
    goal = opened(seat, index).goal
    order = goal.matters[0].order_id
    raised = "I want to cancel an order."
    clean = faults(seat, raised, STOP, index=index)
    assert (clean["failed_by_user"], clean["failed_by_agent"]) == (0.0, 1.0)
    assert faults(seat, STOP, index=index)["user_early_stop"] == 1.0
    assert faults(seat, raised, STOP, agent="Shall I proceed?", index=index)["user_early_stop"] == 1.0
    wrong = faults(seat, f"{raised} My email address is me@nowhere.example.", STOP, index=index)
    assert (wrong["user_wrong_fact"], wrong["failed_by_user"], wrong["failed_by_agent"]) == (1.0, 1.0, 0.0)
    assert faults(seat, f"{raised} It is {order}.", STOP, index=index)["user_leaked_fact"] == 1.0
    repeated = faults(seat, raised, f"Yes, {order}.", STOP, agent=f"Is it {order}?", index=index)
    assert repeated["user_leaked_fact"] == 0.0
    assert faults(seat, raised, call("list_products"), STOP, index=index)["user_broken_format"] == 1.0
    assert faults(seat, raised, "", STOP, index=index)["user_broken_format"] == 1.0


def test_a_small_desk_shows_no_manual_calls_orders_by_name_and_is_served_by_the_clerk():
    for level in (1, 4):
        env = build("retail_desk", split="test", small=True, level=level)
        for index in range(8):
            trace = play(env, lambda task: task.oracle(), index=index)
            desk = env.unwrapped
            assert trace.infos[-1]["score"] == 1.0
            assert "Policy" not in trace.observations[0]["text"]
            assert desk.tools() == []
            assert not any('": [' in observation["text"] for observation in trace.observations)
            assert all(name.startswith("N-") for name in desk.desk.data["orders"])
            assert {matter.kind for matter in desk.goal.matters} <= {"cancel", "credit", "refer"}
