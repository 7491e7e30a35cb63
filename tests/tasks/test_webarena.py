"""WebArena's own tasks: which are played, on sites over the network, and what their helpers ask of these."""

from __future__ import annotations

import json
import logging
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from lmgym.backends.browser.gate import Request, Response, Sites
from lmgym.backends.browser.session import BrowserSession
from lmgym.env.registry import build
from lmgym.errors import BackendError, InstanceError
from lmgym.policy.base import Conversation
from lmgym.policy.scripted import Scripted
from lmgym.rollout.context import Stub
from lmgym.rollout.engine import Engine
from lmgym.tasks.webforms import helpers
from lmgym.tasks.webforms.arena import own_tasks
from lmgym.types import Job
from tests.backends.pages import serving
from tests.components import chromium

chromium()


def test_official_tasks_are_read_in_their_layout(monkeypatch, tmp_path):
    item = own_tasks()[0] | {"sites": ["shopping"], "start_url": "__SHOPPING__/people"}
    fuzzy = item | {"eval": {"eval_types": ["string_match"], "reference_answers": {"fuzzy_match": ["x"]}}}
    path = tmp_path / "test.raw.json"
    path.write_text(json.dumps([item, fuzzy]))
    monkeypatch.setenv("WEBARENA_DATA", str(path))
    monkeypatch.setenv("WA_SHOPPING", "http://127.0.0.1:7770/")
    plain, judged = build("lmgym/WebArena-v0"), build("lmgym/WebArenaJudged-v0", judge="python:operator:contains")
    assert (plain.unwrapped.size(), judged.unwrapped.size()) == (1, 2)
    assert plain.unwrapped.items()[0]["start_url"] == "http://127.0.0.1:7770/people"
    monkeypatch.delenv("WA_SHOPPING")
    with pytest.raises(InstanceError, match=r"1 need the site shopping: set \$WA_SHOPPING"):
        plain.reset(options={"index": 0})
    path.write_text("{}")
    monkeypatch.setenv("WA_SHOPPING", "http://127.0.0.1:7771/")
    with pytest.raises(InstanceError, match="not in the layout"):
        plain.unwrapped.size()
    with pytest.raises(InstanceError, match="not 'python:module:function'"):
        build("lmgym/WebArenaJudged-v0", judge="gpt-4")


@pytest.fixture
def shop(monkeypatch, tmp_path):
    """A shop over the network, the paths that were asked of it, and how a task about it is given."""
    asked: list[str] = []

    def answer(request: Request) -> Response:
        asked.append(request.path)
        if request.path.startswith("/rest/"):
            return interface(request)
        if request.path == "/account":
            return Response(
                ACCOUNT.replace(b"WHO", b"Emma" if "session=e" in request.headers.get("cookie", "") else b"-")
            )
        return Response(SHOP[request.path].encode()) if request.path in SHOP else Response(status=404)

    with serving(answer) as base:

        def given(*tasks: Any, **parts: Any) -> Any:
            items = [own_tasks()[0] | {"sites": ["shopping"], **task} for task in tasks or [parts]]
            path = tmp_path / f"{len(list(tmp_path.iterdir()))}.json"
            path.write_text(json.dumps(items).replace("__BASE__", base))
            monkeypatch.setenv("WEBARENA_DATA", str(path))
            return build("lmgym/WebArena-v0")

        monkeypatch.setenv("WA_SHOPPING", base)
        monkeypatch.setenv("WEBARENA_RESET", base + "/reset")
        yield given, asked, base


SHOP = {
    "/": "<title>Shop</title><a href='/deep'>deeper</a>",
    "/deep": "<title>Deep</title>found",
    "/reset": "restored",
    "/sales/order/view/order_id/188/": "<h1>Order 188</h1>Salt &amp; pepper, 2 jars",
    "/f/pics/12/": "<article>from /f/pics</article>",
    "/f/pics/12/a-title/-/comment/9": "a comment",
    "/members": """<table><tr><td data-label='Account'><span class='gl-avatar-labeled-sublabel'>@ada</span></td>
        <td class='col-max-role'><span>Owner</span></td></tr>
        <tr><td data-label='Account'><span class='gl-avatar-labeled-sublabel'>@grace</span></td>
        <td class='col-max-role'><span>Guest</span></td></tr></table>""",
}
ACCOUNT = b"""<title>Account</title><p>Signed in: WHO</p><p id='kept'></p><script>
    kept.textContent = 'kept: ' + localStorage.cart;
    document.cookie = 'session=; max-age=0'; localStorage.cart = 'other';</script>"""


def interface(request: Request) -> Response:
    """The part of the shop's interface that helpers ask, for its administrator only."""
    parts = urlsplit(request.path)
    if parts.path == "/rest/default/V1/integration/admin/token":
        known = json.loads(request.body) == {"username": "admin", "password": "a:b"}
        return Response(b'"t0ken"', "application/json", 200 if known else 401)
    if request.headers.get("authorization") != "Bearer t0ken":
        return Response(b"{}", "application/json", 401)
    newest = parse_qs(parts.query).get("searchCriteria[sortOrders][0][direction]") == ["DESC"]
    found: Any = {
        "/rest/V1/orders": {"items": [{"increment_id": "000000188" if newest else "000000001"}]},
        "/rest/V1/products/B1/reviews": [
            {"nickname": "first", "ratings": [{"percent": 20}]},
            {"nickname": "Emma", "ratings": [{"percent": 80}]},
        ],
        "/rest/V1/products/B2/reviews": [],
    }.get(parts.path)
    return Response(json.dumps(found).encode(), "application/json", 200 if found is not None else 404)


def html(url: str, locator: str, **required: Any) -> dict[str, Any]:
    target = {"url": url, "locator": locator, "required_contents": required}
    return {"eval_types": ["program_html"], "program_html": [target]}


FOUND = {
    "eval_types": ["program_html", "url_match"],
    "program_html": [
        {"url": "last", "locator": "document.body.innerText", "required_contents": {"must_include": ["found"]}}
    ],
    "reference_url": "__BASE__/deep",
}


def test_official_tasks_are_played_on_a_site_over_the_network_which_is_restored_at_every_reset(shop):
    given, asked, _ = shop
    env = given(start_url="__SHOPPING__/", eval=FOUND)
    for episode in (1, 2):
        first, _ = env.reset(options={"index": 0})
        assert [path for path in asked if path == "/reset"] == ["/reset"] * episode
        assert "link 'deeper'" in first["text"]
        bid = env.unwrapped.browser.evaluate("document.querySelector('a').getAttribute('bid')")
        env.step(f"click('{bid}')")
        *_, info = env.step("send_msg_to_user('done')")
        assert info["score"] == 1.0
    env.close()
    before = asked.index("/")
    assert "/reset" in asked[:before]  # before the page is opened
    assert asked.count("/reset") == 2


def test_a_site_that_cannot_be_restored_voids_the_episode(shop, monkeypatch):
    given, _, base = shop
    env = given(start_url="__SHOPPING__/", eval=FOUND)
    monkeypatch.setenv("WEBARENA_RESET", base + "/nowhere")
    with pytest.raises(BackendError, match="WEBARENA_RESET"):
        env.reset(options={"index": 0})
    env.close()


def test_a_task_that_begins_at_two_addresses_has_a_tab_for_each(shop):
    given, _, base = shop
    env = given(start_url="__SHOPPING__/ |AND| __SHOPPING__/deep", eval=FOUND)
    for names in (("click",), env.unwrapped.browser.names):  # whether or not the policy may open tabs
        env.unwrapped.browser.names = names
        first, _ = env.reset(options={"index": 0})
        assert "Tab 0 (current): Shop\nTab 1: Deep" in first["text"]
    session = env.unwrapped.browser
    assert [name for name, _ in session.look().tabs] == ["Shop", "Deep"]
    assert session.look().url == f"{base}/"
    env.step("tab_focus(1)")
    *_, info = env.step("send_msg_to_user('done')")  # what is judged is the tab that is open in the end
    env.close()
    assert info["score"] == 1.0


def test_what_cannot_be_judged_here_is_left_out_and_counted_and_stops_no_run(shop, caplog):
    given, _, _ = shop
    body = "document.body.innerText"
    with caplog.at_level(logging.WARNING):
        env = given(
            {"start_url": "__SHOPPING__/", "eval": FOUND},
            {"start_url": "__SHOPPING__/", "eval": html("func:shopping_get_weather()", body, must_include=["x"])},
            {"start_url": "__SHOPPING__/", "eval": html("last", "func:reddit_get_post_url('a', 'b')", exact_match="x")},
            {"start_url": "__SHOPPING__/", "eval": html("last", body, one_of=["x"])},
            {"start_url": "__SHOPPING__/", "eval": {"eval_types": ["page_image_query"]}},
            {
                "start_url": "__SHOPPING__/",
                "eval": html("func:reddit_get_post_url('__last_url__')", body, exact_match=""),
            },
        )
        assert env.unwrapped.size() == 2
    (said,) = [record.getMessage() for record in caplog.records if "WEBARENA_DATA" in record.getMessage()]
    assert "2 tasks can be played, left out: " in said
    for left in (
        "helper shopping_get_weather",
        "helper reddit_get_post_url",
        "rule one_of",
        "evaluator page_image_query",
    ):
        assert f"1 name the {left}, which there is none of" in said
    env.close()
    done = Scripted("done", lambda conversation: "send_msg_to_user('done')")
    jobs = [Job(task="lmgym/WebArena-v0", split="test", index=index, id=str(index)) for index in range(2)]
    with Engine() as engine:
        assert {t.id: t.score for t in engine.run(done, jobs)} == {"0": 0.0, "1": 0.0}


@pytest.mark.parametrize(
    ("url", "post"),
    [
        ("http://a.test:99/f/pics/12/a-title/-/comment/9?x=1", "http://a.test:99/f/pics/12/"),
        ("http://a.test/f/pics/12", "http://a.test/f/pics/12/"),
        ("http://a.test/f/pics", "http://a.test/f/pics"),
        ("http://a.test/user/ada/12/x", "http://a.test/user/ada/12/x"),
        ("about:blank", "about:blank"),
    ],
)
def test_the_address_of_a_post_is_the_forum_s_and_its_number_s(url, post):
    asked = helpers.ask("func:reddit_get_post_url('__last_url__')", helpers.LivePage(url, lambda *words: None))
    assert asked == post


def test_a_helper_is_read_and_never_evaluated():
    for words in (
        "__import__('os').system('true')",
        "reddit_get_post_url(open('x').read())",
        "reddit_get_post_url(url='x')",
        "shopping_get_latest_order_url",
        "shopping_get_latest_order_url(",
    ):
        assert not helpers.known(f"func:{words}")
    assert helpers.known("func:gitlab_get_project_memeber_role(__page__, 'ada')")
    assert helpers.known("document.title")


BODY, LATEST = "document.body.innerText", "func:shopping_get_latest_order_url()"
COMMENT = "func:reddit_get_post_url('__last_url__')"


@pytest.mark.parametrize(
    ("start", "url", "locator", "wanted", "score"),
    [
        ("/", LATEST, "document.body.innerHTML", "Salt & pepper", 1.0),  # &amp; is read as the sign it stands for
        ("/", LATEST, BODY, "Order 189", 0.0),
        ("/", "last", "func:shopping_get_sku_latest_review_author('B1')", "Emma", 1.0),
        ("/", "last", "func:shopping_get_sku_latest_review_rating('B1')", "80", 1.0),
        ("/", "last", "func:shopping_get_sku_latest_review_rating('B2')", "80", 0.0),  # it has none
        ("/f/pics/12/a-title/-/comment/9", COMMENT, BODY, "from /f/pics", 1.0),
        ("/members", "last", "func:gitlab_get_project_memeber_role(__page__, 'grace')", "Guest", 1.0),
        ("/members", "last", "func:gitlab_get_project_memeber_role(__page__, 'ada')", "Guest", 0.0),
        ("/", "__SHOPPING__/members", "func:gitlab_get_project_memeber_role(__page__, 'eve')", "Guest", 0.0),
    ],
)
def test_helpers_ask_the_live_sites(shop, monkeypatch, start, url, locator, wanted, score):
    given, _, _ = shop
    monkeypatch.setenv("WA_SHOPPING_LOGIN", "admin:a:b")
    env = given(start_url=f"__SHOPPING__{start}", eval=html(url, locator, must_include=[wanted]))
    env.reset(options={"index": 0})
    *_, info = env.step("send_msg_to_user('done')")
    env.close()
    assert info["score"] == score


def test_a_shop_that_does_not_let_its_administrator_in_voids_the_episode(shop, monkeypatch):
    given, _, _ = shop
    monkeypatch.setenv("WA_SHOPPING_LOGIN", "admin:wrong")
    env = given(start_url="__SHOPPING__/", eval=html(LATEST, BODY, must_include=["x"]))
    env.reset(options={"index": 0})
    with pytest.raises(BackendError, match="401.*WA_SHOPPING_LOGIN"):
        env.step("send_msg_to_user('done')")
    env.close()


def test_a_preparing_script_that_fails_on_the_policy_s_page_voids_nothing(shop):
    given, _, _ = shop
    evaluation = html("last", BODY, must_include=["deeper"])
    evaluation["program_html"][0]["prep_actions"] = ["document.querySelector('#nowhere').click()"]
    env = given(start_url="__SHOPPING__/", eval=evaluation)
    env.reset(options={"index": 0})
    *_, info = env.step("send_msg_to_user('done')")
    env.close()
    assert info["score"] == 1.0


def stored(base: str) -> dict[str, Any]:
    """A sign-in as Playwright keeps it."""
    cookie = {"name": "session", "value": "e", "domain": "127.0.0.1", "path": "/", "expires": -1, "httpOnly": False}
    return {
        "cookies": [cookie | {"secure": False, "sameSite": "Lax"}],
        "origins": [{"origin": base, "localStorage": [{"name": "cart", "value": "3"}]}],
    }


@pytest.mark.parametrize("named", [True, False])
def test_a_task_begins_signed_in_with_what_is_stored_in_every_episode(shop, monkeypatch, tmp_path_factory, named):
    given, _, base = shop
    env = given(
        {"start_url": "__SHOPPING__/account", "eval": FOUND, "storage_state": "./.auth/shopping_state.json"},
        {"start_url": "__SHOPPING__/account", "eval": FOUND, "storage_state": None},
    )
    if named:
        folder = tmp_path_factory.mktemp("sign-ins")
        monkeypatch.setenv("WEBARENA_AUTH", str(folder))
    else:
        folder = Path(os.environ["WEBARENA_DATA"]).parent / ".auth"
        folder.mkdir()
    (folder / "shopping_state.json").write_text(json.dumps(stored(base)))
    for _ in range(2):  # the page signs out and overwrites what is stored
        first, _ = env.reset(options={"index": 0})
        assert "Signed in: Emma" in first["text"]
        assert "kept: 3" in first["text"]
    first, _ = env.reset(options={"index": 1})
    assert "Signed in: -" in first["text"]
    assert "kept: undefined" in first["text"]
    env.close()


def test_a_session_with_a_sign_in_that_is_opened_again_begins_signed_in_again(shop):
    _, _, base = shop
    session = BrowserSession(Sites(passed=frozenset({base}), stored=stored(base)))
    for _ in range(2):
        session.open(f"{base}/account")
        assert "Signed in: Emma" in session.look().text
    session.close()


def test_tasks_that_begin_signed_in_are_left_out_and_counted_where_nothing_is_stored(shop, caplog):
    given, _, _ = shop
    path = "./.auth/../shopping_state.json"
    env = given({"start_url": "__SHOPPING__/", "eval": FOUND, "storage_state": path}, {"start_url": "__SHOPPING__/"})
    with caplog.at_level(logging.WARNING):
        assert [item["storage_state"] for item in env.unwrapped.items()] == [None]
    folder = Path(os.environ["WEBARENA_DATA"]).parent / ".auth"
    assert f"1 begin signed in, and {folder}/shopping_state.json is not there ($WEBARENA_AUTH)" in caplog.text


@pytest.mark.parametrize("content", ["{", "[]", '{"cookies": [{"name": "x"}], "origins": []}', '{"cookies": []}'])
def test_a_sign_in_in_another_layout_is_refused_before_anything_is_played(shop, monkeypatch, tmp_path_factory, content):
    given, _, _ = shop
    folder = tmp_path_factory.mktemp("sign-ins")
    (folder / "shopping_state.json").write_text(content)
    monkeypatch.setenv("WEBARENA_AUTH", str(folder))
    env = given(start_url="__SHOPPING__/", eval=FOUND, storage_state="./.auth/shopping_state.json")
    with pytest.raises(InstanceError, match=r"shopping_state\.json is no storage state"):
        env.unwrapped.size()


def test_a_form_is_shown_as_html_whatever_its_fields_are_called():
    names = ("id", "className", "childNodes", "nodeType", "shadowRoot", "checkVisibility", "checked", "value")
    fields = "".join(f"<input name='{name}' value='v'>" for name in names)
    page = f"<form id='f' class='c'>{fields}</form>".encode()
    session = BrowserSession(Sites({"http://here.test": lambda request: Response(page)}))
    session.open("http://here.test/")
    shown = session.look("html").text
    session.close()
    assert re.search(r'<form bid="\w+" id="f" class="c">', shown)
    assert [name for name in names if f'name="{name}"' in shown] == [*names]


def test_webagent_r1_sees_its_placeholder_in_place_of_every_earlier_page():
    seen: list[list[str]] = []
    calls = iter(["goto('http://portal.test/catalogue')", "goto('http://portal.test/people')", "send_msg_to_user('?')"])

    def answer(conversation: Conversation) -> str:
        seen.append([message.text for message in conversation.messages])
        return next(calls)

    job = Job(task="lmgym/WebFormsArena-v0", split="test", index=0, id="0", options={"observe": "html"})
    with Engine(context=Stub(text="** Simplified html **", page="Address: ")) as engine:
        list(engine.run(Scripted("r1", answer), [job]))
    first, second, third = seen
    task = first[0].partition("Address: ")[0]
    assert own_tasks()[0]["intent"] in task
    assert len(first) == 1
    assert first[0].startswith(f"{task}Address: http://portal.test/\n")
    assert second[0] == third[0] == f"{task}** Simplified html **"
    assert second[2].startswith("Address: http://portal.test/catalogue")
    assert third[2] == "** Simplified html **"
    assert third[4].startswith("Address: http://portal.test/people")
    assert third[1::2] == ["goto('http://portal.test/catalogue')", "goto('http://portal.test/people')"]
