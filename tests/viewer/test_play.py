"""Playing on a page: clicks and words reach the task, and what it says is text."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pytest
from playwright import sync_api as playwright

from lmgym.env.env import Reply, TextEnv
from lmgym.env.registry import build
from lmgym.env.spaces import Images
from lmgym.env.spec import TaskSpec
from lmgym.errors import BackendError
from lmgym.viewer.local_server import HEADERS
from lmgym.viewer.play import PlayServer, PlaySession
from tests.command import command
from tests.viewer.conftest import opened, send
from tests.viewer.planted import ATTACKS

SPEC = TaskSpec(
    id="lmgym/Planted-v0",
    entry_point="tests.viewer.test_play:Planted",
    summary="Says nothing but attacks.",
    max_turns=99,
    splits={"test": 1},
    score="1",
    references={},
)


class Planted(TextEnv):
    """Every text is an attack, the click's action too; "break" breaks it."""

    SPEC = SPEC
    PICTURES = Images(40, 60)

    def begin(self, index: int) -> Reply:
        self.turn = 0
        return self._reply()

    def act(self, action: str) -> Reply:
        if action == "break":
            raise BackendError(ATTACKS[0])
        self.turn += 1
        return self._reply()

    def pointing(self, x: float, y: float) -> str:
        return f"{x:g} {y:g} {ATTACKS[1]}"

    def answer(self) -> str:
        return "the hidden truth"

    def _reply(self) -> Reply:
        return Reply(ATTACKS[self.turn % len(ATTACKS)], images=(np.full((40, 60, 3), 9 * self.turn, np.uint8),))


@contextmanager
def table(env, **more):
    """A page on which `env` can be played."""
    game = PlaySession(env, **more)
    site = PlayServer(game)
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield site
    finally:
        site.shutdown()
        thread.join()
        site.server_close()
        game.close()


@contextmanager
def page_of(chromium, env, **more):
    with table(env, **more) as site, opened(chromium, site.url) as (page, witness):
        yield page, witness, site


def turned(page, turn: str) -> None:
    page.wait_for_selector(f"html[data-turn='{turn}']")


def press(page, x: float, y: float) -> None:
    """Click pixel (x, y) of the picture, however large it is shown."""
    image = page.locator("#shown img")
    wide, high = image.evaluate("image => image.decode().then(() => [image.naturalWidth, image.naturalHeight])")
    box = image.bounding_box()
    border = 1
    scale = [(box["width"] - 2 * border) / wide, (box["height"] - 2 * border) / high]
    image.click(position={"x": border + (x + 0.5) * scale[0], "y": border + (y + 0.5) * scale[1]})


def test_a_click_on_the_picture_is_the_action_or_waits_in_the_field(chromium):
    env = build("click_target", split="test")
    with page_of(chromium, env, index=3) as (page, witness, _):
        page.uncheck("#direct")
        press(page, 5, 7)
        playwright.expect(page.locator("#action")).to_have_value("click(5,7)")
        turned(page, "0.0")
        page.check("#direct")
        left, top, right, bottom = env.unwrapped.box
        press(page, (left + right) // 2, (top + bottom) // 2)
        turned(page, "0.1done")
        assert page.locator("#status").inner_text() == "ended after 1 turns: return 1, score 1, success"
        assert page.locator("#action").is_disabled()
        assert witness.messages == []


def test_where_clicks_are_no_actions_the_place_is_written(chromium):
    env = Planted(split="test")
    env.pointing = lambda x, y: None
    with page_of(chromium, env) as (page, _, _):
        page.fill("#action", "look at ")
        press(page, 30, 20)
        playwright.expect(page.locator("#action")).to_have_value("look at 30, 20")


def test_a_click_on_the_first_picture_of_a_search_looks_closer(chromium):
    with page_of(chromium, build("visual_search", split="test"), index=3) as (page, _, _):
        press(page, 20, 30)
        turned(page, "0.1")
        assert page.locator(".past pre.said").inner_text() == "crop(20,30)"
        press(page, 8, 9)
        playwright.expect(page.locator("#action")).to_have_value("8, 9")


def test_keys_on_the_picture_are_typed_together_or_pressed_alone(chromium):
    env = Planted(split="test")
    env.pressing = "|".join
    with page_of(chromium, env) as (page, _, _):
        page.locator("#shown img").focus()
        page.keyboard.type("oK 1")
        page.keyboard.press("Control+s")
        page.keyboard.press("Shift+ArrowLeft")
        turned(page, "0.3")
        assert page.locator(".past pre.said").all_inner_texts() == ["Shift+ArrowLeft", "Control+s", "o|K| |1"]
        page.keyboard.press("Enter")  # the new picture has the focus
        turned(page, "0.4")
        page.keyboard.press("Shift+Tab")
        page.keyboard.type("x")
        page.fill("#action", "look")
        page.press("#action", "Enter")
        turned(page, "0.5")
        assert page.locator(".past pre.said").all_inner_texts()[:2] == ["look", "Enter"]


def test_a_key_without_an_action_is_said_and_plays_nothing(chromium):
    env = Planted(split="test")
    env.pressing = lambda keys: "a" if keys == ["a"] else None
    with page_of(chromium, env) as (page, _, _):
        page.locator("#shown img").focus()
        page.keyboard.press("Enter")
        playwright.expect(page.locator("#status")).to_have_text("The task has no action for this key.")
        page.keyboard.press("a")
        turned(page, "0.1")
        assert page.locator(".past pre.said").all_inner_texts() == ["a"]


def test_keys_reach_a_page_of_the_web_if_the_task_has_such_actions(chromium):
    env = build("miniwob", page="enter-text", pixels="screenshot", observe="none", split="test")
    with page_of(chromium, env, index=0) as (page, _, _):
        page.locator("#shown img").focus()
        page.keyboard.type("a'b")
        turned(page, "0.1")
        page.keyboard.press("Tab")
        turned(page, "0.2")
        said = page.locator(".past pre.said").all_inner_texts()
    assert said == ["keyboard_press('Tab')", 'keyboard_type("a\'b")']
    with page_of(chromium, build("click_target", split="test"), index=3) as (page, _, _):
        assert page.locator("#keyed").is_hidden()
        assert page.locator("#shown img[tabindex]").count() == 0


def test_words_are_typed_and_what_is_no_action_is_said(chromium):
    with page_of(chromium, build("wordle", split="test"), index=3) as (page, witness, _):
        page.fill("#action", "no word")
        page.press("#action", "Enter")
        turned(page, "0.1")
        assert page.locator(".past pre.said").inner_text() == "no word"
        assert "no valid action" in page.locator(".past p").inner_text()
        page.type("#action", "a")
        page.press("#action", "Shift+Enter")
        assert page.input_value("#action") == "a\n"
        assert witness.messages == []


def test_the_oracle_plays_on_and_another_episode_follows(chromium):
    with page_of(chromium, build("wordle", split="test"), adviser="oracle", index=3) as (page, _, _):
        page.click("#next")
        turned(page, "0.1done")
        assert page.locator("#status").inner_text().endswith("success")
        page.click("#again")
        turned(page, "1.0")
        assert page.locator(".past").count() == 0
        assert page.locator("#next").inner_text() == "next by oracle"


def test_a_page_of_the_web_is_played_by_its_picture(chromium):
    env = build("miniwob", page="click-test", pixels="screenshot", observe="none", split="test")
    with page_of(chromium, env, index=0) as (page, witness, _):
        x, y = env.unwrapped.browser.evaluate(
            "() => { const box = document.querySelector('#area button').getBoundingClientRect();"
            " return [box.left + box.width / 2, box.top + box.height / 2]; }"
        )
        press(page, x, y)
        turned(page, "0.1done")
        assert page.locator("#status").inner_text().endswith("success")
        assert page.locator(".past pre.said").inner_text().startswith("mouse_click(")
        assert witness.messages == []


def test_the_shop_is_played_by_words_and_by_mouse(chromium):
    env = build("WebShopBrowser-v0", split="test", pixels="screenshot", observe="none")
    with page_of(chromium, env, index=3, adviser="oracle") as (page, witness, _):
        page.click("#next")  # what is searched for
        turned(page, "0.1")
        tree = env.unwrapped.browser.look("axtree", places=True).text
        x, y = map(int, re.search(r"button 'Search', at=\"(\d+),(\d+)\"", tree).groups())
        press(page, x, y)
        turned(page, "0.2")
        assert "/search_results/" in page.locator("pre.seen").inner_text()
        assert page.locator(".past pre.said").first.inner_text().startswith("mouse_click(")
        assert witness.messages == []


def test_planted_attacks_are_text_on_the_page(chromium):
    with page_of(chromium, Planted(split="test")) as (page, witness, site):
        for turn in range(len(ATTACKS)):
            playwright.expect(page.locator("pre.seen")).to_have_count(1)
            press(page, 10, 10)
            turned(page, f"0.{turn + 1}")
        page.fill("#action", ATTACKS[2])
        page.press("#action", "Enter")
        turned(page, f"0.{len(ATTACKS) + 1}")
        assert page.evaluate("window.planted") is None
        assert witness.dialogs == witness.messages == []
        assert [address for address in witness.requests if not address.startswith(site.url)] == []
        assert page.locator("article script, article svg, iframe, base, object, a").count() == 0
        assert page.locator("article img:not([src^='picture/'])").count() == 0
        assert page.locator("[onerror], [onload], [onfocus], [onclick]").count() == 0


def test_what_breaks_voids_the_episode_and_the_next_one_can_be_played(chromium):
    with page_of(chromium, Planted(split="test")) as (page, _, _):
        page.fill("#action", "break")
        page.click("#send")
        turned(page, "0.0void")
        assert ATTACKS[0] in page.locator("pre.seen").inner_text()
        page.click("#again")
        turned(page, "1.0")


ACTION = b'{"turn": 0, "action": "look"}'


def post(
    site, name: str, content: bytes = b"{}", *, token="", host="127.0.0.1", kind="application/json", length=None
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and content of the answer to a POST of bytes."""
    path = f"/{token}/{name}" if token else urlsplit(site.url).path + name
    length = str(len(content)) if length is None else length
    headers = [f"Host: {host}:{site.server_port}", f"Content-Type: {kind}", f"Content-Length: {length}"]
    return send(site, path, *headers, method="POST", content=content)


@pytest.fixture(scope="module")
def planted():
    with table(Planted(split="test")) as site:
        yield site


def test_what_is_hidden_is_not_sent_and_an_answer_to_another_turn_is_refused(planted):
    status, headers, content = post(planted, "again")
    assert status == 200
    assert HEADERS.items() <= headers.items()
    assert b"hidden truth" not in content
    turn = json.loads(post(planted, "again")[2])["turn"]
    status, _, content = post(planted, "act", json.dumps({"turn": turn + 1, "action": "look"}).encode())
    assert (status, "earlier turn" in json.loads(content)["error"]) == (422, True)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("act", content) for content in (b"", b"{", b"[]", b"{}", b"\xff", b"[" * 200_000)),
        ("act", b'{"turn": 0}'),
        ("act", b'{"turn": true, "action": "a"}'),
        ("act", b'{"turn": 0, "action": 3}'),
        *(("press", content) for content in (b"{}", b'{"keys": []}', b'{"keys": [1]}', b'{"keys": ["a", "Enter"]}')),
        ("point", b"{}"),
        ("point", b'{"x": 1' + b"0" * 400 + b', "y": 1}'),
        ("point", b'{"x": NaN, "y": 1}'),
        ("point", b'{"x": "1", "y": 1}'),
        ("point", b'{"x": true, "y": 1}'),
    ],
)
def test_invalid_content_is_refused_and_the_game_goes_on(planted, name, content):
    post(planted, "again")
    assert post(planted, name, content)[0] == 422
    assert post(planted, "act", ACTION)[0] == 200


FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
LENGTHS = ("-1", "99999999", "999999999999999999", "0" * 9 + "9" * 10, "0" * 5000, "x", "", "\xb2")


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"token": "wrong"}, 404),
        ({"name": "state.json"}, 404),
        ({"name": "../app.js"}, 404),
        ({"host": "evil.example"}, 421),
        *(({"kind": kind}, 400) for kind in FORMS),
        *(({"length": length, "content": b""}, 400) for length in LENGTHS),
    ],
)
def test_a_request_with_one_wrong_part_plays_nothing(planted, changes, status):
    post(planted, "again")
    assert post(planted, **{"name": "act", "content": ACTION, **changes})[0] == status
    assert planted.game.state()["turn"] == 0


def test_the_command_serves_until_it_is_interrupted():
    words = [sys.executable, "-c", "from lmgym.cli import main; main()", "play", "click_target", "--player", "oracle"]
    with subprocess.Popen([*words, "--index", "3"], stdout=subprocess.PIPE, text=True) as process:
        url = re.search(r"play at (http://127\.0\.0\.1:\d+/\S+/)", process.stdout.readline())[1]
        post = Request(url + "next", b'{"turn": 0}', {"Content-Type": "application/json"})
        with urlopen(post, timeout=20) as answer:
            assert json.load(answer)["success"] is True
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) == 0


def test_the_terminal_can_be_asked_for(capsys):
    words = ("play", "click_target", "--player", "oracle", "--index", "3", "--terminal")
    assert command(*words) == 0
    assert "success True" in capsys.readouterr().out


def test_a_taken_port_and_an_unknown_player_are_one_line(capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert command("play", "click_target", "--port", str(port)) == 2
    assert f"cannot listen on port {port}" in capsys.readouterr().err
    assert command("play", "click_target", "--player", "nobody") == 2
    assert "human, oracle or demonstrator" in capsys.readouterr().err
