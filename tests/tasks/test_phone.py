"""Phone's own behaviour: templates, gestures, the server's state, and the rule of declared completion."""

from __future__ import annotations

import json

import numpy as np
import pytest

from lmgym.backends.browser.context import ActionRefused
from lmgym.backends.browser.gate import Request
from lmgym.env import golden
from lmgym.env.golden import play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.phone.actions import DESCRIPTIONS, KINDS, parse, written
from lmgym.tasks.phone.server import HOME, PhoneServer
from lmgym.tasks.phone.state import furnished
from lmgym.tasks.phone.templates import TEMPLATES
from tests.components import chromium
from tests.sampled import sampled

COMPLETE = written("status", goal_status="complete")
INFEASIBLE = written("status", goal_status="infeasible")


@pytest.fixture(scope="module", name="phone")
def opened():
    chromium()
    env = build("lmgym/Phone-v0", template="turn_switch")
    yield env
    env.close()


def goal(name, seed, state):
    return TEMPLATES[name](state, np.random.default_rng([seed, 1]))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", sampled(TEMPLATES))
def test_the_oracle_meets_every_template_on_five_instances(name):
    chromium()
    env = build("lmgym/Phone-v0", template=name, split="test")
    traces = [play(env, lambda env: env.oracle(), index=index) for index in range(5)]
    env.close()
    assert all(trace.infos[-1]["success"] for trace in traces)
    assert all(info["valid"] for trace in traces for info in trace.infos)
    assert max(len(trace.actions) for trace in traces) <= 30


@pytest.mark.parametrize("name", TEMPLATES)
def test_doing_nothing_meets_no_feasible_request(name):
    for seed in range(5):
        state = furnished([seed])
        drawn = goal(name, seed, state.copy())
        assert "{" not in drawn.text
        if drawn.feasible:
            assert drawn.answer or drawn.wanted != state.content()
        else:
            assert drawn.wanted == state.content()


def test_templates_draw_other_parameters_for_other_seeds():
    for name in TEMPLATES:
        assert len({goal(name, seed, furnished([seed])).text for seed in range(6)}) > 1, name


def test_the_right_state_without_a_declaration_scores_nothing(phone):
    *actions, last = play(phone, lambda env: env.oracle(), index=0).actions
    assert last == COMPLETE
    phone.reset(options={"index": 0})
    for action in actions:
        _, reward, terminated, _, _ = phone.step(action)
        assert (reward, terminated) == (0.0, False)
    assert phone.unwrapped.phone.state.content() == phone.unwrapped.goal.wanted
    assert phone.unwrapped.cut()["score"] == 0.0


def test_a_wrong_status_or_another_change_scores_nothing(phone):
    *actions, _ = play(phone, lambda env: env.oracle(), index=0).actions
    extra = written("open_app", app_name="Shop"), *(written("click", index=i) for i in (6, 3))  # into the cart
    for ending in ((INFEASIBLE,), (*extra, COMPLETE)):
        trace = play(phone, golden.given([*actions, *ending]), index=0)
        assert (trace.terminated, trace.infos[-1]["score"]) == (True, 0.0)
    assert phone.unwrapped.phone.state.content() != phone.unwrapped.goal.wanted
    trace = play(phone, golden.given([COMPLETE]), index=0)
    assert (trace.terminated, trace.infos[-1]["score"]) == (True, 0.0)


def test_places_and_elements_are_two_names_of_one_thing(phone):
    phone.reset(options={"index": 0})
    calendar = next(each for each in phone.unwrapped.view.elements if each.text == "Calendar")
    observation, _, _, _, info = phone.step(phone.unwrapped.pointing(*calendar.centre))
    assert "Calendar 2026-01" in observation["text"]
    assert info["points"] == [[round(x) for x in calendar.centre]]
    observation, *_ = phone.step(written("navigate_back"))
    assert '"Home"' in observation["text"]
    before = observation["text"]
    observation, *_ = phone.step(written("navigate_back"))
    assert observation["text"] == before


def test_scrolls_and_swipes_are_opposite(phone):
    phone.reset(options={"index": 0})
    first, *_ = phone.step(written("open_app", app_name="contacts"))
    assert "There is more below." in first["text"]
    lower, *_ = phone.step(written("scroll", direction="down"))
    assert "above" in lower["text"]
    assert lower["text"] != first["text"]
    phone.step(written("swipe", direction="down"))
    assert phone.unwrapped.latest_text == first["text"]


def test_typed_text_is_added_unless_the_field_is_cleared(phone):
    phone.reset(options={"index": 0})
    phone.step(written("open_app", app_name="Contacts"))
    phone.step(written("click", index=2))
    for words, clear, value in (("Åsa ", False, "Åsa "), ("漢字", False, "Åsa 漢字"), ("Bo", True, "Bo")):
        phone.step(written("input_text", index=1, text=words, clear_text=clear))
        assert phone.unwrapped.view.elements[1].text == value


def test_pictures_show_the_screen():
    chromium()
    env = build("lmgym/Phone-v0", pixels="screenshot", observe="none")
    observation, _ = env.reset(options={"index": 0})
    after, *_ = env.step(written("open_app", app_name="Maps"))
    env.close()
    assert observation["images"].shape == (1, 640, 360, 3)
    assert (observation["images"] != after["images"]).mean() > 0.05
    assert after["text"] == "Screen: /maps"


@pytest.mark.parametrize("example", DESCRIPTIONS)
def test_every_described_action_is_parsed(example):
    assert parse(example) == parse(f"Reason: {{so}} it is.\nAction: {example}\n")
    assert parse(example).kind == json.loads(example)["action_type"]


def test_every_kind_of_action_is_described():
    assert {parse(example).kind for example in DESCRIPTIONS} == set(KINDS)


@pytest.mark.parametrize(
    "action",
    [
        "",
        "hello",
        "[1]",
        '{"action_type": "fly"}',
        '{"action_type": ["click"]}',
        '{"action_type": "click"}',
        '{"action_type": "click", "index": 1, "x": 2, "y": 3}',
        '{"action_type": "click", "index": true}',
        '{"action_type": "click", "x": 1}',
        '{"action_type": "click", "x": NaN, "y": 1}',
        f'{{"action_type": "click", "x": 1{"0" * 400}, "y": 1}}',
        '{"action_type": "input_text", "index": 1}',
        '{"action_type": "scroll", "direction": "north"}',
        '{"action_type": "status", "goal_status": "done"}',
        '{"action_type": "open_app"}',
        "[" * 10_000,
        "x" * 30_000,
    ],
)
def test_other_actions_are_refused(action):
    with pytest.raises(ActionRefused):
        parse(action)


def test_the_server_answers_nonsense_politely():
    state = furnished([1])
    server, kept = PhoneServer(state), state.content()
    for path, body in (
        ("/nowhere", None),
        ("/contacts/999", None),
        ("/contacts/1/delete/2", ""),
        ("/contacts/new", "name=&phone=1"),
        ("/contacts/new?q=<script>alert(1)</script>", None),
        ("/messages/1", "text=  "),
        ("/messages/1/2", ""),
        ("/messages/1/2/3/4", ""),
        ("/calendar?month=2026-99", None),
        ("/calendar/new", "title=x&date=2026-02-31&start=10:00"),
        ("/calendar/new", "title=x&date=2026-02-03&start=25:00"),
        ("/shop/cart/order", "address=x"),
        ("/shop/orders/1/cancel/now", ""),
        ("/maps/1/route/Rocket", "start=yes"),
        ("/settings/Wi-Fi", None),
        ("/settings/Brightness", "change=Much"),
        ("/settings/Language/Klingon", ""),
        ("/settings/Networks/Library", "password=short"),
        ("/\ud83d", None),
    ):
        answer = server(Request("GET" if body is None else "POST", path, {}, (body or "").encode()))
        assert answer.status in (200, 303, 404), path
        assert b"<script>alert" not in answer.body
        assert answer.headers.get("Location", HOME).startswith(HOME)
    assert state.content() == kept


def test_unknown_options_are_refused():
    for options in ({"template": "fly"}, {"observe": "axtree"}, {"pixels": "som"}):
        with pytest.raises(InstanceError, match="unknown"):
            build("lmgym/Phone-v0", **options)
