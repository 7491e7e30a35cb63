"""WebForms' own behaviour: state on a server, impossible goals, evaluators with and without their holes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from lmgym.backends.browser.gate import Request
from lmgym.env import golden
from lmgym.env.golden import play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.webforms.arena import own_tasks
from lmgym.tasks.webforms.evaluators import EpisodeEnd, cleaned, evaluate, needs_judge, stands_alone, unachievable
from lmgym.tasks.webforms.goals import KINDS, drawn
from lmgym.tasks.webforms.portal import HOME, Portal, furnished
from tests.components import chromium

chromium()


@pytest.mark.parametrize("kind", KINDS)
def test_the_plan_of_every_kind_of_goal_reaches_it(kind):
    env = build("lmgym/WebForms-v0", kind=kind)
    trace = play(env, lambda env: env.oracle(), index=4)
    env.close()
    assert all(info["valid"] for info in trace.infos)
    assert trace.infos[-1]["success"]


@pytest.mark.parametrize("action", ["send_msg_to_user('done')", "report_infeasible('too hard')"])
def test_an_ending_without_doing_it_scores_nothing(action):
    env = build("lmgym/WebForms-v0", kind="cart")
    trace = play(env, golden.given([action]), index=0)
    env.close()
    assert (trace.terminated, trace.infos[-1]["score"]) == (True, 0.0)


def signing_in() -> tuple[Any, str]:
    """Return an environment in which all is done but the last action, and that action."""
    env = build("lmgym/WebForms-v0", kind="signin")
    *calls, last = play(env, lambda env: env.oracle(), index=0).actions
    env.reset(options={"index": 0})
    for call in calls:
        env.step(call)
    return env, last


def test_doing_it_and_something_else_scores_nothing():
    env, last = signing_in()
    number = next(item["id"] for item in env.unwrapped.portal.state.items[:6] if item["stock"])
    env.step(f"goto('{HOME}/catalogue')")
    bid = env.unwrapped.browser.evaluate("id => document.getElementById(id).getAttribute('bid')", f"add{number}")
    env.step(f"click('{bid}')")
    _, _, terminated, _, info = env.step(last)
    env.close()
    assert (terminated, info["score"]) == (True, 0.0)


def test_an_action_that_failed_never_completes_a_task():
    env, _ = signing_in()
    env.unwrapped.browser._context.messages.append("done")  # all is as it should be, were it not for the next action
    for call in ("click('999')", "hello"):
        _, reward, terminated, _, info = env.step(call)
        assert (reward, terminated, info["valid"]) == (0.0, False, False)
    _, reward, terminated, _, info = env.step("noop(1)")
    env.close()
    assert (reward, terminated, info["score"]) == (1.0, True, 1.0)


def test_goals_that_cannot_be_done_are_among_all():
    goals = [drawn(furnished([61, i, 0]), np.random.default_rng([61, i, 1])) for i in range(60)]
    assert {goal.kind for goal in goals} == set(KINDS)
    assert 5 < sum(goal.impossible for goal in goals) < 25


def request(portal: Portal, path: str, body: str | None = None) -> Any:
    return portal(Request("POST" if body is not None else "GET", path, {}, (body or "").encode()))


def test_the_portal_answers_nonsense_politely():
    portal = Portal(furnished([1]))
    kept = portal.state.kept()
    for path, body in (
        ("/nowhere", None),
        ("/catalogue?page=99999999999999999999", None),
        ("/catalogue?page=-1&q=<script>alert(1)</script>", None),
        ("/orders/1001", None),
        ("/people/999", None),
        ("/cart/add", "id=999&quantity=1"),
        ("/cart/add", "id=1&quantity=-5"),
        ("/cart/add", "id=1&quantity=1e9"),
        ("/checkout", "address="),
        ("/travel/3", ""),
        ("/travel/1", "destination=x&leave=2026-02-02&back=2026-01-01"),
        ("/login", "user=ada&password=wrong"),
        ("/login?next=//evil.test/", None),
        ("/account", "email=x@y"),
        ("/\ud83d", None),
    ):
        answer = request(portal, path, body)
        assert answer.status in (200, 303, 404)
        assert b"<script>alert" not in answer.body
        assert not answer.headers.get("Location", HOME).startswith("//")
    assert portal.state.kept() == kept
    assert portal.state.user == ""


def test_a_strange_order_is_not_shown_or_cancelled():
    portal = Portal(furnished([63]))
    request(portal, "/login", f"user=grace&password={portal.state.users['grace']['password']}")
    assert portal.state.user == "grace"
    assert b"You have no order" in request(portal, "/orders/1043").body
    request(portal, "/orders/1043/cancel", "")
    assert next(order for order in portal.state.orders if order["id"] == "1043")["status"] == "pending"


@pytest.mark.parametrize("scoring", ["strict", pytest.param("official", marks=pytest.mark.slow)])
def test_plans_of_our_arena_tasks_pass_and_doing_nothing_passes_official_na_only(scoring):
    env = build("lmgym/WebFormsArena-v0", scoring=scoring)
    idle = build("lmgym/WebFormsArena-v0", scoring=scoring, max_turns=1, observe="none")
    passed = []
    for index in (0, 9, 15, 16, 18, 20, 23, 30):
        trace = play(env, lambda env: env.oracle(), index=index)
        overlooked = scoring == "official" and " |OR| " in json.dumps(own_tasks()[index]["eval"]["reference_answers"])
        assert trace.infos[-1]["success"] is not overlooked, own_tasks()[index]["intent"]
        if play(idle, golden.given(["noop(1)"]), index=index).infos[-1]["success"]:
            passed.append(index)
    env.close()
    idle.close()
    assert passed == ([16] if scoring == "official" else [])


def test_evaluators_open_pages_that_the_policy_cannot():
    env = build("lmgym/WebFormsArena-v0", actions="click,send_msg_to_user")
    trace = play(env, golden.given(["send_msg_to_user('done')"]), index=18)  # an order's page is read
    env.close()
    assert (trace.terminated, trace.infos[-1]["score"]) == (True, 0.0)


@pytest.fixture(scope="module")
def arena() -> Iterator[Any]:
    env = build("lmgym/WebFormsArena-v0")
    yield env
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("index", range(len(own_tasks())))
def test_every_plan_of_our_arena_tasks_passes(arena, index):
    trace = play(arena, lambda env: env.oracle(), index=index)
    assert trace.infos[-1]["success"]


def test_there_are_thirty_arena_tasks_of_all_evaluators():
    tasks = own_tasks()
    assert len(tasks) >= 30
    assert {name for task in tasks for name in task["eval"]["eval_types"]} == {
        "string_match",
        "url_match",
        "program_html",
    }
    assert sum(unachievable(task) for task in tasks) >= 3
    assert not any(needs_judge(task) for task in tasks)
    assert all(task["start_url"].startswith(HOME) for task in tasks)


def ending(answer: str | None = None, *, url: str = HOME, infeasible: bool = False, text: str = "") -> EpisodeEnd:
    return EpisodeEnd(answer, infeasible, url, lambda where, locator, prepare: text)


def asked(**reference: Any) -> dict[str, Any]:
    return {"task_id": 0, "intent": "?", "eval": {"eval_types": ["string_match"], "reference_answers": reference}}


@pytest.mark.parametrize(
    ("reference", "answer", "strict", "official"),
    [
        ({"exact_match": "Blue"}, "'blue'", 1, 1),
        ({"exact_match": "Blue"}, "light blue", 0, 0),
        ({"must_include": ["17"]}, "It was in 2017", 0, 1),
        ({"must_include": ["17"]}, "17 of them", 1, 1),
        ({"must_include": ["17"]}, "17.5 of them", 0, 1),
        ({"must_include": ["7"]}, "17 of them", 0, 0),
        ({"must_include": ["7"]}, "there are 7.", 1, 1),
        ({"must_include": ["red", "blue"]}, "blue and red", 1, 1),
        ({"must_include": ["red", "blue"]}, "blue", 0, 0),
        ({"must_include": ["art"]}, "a party", 0, 1),
        ({"must_include": ["one |OR| two"]}, "two", 1, 0),
        ({"exact_match": "one |OR| two"}, "two", 1, 0),
        ({"fuzzy_match": "N/A"}, "N/A", 0, 1),
        ({"fuzzy_match": "N/A"}, None, 0, 1),
        ({"fuzzy_match": "N/A"}, "no idea", 0, 0),
    ],
)
def test_answers_are_judged_as_officially_or_without_the_holes(reference, answer, strict, official):
    task = asked(**reference)
    assert evaluate(task, ending(answer), scoring="strict", judge=None) == strict
    assert evaluate(task, ending(answer), scoring="official", judge=None) == official


def test_what_cannot_be_done_has_to_be_reported():
    task = asked(fuzzy_match="N/A")
    for scoring in ("strict", "official"):
        assert evaluate(task, ending(infeasible=True), scoring=scoring, judge=None) == 1.0
    assert evaluate(asked(exact_match="x"), ending(infeasible=True), scoring="strict", judge=None) == 0.0


@pytest.mark.parametrize(
    ("reference", "url", "strict", "official"),
    [
        ("http://a.test/x", "http://a.test/x/", 1, 1),
        ("http://a.test/x", "http://a.test/x/y", 0, 1),
        ("http://a.test/x?p=2", "http://a.test/x?p=2&q=1", 1, 1),
        ("http://a.test/x?p=2", "http://a.test/x?p=3", 0, 0),
        ("http://a.test/x |OR| http://a.test/y", "http://a.test/y", 1, 1),
    ],
)
def test_addresses_are_judged_as_officially_or_without_the_holes(reference, url, strict, official):
    task = {"task_id": 0, "eval": {"eval_types": ["url_match"], "reference_url": reference}}
    assert evaluate(task, ending(url=url), scoring="strict", judge=None) == strict
    assert evaluate(task, ending(url=url), scoring="official", judge=None) == official


def test_pages_are_read_where_the_task_says_and_scores_multiply():
    places = []

    def read(where: str, locator: str, prepare: Any) -> str:
        places.append((where, locator, tuple(prepare)))
        return "Order 1078: 2 jars"

    target = {
        "url": "last",
        "locator": "x",
        "prep_actions": ["y"],
        "required_contents": {"must_include": ["jars |OR| mugs"]},
    }
    task = {
        "task_id": 0,
        "eval": {
            "eval_types": ["program_html", "url_match"],
            "program_html": [target, target | {"required_contents": {"exact_match": "order 1078: 2 JARS"}}],
            "reference_url": "http://a.test",
        },
    }
    there = EpisodeEnd(None, False, "http://a.test/", read)
    assert evaluate(task, there, scoring="strict", judge=None) == 1.0
    assert places == [("last", "x", ("y",))] * 2
    elsewhere = EpisodeEnd(None, False, "http://b.test/", read)
    assert evaluate(task, elsewhere, scoring="strict", judge=None) == 0.0


def test_a_judge_is_asked_for_fuzzy_answers_only_and_must_be_there():
    task = asked(fuzzy_match=["blue"])
    with pytest.raises(InstanceError, match="needs a judge"):
        evaluate(task, ending("azure"), scoring="strict", judge=None)

    def judge(*words: str) -> bool:
        return words == ("?", "blue", "azure", "fuzzy_match")

    assert evaluate(task, ending("'Azure'"), scoring="strict", judge=judge) == 1.0
    assert evaluate(asked(fuzzy_match=["blue", "red"]), ending("azure"), scoring="official", judge=judge) == 0.0


@pytest.mark.parametrize("scoring", ["strict", "official"])
def test_nobody_is_asked_about_an_empty_answer(scoring):
    assert evaluate(asked(fuzzy_match=["blue"]), ending("''"), scoring=scoring, judge=lambda *words: True) == 0.0


@pytest.mark.parametrize(
    ("answer", "strict", "official", "questions"),
    [
        ("No such person works here", 1, 1, [("?", "nobody of this name", "no such person works here", "ua_match")]),
        ("555-0100", 0, 0, [("?", "nobody of this name", "555-0100", "ua_match")]),
        ("N/A", 0, 1, []),
        (None, 0, 1, []),
    ],
)
def test_a_judge_is_asked_whether_an_answer_gives_the_reason_why_a_task_cannot_be_done(
    answer, strict, official, questions
):
    task = asked(fuzzy_match="N/A")
    task["eval"]["string_note"] = "nobody of this name"
    for scoring, score in (("strict", strict), ("official", official)):
        words: list[tuple[str, ...]] = []

        def judge(*said: str, words: list[tuple[str, ...]] = words) -> bool:
            words.append(said)
            return "no such person" in said[2]

        assert evaluate(task, ending(answer), scoring=scoring, judge=judge) == score
        assert words == questions
        unasked = float(scoring == "official" and answer in ("N/A", None))
        assert evaluate(task, ending(answer), scoring=scoring, judge=None) == unasked


def test_unknown_rules_are_refused():
    with pytest.raises(InstanceError, match="evaluator 'page_image_query'"):
        evaluate({"task_id": 0, "eval": {"eval_types": ["page_image_query"]}}, ending(), scoring="strict", judge=None)
    with pytest.raises(InstanceError, match="which is no rule"):
        evaluate(asked(one_of=["x"]), ending("x"), scoring="strict", judge=None)


def test_words_stand_alone():
    assert cleaned(' "Two Words" ') == "two words"
    assert stands_alone("$5.00", "it costs $5.00, no more")
    assert not stands_alone("5.00", "15.00")
    assert not stands_alone("5", "5.00")
    assert stands_alone("c++", "c++ and rust")
