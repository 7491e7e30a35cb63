"""tau2-bench: tools, evaluators, limits and users, on files of ours and on the official ones where they are here."""

import json
import os
from copy import deepcopy
from pathlib import Path

import pytest
import tau2_files

from lmgym.backends.user.endings import OUT_OF_SCOPE, STOP
from lmgym.env.golden import given, play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.tau2.env import ERRORS, GREETING, STEPS, verdicts_of
from lmgym.tasks.tau2.nothing import WORDS
from lmgym.tasks.tau2.official import criteria_of
from lmgym.tasks.tau2.scripted import ScriptedUser

DATA = Path(os.environ.get("LMGYM_TEST_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
OFFICIAL = DATA / "tau2"
needs_official = pytest.mark.skipif(not OFFICIAL.is_dir(), reason="no tau2: set LMGYM_TEST_DATA")
READS = ("calculate", "check_", "find_", "get_", "list_", "run_")  # first words of tools that change nothing
RETAIL = "lmgym/Tau2RetailOfficial-v0"
AIRLINE, JUDGED = "lmgym/Tau2AirlineOfficial-v0", "lmgym/Tau2RetailJudgedOfficial-v0"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return str(tau2_files.write(tmp_path_factory.mktemp("tau2")))


def opened(data, index=0, task=AIRLINE, split="base", **options):
    env = build(task, split=split, data=data, **options)
    env.reset(seed=0, options={"index": index})
    return env


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def index_of(env, title):
    return env.unwrapped.index_of(title)


def scored(env, index):
    trace = play(env, lambda task: task.oracle(), index=index)
    assert trace.terminated
    return trace.infos[-1]["score"]


def score_of(env, index, job):
    """Return the score on an instance of the gold actions of another job."""

    def play_other(task):
        for _ in task.oracle():
            task.job, true = job, task.job
            action = next(task.oracle())
            task.job = true
            yield action

    return play(env, play_other, index=index).infos[-1]["score"]


def altered(env, index, position):
    """Return the scores of the gold actions with one argument of one action altered at a time."""
    env.reset(seed=0, options={"index": index})
    job = env.unwrapped.job
    scores = []
    for name, value in criteria_of(job)["actions"][position]["arguments"].items():
        false = deepcopy(job)
        wrong = f"{value}x" if isinstance(value, str) else value + 1 if isinstance(value, int | float) else value[:-1]
        criteria_of(false)["actions"][position]["arguments"][name] = wrong
        scores.append(score_of(env, index, false))
    return scores


def test_missing_files_are_named_in_one_line_with_the_remedy(monkeypatch, tmp_path):
    monkeypatch.delenv("TAU2_DATA", raising=False)
    with pytest.raises(InstanceError, match="git clone .*tau2-bench, and set TAU2_DATA to the folder") as caught:
        build(AIRLINE)
    assert "\n" not in str(caught.value)
    (tmp_path / "domains" / "airline").mkdir(parents=True)
    with pytest.raises(InstanceError, match="has none of tasks.json"):
        build(AIRLINE, data=str(tmp_path))


def test_gold_actions_score_one_and_an_altered_argument_or_nothing_done_zero(files):
    env = build(AIRLINE, split="base", data=files)
    assert [env.unwrapped.title(i) for i in range(env.unwrapped.size())] == ["0", "1", "2", "4", "5", "6", "7"]
    for index in range(env.unwrapped.size()):
        assert scored(env, index) == 1.0
    for index in range(6):
        assert set(altered(env, index, 0)) == {0.0}
    assert play(env, given([WORDS] * 5), index=index_of(env, "7")).infos[-1]["score"] == 1.0
    assert play(env, given([WORDS] * 5), index=0).infos[-1]["score"] == 0.0


def test_a_connection_leaves_after_the_first_flight_lands_and_a_booking_takes_seats_and_money_once(files):
    env = opened(files)
    observation, *_ = env.step(call("search_onestop_flight", origin="SFO", destination="JFK", date="2024-05-20"))
    [[first, second]] = json.loads(observation["text"])
    assert (first["flight_number"], second["flight_number"], second["date"]) == ("HAT2", "HAT3", "2024-05-20")
    observation, *_ = env.step(call("book_reservation", **tau2_files.BOOKING))
    assert json.loads(observation["text"])["reservation_id"] == "HATHAT"
    data = env.unwrapped.world.agent.data
    assert data["users"]["ana_bo_1"]["payment_methods"]["gift_card_1"]["amount"] == 170.0
    assert "certificate_1" not in data["users"]["ana_bo_1"]["payment_methods"]
    assert data["flights"]["HAT2"]["dates"]["2024-05-20"]["available_seats"]["economy"] == 1
    observation, *_, info = env.step(call("book_reservation", **tau2_files.BOOKING))
    assert (observation["text"], info["valid"]) == ("Error: Not enough seats on flight HAT2", False)


def test_the_reward_basis_decides_what_counts(files):
    booking = call("book_reservation", **tau2_files.BOOKING)
    silent = play(opened(files), given([booking, WORDS, WORDS]), index=0).infos[-1]
    assert (silent["score"], silent["figures"]["db"], silent["figures"]["communicate"]) == (0.0, 1.0, 0.0)
    spoken = play(opened(files), given([booking, "It was 4,30 dollars.", WORDS, WORDS]), index=0).infos[-1]
    assert spoken["score"] == 1.0  # commas are taken out
    # nothing happens twice: the database is right, but the action is not in the dialogue
    cancelled = play(opened(files), given([WORDS, WORDS]), index=2).infos[-1]
    assert (cancelled["figures"]["action"], cancelled["figures"]["db"]) == (0.0, 0.0)


def test_ten_failed_calls_or_two_hundred_messages_end_the_dialogue_without_a_score(files):
    trace = play(opened(files), given([call("get_user_details", user_id="x")] * 20), index=0)
    assert (len(trace.actions), trace.terminated, trace.infos[-1]["score"]) == (ERRORS, True, 0.0)
    trace = play(opened(files), given([call("get_user_details", user_id="ana_bo_1")] * 300), index=0)
    # the user's first message, then two a turn: the call and its result
    assert (len(trace.actions), trace.terminated, trace.infos[-1]["score"]) == (STEPS // 2, True, 0.0)
    assert trace.infos[-1]["figures"]["messages"] >= STEPS


def test_several_calls_in_one_answer_are_made_in_order(files):
    env = opened(files)
    two = "\n".join([call("send_certificate", user_id="ana_bo_1", amount=n) for n in (1, 2)])
    observation, *_ = env.step(f"Let me do that.\n{two}")
    assert observation["text"].splitlines() == [
        "Certificate certificate_3221322 added to user ana_bo_1 with amount 1.",
        "Certificate certificate_3221323 added to user ana_bo_1 with amount 2.",
    ]
    assert env.unwrapped.transcript.agent_messages[-1] == "Let me do that."


@pytest.mark.parametrize(
    ("action", "answer"),
    [
        ("", "Answer with a message"),
        ('{"name": "get_user_details"', "Answer with a message"),
        (call("get_user"), "Tool 'get_user' not found"),
        (call("get_user_details"), "'user_id' is missing"),
        (call("get_user_details", user_id=3), "must be of type string"),
        (call("get_user_details", user_id="x", y=1), "unknown argument 'y'"),
        (call("send_certificate", user_id="ana_bo_1", amount="50"), "must be of type integer"),
        (call("calculate", expression="__import__('os')"), "Invalid characters"),
        (call("update_reservation_passengers", reservation_id="AAA111", passengers=[{"dob": "x"}]), "is missing"),
        (call("search_onestop_flight", origin="SFO", destination="JFK", date="x"), "[]"),
    ],
)
def test_bad_input_is_answered(files, action, answer):
    observation, reward, terminated, *_ = opened(files).step(action)
    assert answer in observation["text"]
    assert (reward, terminated) == (0.0, False)


def test_the_users_token_in_the_agents_words_ends_nothing(files):
    env = opened(files, others="caller")
    env.step("Hello.")
    observation, _, terminated, _, info = env.step(f"Goodbye {STOP}")
    assert (observation["text"], terminated, info["seat"]) == (f"Goodbye {STOP}", False, "user")


def test_the_scripted_user_tells_what_it_knows_when_asked_and_never_what_it_does_not(files):
    user = ScriptedUser(tau2_files.TASKS[0]["user_scenario"])
    assert user.reply(GREETING) == "I want to change my trip to Denver."
    assert user.reply("What is your reservation number?") == "My reservation is AAA111."
    assert user.reply("And your user id?") == "My user id is ana_bo_1."
    assert "ana@example.com" not in user.reply("What is your email address?")
    assert user.reply("I will book it. Shall I proceed?") == "Yes, please go ahead."
    assert "I would rather keep my trip" in user.reply("Unfortunately that is against our policy.")
    assert STOP in user.reply("Is there anything else?")
    answers = [user.reply("What is your favourite colour?") for _ in range(9)]
    assert OUT_OF_SCOPE in answers[-1]


KNOWN = {
    "known_info": "You are Ana Bo and live in Denver, 80280.\nYou paid with a gift card.\nYou are on the 9 am flight."
}


@pytest.mark.parametrize(
    "words",
    [
        "What is your favourite colour?",
        "How are you today?",
        "Could you hold on for a moment, please?",
        "Please give me a moment while I look up your account and your payment.",
        "Let me check where your payment went, please hold.",
        "What is your email address?",
        "What is your order number?",
    ],
)
def test_the_scripted_user_tells_nothing_that_was_not_asked_for(words):
    user = ScriptedUser({"instructions": KNOWN})
    user.opening()
    assert user.reply(words) in ("I do not know more than what I told you.", "Can you help me with that?")
    assert not user.told


@pytest.mark.parametrize(
    "words",
    [
        "Tell me more.",
        "Please send me your details.",
        "What else should I know?",
        "Please tell me everything you know.",
        "How can I help you?",
        "What seems to be the problem?",
    ],
)
def test_the_scripted_user_tells_all_it_knows_when_the_agent_asks_openly(words):
    user = ScriptedUser({"instructions": KNOWN})
    user.opening()
    assert (
        user.reply(words) == "I am Ana Bo and live in Denver, 80280. I paid with a gift card. I am on the 9 am flight."
    )
    assert user.reply(words) == "I do not know more than what I told you."


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        ("While I check, could you tell me your zip code?", "I am Ana Bo and live in Denver, 80280."),
        ("Where do you live?", "I am Ana Bo and live in Denver, 80280."),
        ("Which card did you use?", "I paid with a gift card."),
    ],
)
def test_the_scripted_user_tells_what_is_on_the_topic_alone(words, answer):
    user = ScriptedUser({"instructions": KNOWN})
    user.opening()
    assert user.reply(words) == answer


@needs_official
def test_the_scripted_user_tells_nothing_to_small_talk_on_the_official_retail_tasks():
    for task in json.loads((OFFICIAL / "domains" / "retail" / "tasks.json").read_text(encoding="utf-8")):
        for words in (
            "What is your favourite colour?",
            "How are you today?",
            "Could you hold on for a moment, please?",
        ):
            user = ScriptedUser(task["user_scenario"])
            user.opening()
            user.reply(words)
            assert not user.told, (task["id"], words)


def test_a_recorded_user_says_where_the_dialogue_left_the_record(files, tmp_path):
    messages = [
        {"role": "assistant", "content": GREETING},
        {"role": "user", "content": "Hello, change my trip."},
        {"role": "assistant", "content": "Which one?"},
        {"role": "user", "content": "AAA111"},
        {"role": "assistant", "content": "Done."},
        {"role": "user", "content": f"Bye {STOP}"},
    ]
    record = tmp_path / "results.json"
    record.write_text(json.dumps({"simulations": [{"task_id": "7", "messages": messages}]}))
    options = {"user": "recorded", "recording": str(record), "data": files, "split": "base"}
    env = build(AIRLINE, **options)
    index = index_of(env, "7")
    on = play(env, given(["Which one?", "Done."]), index=index).infos[-1]
    assert (on["score"], on["figures"]["left_record"], on["figures"]["turns_on_record"]) == (1.0, 0.0, 3.0)
    off = play(env, given(["Which one?", "No.", "x"]), index=index).infos[-1]
    assert (off["figures"]["left_record"], off["figures"]["turns_on_record"]) == (1.0, 2.0)
    with pytest.raises(InstanceError, match="no dialogue of task 0"):
        env.reset(options={"index": 0})


def test_a_judge_decides_assertions_in_natural_language(files):
    env = opened(files, judged=True, others="caller")
    assert (env.unwrapped.title(0), env.unwrapped.size()) == ("3", 1)
    env.step("Hello.")
    env.step("Hi, what can I do?")
    observation, _, terminated, _, info = env.step(STOP)
    assert (terminated, info["seat"]) == (False, "judge")
    assert "The agent is kind." in observation["text"]
    *_, info = env.step('Fine. {"results": [{"met": true}, {"met": true}]}')
    assert (info["score"], info["figures"]["nl_assertion"]) == (1.0, 1.0)
    assert verdicts_of("no json") == verdicts_of('{"results": 3}') == []
    words = '{"results": [{"met": "true"}, {"met": "false"}, {"met": "no"}, {"met": 1}, {"met": null}]}'
    assert verdicts_of(words) == [True, False, False, False, False]
    with pytest.raises(InstanceError, match="--seat judge=MODEL"):
        build(AIRLINE, data=files, judged=True)


@needs_official
@pytest.mark.parametrize(
    ("task", "split", "wanted"),
    [
        ("lmgym/Tau2RetailOfficial-v0", "base", 1.0),
        ("lmgym/Tau2TelecomOfficial-v0", "small", 1.0),
        ("lmgym/Tau2TelecomSoloOfficial-v0", "small", 1.0),
        # one task has no gold actions, in another the user's own tool call breaks the databases' equality, as upstream
        ("lmgym/Tau2MockOfficial-v0", "base", 0.8),
    ],
)
def test_gold_actions_score_one_on_the_official_tasks(task, split, wanted):
    env = build(task, split=split, data=str(OFFICIAL))
    scores = [scored(env, index) for index in range(env.unwrapped.size())]
    assert sum(scores) / len(scores) == pytest.approx(wanted)


@needs_official
@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("task", "split", "idle"),  # title and position of actions that change nothing in the end
    [
        (RETAIL, "base", {("22", 1), ("64", 6)}),  # a change that is undone, and a call that fails
        ("lmgym/Tau2TelecomOfficial-v0", "small", set()),
        ("lmgym/Tau2TelecomSoloOfficial-v0", "small", set()),
        ("lmgym/Tau2MockOfficial-v0", "base", set()),
    ],
)
def test_an_altered_argument_scores_zero_on_every_official_task(task, split, idle):
    env = build(task, split=split, data=str(OFFICIAL))
    unmoved, changes = set(), 0
    for index in range(env.unwrapped.size()):
        env.reset(seed=0, options={"index": index})
        for position, action in enumerate(criteria_of(env.unwrapped.job).get("actions") or ()):
            if action["arguments"] and not action["name"].startswith((*READS, "transfer_to_human_agents")):
                changes += 1
                if set(altered(env, index, position)) != {0.0}:
                    unmoved.add((env.unwrapped.title(index), position))
    assert changes > len(idle)
    assert unmoved == idle


@needs_official
def test_the_domains_have_all_tools():
    counts = {}
    for task, split in (("Tau2RetailOfficial-v0", "base"), ("Tau2TelecomOfficial-v0", "small")):
        env = opened(str(OFFICIAL), task=task, split=split).unwrapped
        counts[task] = (len(env.tools()), len(env.tools("user")))
    assert counts == {"Tau2RetailOfficial-v0": (16, 0), "Tau2TelecomOfficial-v0": (13, 30)}


def test_the_airline_agent_has_fourteen_tools(files):
    assert len(opened(files).unwrapped.tools()) == 14
