"""The browser behind synchronous calls: threads, loops, forks, time, what is shown, what may be done."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from lmgym.backends.browser import process
from lmgym.backends.browser.actions import Actions
from lmgym.backends.browser.calls import SETS, action_names, describe
from lmgym.backends.browser.context import IsolatedContext
from lmgym.backends.browser.gate import Request, Response, Sites
from lmgym.backends.browser.keys import KEYS, unknown
from lmgym.backends.browser.session import BrowserSession
from lmgym.errors import BackendError, InstanceError, MissingExtra
from tests.components import chromium

from .pages import HERE, Site, serving, sites

chromium()


@pytest.fixture(scope="module")
def site() -> Site:
    return Site()


@pytest.fixture(scope="module")
def session(site: Site) -> Iterator[BrowserSession]:
    opened = BrowserSession(sites(site), sets=SETS, size=(640, 480))
    yield opened
    opened.close()


def bid(session: BrowserSession, words: str) -> str:
    """The bid that the tree shows before these words."""
    found = re.search(rf"\[(\w+)\] [^\n]*{re.escape(words)}", session.look().text)
    assert found is not None, session.look().text
    return found[1]


def title(session: BrowserSession) -> str:
    return str(session.evaluate("document.title"))


def test_a_link_is_followed_and_its_page_is_there_at_once(session):
    session.open(HERE + "/")
    assert session.do("click", [bid(session, "link 'Next'")]) == ""
    assert session.look().url == HERE + "/next"
    assert "second page" in session.look().text
    assert session.do("go_back") == ""
    assert title(session) == "Start"
    assert session.do("go_forward") == ""
    assert title(session) == "Next"


def test_a_form_reaches_the_server_with_all_that_was_filled_in(session, site):
    session.open(HERE + "/form")
    assert session.do("fill", [bid(session, "textbox 'Name'"), "Ünal & 漢字"]) == ""
    assert session.do("check", [bid(session, "checkbox")]) == ""
    assert session.do("select_option", [bid(session, "combobox"), "blue"]) == ""
    assert session.do("click", [bid(session, "button 'Send'")]) == ""
    assert title(session) == "Said"
    assert (
        site.said[-1]
        == "name=Ünal+%26+漢字&sure=yes&colour=b".replace("Ünal", "%C3%9Cnal")
        .replace("漢字", "%E6%BC%A2%E5%AD%97")
        .encode()
    )


def test_a_page_s_time_stands_still_but_for_actions(session):
    session.open(HERE + "/clock")
    read = "now.textContent"
    assert session.evaluate(read) == ""
    session.wait()
    first = session.evaluate(read)
    assert session.evaluate("new Promise(done => __pwClock.builtins.setTimeout(done, 200))") is None
    assert session.evaluate(read) == first
    session.do("noop", [2000])
    then, now = (float(text.split()[0]) for text in (first, session.evaluate(read)))
    assert now - then == 2000


def test_two_sessions_of_one_page_show_the_same_time(session, site):
    other = BrowserSession(sites(site))
    texts = []
    for each in (session, other):
        each.open(HERE + "/clock")
        each.wait()
        texts.append(each.evaluate("now.textContent"))
    other.close()
    assert texts[0] == texts[1] != ""


def test_what_a_page_does_later_waits_for_the_next_action(session):
    session.open(HERE + "/late")
    session.do("click", [bid(session, "later")])
    assert title(session) == ""
    session.wait()
    assert title(session) == "late"


def test_elements_of_frames_have_the_frame_s_letter_and_can_be_used(session):
    session.open(HERE + "/frames")
    tree = session.look().text
    assert re.search(r"\[a\] Iframe", tree), tree
    assert session.do("click", [bid(session, "button 'Press'")]) == ""
    assert "button 'pressed'" in session.look().text
    deep = bid(session, "textbox 'deep'")
    assert re.fullmatch(r"aa\d+", deep)
    assert session.do("fill", [deep, "found"]) == ""
    assert "value='found'" in session.look().text


def test_bids_count_standard_elements_in_document_order_and_stay(session):
    session.open(HERE + "/")
    session.look()
    # html 0, head 1, title 2, body 3, h1 4, a 5
    assert session.evaluate("[...document.querySelectorAll('*')].map(e => e.localName + e.getAttribute('bid'))") == [
        *("html0", "head1", "title2", "body3", "h14", "a5")
    ]
    session.evaluate(
        "() => document.querySelector('h1').insertAdjacentHTML('beforebegin', '<p>new<x-own></x-own></p>')"
    )
    session.look()
    assert session.evaluate("[...document.querySelectorAll('p, h1, a, x-own')].map(e => e.getAttribute('bid'))") == [
        *("6", None, "4", "5")
    ]


def test_elements_in_a_shadow_and_below_the_window_are_clicked_and_buried_ones_are_not(session):
    session.open(HERE + "/shadow")
    inner, after = bid(session, "in the shadow"), bid(session, "button 'after'")
    assert int(inner) < int(after)
    assert session.do("click", [inner]) == ""
    session.open(HERE + "/buried")
    assert "is covered by other elements" in session.do("click", [bid(session, "under")])
    session.open(HERE + "/tall")
    assert session.do("click", [bid(session, "low")]) == ""
    assert title(session) == "low"
    assert session.do("scroll", [0, -5000]) == ""
    assert session.evaluate("scrollY") == 0
    assert session.do("scroll_at", [100, 100, 0, 700]) == ""
    assert session.evaluate("scrollY") == 700
    assert session.do("scroll_at", [], {"x": 100, "y": 100, "dx": 0, "dy": -300}) == ""
    assert session.evaluate("scrollY") == 400


def test_html_and_places_say_where_elements_are_and_a_half_covered_one_is_clicked_where_it_shows(session):
    session.open(HERE + "/covered")
    seen = session.look("html", places=True)
    assert re.search(r'<button bid="\d+" id="under" at="50,30">under</button>', seen.text), seen.text
    assert "[3] button" not in session.look("axtree").text or "at=" not in session.look("axtree").text
    assert session.do("click", [bid(session, "under")]) == ""
    assert title(session) == "hit"


def test_pictures_have_the_window_s_size_and_marks_are_drawn_on_them(session):
    session.open(HERE + "/form")
    plain, marked = session.look("none", "screenshot").picture, session.look("none", "som").picture
    assert plain.shape == marked.shape == (480, 640, 3)
    assert plain.dtype == np.uint8
    assert (plain != marked).any(axis=2).sum() > 100
    assert np.array_equal(plain, session.look("none", "screenshot").picture)


def test_keys_are_pressed_typed_and_inserted_and_half_a_character_refused_before(session):
    session.open(HERE + "/keys")
    field = bid(session, "textbox")
    assert session.do("focus", [field]) == ""
    for name in ("keyboard_type", "keyboard_insert_text"):
        assert "half a character" in session.do(name, ["ab\ud800"])
    assert (title(session), session.evaluate("a.value")) == ("", "")
    for name, arguments in (("keyboard_type", ["ab"]), ("press", [field, "Shift+X"])):
        assert session.do(name, arguments) == ""
    assert session.do("keyboard_insert_text", ["漢"]) == ""
    assert title(session) == "abShiftX"
    assert session.evaluate("a.value") == "abX漢"
    assert "Unknown key" in session.do("keyboard_press", ["NoSuchKey"])


def test_the_keys_are_those_of_the_browser(session):
    session.open(HERE + "/")
    owner, page = process.shared_browser(), session._context.tab.page

    async def taken(key: str) -> bool:
        from playwright.async_api import Error

        try:
            await page.keyboard.down(key)
            await page.keyboard.up(key)
        except Error as error:
            return "Unknown key" not in str(error)
        return True

    session.evaluate("addEventListener('keydown', event => event.preventDefault())")
    others = ["", "Nope", "enter", "a b", "é", "漢", "F13", "Numpad", "ShiftShift", "\t", "\x00", "Control+a"]
    assert {key for key in [*KEYS, *others] if owner.run(taken(key), 10)} == KEYS


def test_a_combination_with_an_unknown_key_presses_none(session):
    combinations = {"Enter": None, "Control+Shift+a": None, "Shift++": None, "+": None, "++a": None}
    combinations |= {"Enter+Nope": "Nope", "Nope+Enter": "Nope", "Control+": "", "": "", "Enter+Enter+é": "é"}
    assert {keys: unknown(keys) for keys in combinations} == combinations
    session.open(HERE + "/keys")
    field = bid(session, "textbox")
    for keys, wrong in combinations.items():
        for name, arguments in (("press", [field, keys]), ("keyboard_press", [keys])):
            session.evaluate("document.title = ''")
            assert (session.do(name, arguments) == "") is (wrong is None)
            assert (title(session) == "") is (wrong is not None)


def test_a_drag_without_a_target_presses_no_button_and_one_whose_target_goes_away_lets_go(session):
    session.open(HERE + "/form")
    session.evaluate("() => { document.onmousedown = event => { document.title = event.type; }; }")
    assert "no element with bid '999'" in session.do("drag_and_drop", [bid(session, "button 'Send'"), "999"])
    assert title(session) == "Form"
    session.open(HERE + "/form")
    session.evaluate("() => { document.onclick = event => { document.title += event.target.tagName; }; }")
    session.evaluate("() => { document.onmousedown = () => { document.querySelector('select').remove(); }; }")
    button, target = bid(session, "button 'Send'"), bid(session, "combobox")
    assert "no element with bid" in session.do("drag_and_drop", [button, target])
    assert title(session) in ("Form", "FormHTML")  # the whole page may hear of it, no element does
    session.evaluate("() => { document.onmousemove = event => { document.title = String(event.buttons); }; }")
    session.do("mouse_move", [5, 5])
    assert title(session) == "0"


def test_an_option_is_chosen_by_value_label_or_text_and_a_modifier_held_while_an_element_is_clicked(session):
    session.open(HERE + "/form")
    session.evaluate(
        """() => { document.querySelector('select').insertAdjacentHTML('beforeend', `
        <option value="t" label="tinted">shade</option><option disabled>grey</option>
        <optgroup label="not now" disabled><option>pink</option></optgroup>`); }"""
    )
    field = bid(session, "combobox")
    for options, value in (("t", "t"), ("red", "red"), (["tinted"], "t"), (" blue ", "b"), ("shade", "t"), ("b", "b")):
        assert session.do("select_option", [field, options]) == ""
        assert session.evaluate("document.querySelector('select').value") == value
    for closed in ("grey", "pink", "no such", ""):
        assert "has no option" in session.do("select_option", [field, closed])
    session.evaluate("() => { document.onclick = event => { document.title = String(event.ctrlKey); }; }")
    assert session.do("click", [bid(session, "textbox 'Name'"), "left", ["ControlOrMeta"]]) == ""
    assert title(session) == "true"


def test_tabs_open_close_and_are_limited_and_far_away_coordinates_do_nothing(session):
    session.open(HERE + "/")
    assert session.do("mouse_click", [1e300, -1e300]) == ""
    assert session.do("mouse_drag_and_drop", [0, 0, 1e9, 1e9]) == ""
    assert title(session) == "Start"
    assert session.do("new_tab") == ""
    assert session.do("goto", [HERE + "/next"]) == ""
    assert session.look().active == 1
    assert [name for name, _ in session.look().tabs] == ["Start", "Next"]
    assert session.do("tab_focus", [0]) == ""
    assert title(session) == "Start"
    assert session.do("tab_close") == ""
    assert title(session) == "Next"
    assert session.do("tab_close") == ""
    assert session.look().url == "about:blank"
    assert "there is no tab 3" in session.do("tab_focus", [3])


def test_words_to_the_user_are_kept_for_the_task(session):
    session.open(HERE + "/")
    session.do("send_msg_to_user", ["42"])
    assert session.messages == ("42",)
    session.do("report_infeasible", ["no such page"])
    assert session.infeasible == "no such page"
    session.open(HERE + "/")
    assert (session.messages, session.infeasible) == ((), None)


def test_open_forgets_everything(session):
    texts = []
    for _ in range(2):
        session.open(HERE + "/store")
        texts.append(session.evaluate("seen.textContent"))
    assert texts[0] == texts[1] == "|||" + texts[0].split("|")[3] + "|"


@pytest.mark.parametrize("name", ["hover", "click", "keyboard_down", "mouse_down", "new_tab", "go_back", "fly"])
def test_an_opened_page_feels_nothing_of_what_was_done_before(session, name):
    arguments = {"keyboard_down": ["Shift"], "mouse_down": [300, 200]}
    felt = []
    for _ in range(3):  # the first may be in a new tab, the third in a used one
        session.open(HERE + "/felt")
        session.do("mouse_click", [320, 240])
        session.do("scroll", [0, 100])
        session.do("keyboard_press", ["a"])
        felt.append(session.evaluate("felt.join(' ')"))
        button = [bid(session, "button 'one'")] if name in ("hover", "click") else []
        assert (name == "fly") is (session.do(name, arguments.get(name, button)) != "")
    assert felt[0] == felt[1] == felt[2]
    assert "mousedown 320,240 1 false" in felt[0]
    assert "keydown a" in felt[0]


def test_a_used_tab_serves_again_unless_something_stays_in_it(session):
    tabs, held, wrong = [], ("keyboard_down", "a"), ("click", "99")
    for name, *arguments in (("noop",), ("mouse_move", 9, 9), held, ("noop",), wrong, ("noop",)):
        session.open(HERE + "/form")
        tabs.append(session._run(tab_of))
        session.do(name, arguments)
    assert [before is after for before, after in pairwise(tabs)] == [True, True, False, True, False]


async def tab_of(context: IsolatedContext) -> object:
    return context.tab


def test_a_click_waits_for_the_picture_that_is_shown_under_the_mouse_alone():
    page = b"""<style>b { display: inline-block; content: url(/away.svg); } b:hover { content: url(/over.svg); }</style>
    <b onclick='document.title = "hit"'></b>"""
    picture = b"<svg xmlns='http://www.w3.org/2000/svg' width='40' height='40'/>"

    def site(request: Request) -> Response:
        if request.path == "/over.svg":
            time.sleep(0.5)
        return Response(picture, "image/svg+xml") if request.path.endswith(".svg") else Response(page)

    with serving(site) as place:
        session = BrowserSession(Sites(passed=frozenset({place})), sets=SETS)
        session.open(place + "/")
        assert session.do("mouse_click", [25, 25]) == ""
        assert title(session) == "hit"
        session.close()


@pytest.mark.parametrize(
    ("name", "arguments", "wrong"),
    [
        ("fly", [], "there is no action 'fly'"),
        ("click", [], "missing a required argument: 'bid'"),
        ("click", ["1", "left", [], 4], "too many positional arguments"),
        ("click", [["1"]], "bid takes str"),
        ("click", ["1", "upper"], "button takes Button"),
        ("click", ["999"], "no element with bid '999'"),
        ("click", ["zz9"], "no element with bid 'zz9'"),
        ("click", ["'] body"], "is no bid"),
        ("mouse_click", ["left", 3], "x takes float"),
        ("mouse_click", [float("nan"), 3], "x takes float"),
        ("noop", [-1], "wait_ms is between 0 and"),
        ("noop", [1e9], "wait_ms is between 0 and"),
        ("goto", ["javascript:alert(1)"], "outside of this task's sites"),
        ("upload_file", ["1", "/etc/passwd"], "is no file of this task"),
        ("fill", ["4", "x"], "not an <input>"),
        ("keyboard_type", ["x" * 5000], "use keyboard_insert_text"),
        ("evaluate", ["1"], "there is no action"),
        ("__init__", ["1"], "there is no action"),
    ],
)
def test_an_action_that_cannot_be_done_is_answered(session, name, arguments, wrong):
    session.open(HERE + "/")
    session.look()
    assert wrong in session.do(name, arguments)
    assert title(session) == "Start"


def test_every_action_is_described():
    lines = describe(action_names(SETS)).splitlines()
    assert lines[0] == "scroll(delta_x, delta_y): Turn the wheel by pixels, right and down."
    public = {name for name, value in vars(Actions).items() if callable(value) and not name.startswith("_")}
    assert sorted(line.partition("(")[0] for line in lines) == sorted(public)


def test_only_the_listed_actions_are_named_and_allowed(site):
    session = BrowserSession(sites(site), sets=SETS, only="click, noop")
    assert session.names == ("click", "noop")
    session.open(HERE + "/")
    assert "no action 'goto'" in session.do("goto", [HERE + "/next"])
    assert session.do_as_task("goto", HERE + "/next") == ""
    assert session.look().url == HERE + "/next"
    session.close()
    with pytest.raises(InstanceError, match="unknown action 'clikc'; choose scroll, fill"):
        action_names(SETS, "click,clikc")


def test_sessions_work_from_many_threads_at_once(site):
    def visit(number: int) -> str:
        session = BrowserSession(sites(site))
        session.open(HERE + f"/next?{number}")
        session.do("click", [bid(session, "link 'Back'")])
        url = session.look().url
        session.close()
        return url

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(visit, range(4))) == [HERE + "/"] * 4


def test_a_session_works_inside_a_running_event_loop(site):
    async def cell() -> str:
        session = BrowserSession(sites(site))
        session.open(HERE + "/next")
        text = session.look().text
        session.close()
        return text

    assert "second page" in asyncio.run(cell())


def contexts() -> tuple[int, int]:
    """Return the number of sessions of the browser, and of its contexts."""
    owner = process.shared_browser()
    return owner.sessions, len(owner.run(owner.ready(), 60).chromium.contexts)


def check_contexts(count: tuple[int, int]) -> None:
    """Check that so many sessions and contexts are left: they end in the background."""
    deadline = time.monotonic() + 30
    while contexts() != count:
        assert time.monotonic() < deadline, f"{contexts()}, not {count}"
        time.sleep(0.05)


@pytest.mark.parametrize(("name", "error"), [("late", BackendError), ("interrupted", KeyboardInterrupt)])
def test_a_context_that_is_not_awaited_to_its_start_is_closed(session, site, monkeypatch, name, error):
    session.open(HERE + "/")
    before, start = contexts(), IsolatedContext.start

    async def slow(context):
        if name == "interrupted":
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(1.0)
        await start(context)
        started.set()

    started = threading.Event()
    monkeypatch.setattr(IsolatedContext, "start", slow)
    monkeypatch.setattr("lmgym.backends.browser.session.OPENING", 0.5 if name == "late" else 60.0)
    with pytest.raises(error):
        BrowserSession(sites(site)).open(HERE + "/")
    assert started.wait(30)
    check_contexts(before)


def test_an_interrupt_before_the_wait_for_a_start_closes_the_context(session, site, monkeypatch):
    session.open(HERE + "/")
    before, start, submit = contexts(), IsolatedContext.start, asyncio.run_coroutine_threadsafe
    begun, started = threading.Event(), threading.Event()

    async def announced(context):
        begun.set()
        await start(context)
        started.set()

    def interrupted(work, loop):
        submit(work, loop)
        assert begun.wait(30)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(IsolatedContext, "start", announced)
        patch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
        with pytest.raises(KeyboardInterrupt):
            BrowserSession(sites(site)).open(HERE + "/")
    assert started.wait(30)
    check_contexts(before)


def test_an_action_that_is_interrupted_closes_the_session(site, monkeypatch):
    session = BrowserSession(sites(site))
    session.open(HERE + "/")
    before = contexts()

    async def endless(context, ms):
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(600)

    with monkeypatch.context() as patch:
        patch.setattr(IsolatedContext, "advance", endless)
        with pytest.raises(KeyboardInterrupt):
            session.wait()
    with pytest.raises(BackendError, match="not open"):
        session.wait()
    check_contexts((before[0] - 1, before[1] - 1))
    session.open(HERE + "/")
    assert title(session) == "Start"
    session.close()


def _in_child(pipe, session: BrowserSession) -> None:
    try:
        session.look()
    except BackendError as error:
        pipe.send(str(error))
    own = BrowserSession(sites(Site()))
    own.open(HERE + "/next")
    pipe.send(own.look().text)
    own.close()


def test_a_forked_child_has_a_browser_of_its_own(session):
    session.open(HERE + "/")
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_in_child, args=(there, session))
    child.start()
    assert "belongs to the parent process" in here.recv()
    assert "second page" in here.recv()
    child.join(20)
    assert child.exitcode == 0
    assert title(session) == "Start"


def test_the_browser_runs_in_its_sandbox_but_for_root_and_the_log_says_which(caplog):
    caplog.set_level(logging.INFO, logger="lmgym.backends.browser")
    own = process.BrowserThread()
    session_of_own = own.run(own.ready(), 60)
    assert session_of_own.alive
    arguments = Path(f"/proc/{session_of_own.pid}/cmdline").read_bytes().split(b"\0")
    own.close()
    assert (b"--no-sandbox" in arguments) is (os.geteuid() == 0)
    wanted = "without its sandbox, since this is root" if os.geteuid() == 0 else "in its own sandbox"
    assert wanted in caplog.text


def test_a_missing_browser_is_one_line(monkeypatch):
    monkeypatch.setenv("PATH", "/nonexistent")
    monkeypatch.delenv(process.EXECUTABLE, raising=False)
    with pytest.raises(MissingExtra, match=r"no Chromium found: apt-get install chromium, or set \$LMGYM_CHROMIUM"):
        process.executable()
    monkeypatch.setenv(process.EXECUTABLE, "/nonexistent/chromium")
    with pytest.raises(MissingExtra, match="which is no file"):
        process.executable()


def test_an_evaluation_without_a_browser_says_so_in_one_line(tmp_path):
    command = [str(Path(sys.executable).with_name("lmgym")), "eval", "MiniWoB-click-button-v0", "--model", "oracle"]
    environment = {**os.environ, process.EXECUTABLE: "/nonexistent/chromium"}
    said = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert said.stderr == "lmgym: $LMGYM_CHROMIUM names /nonexistent/chromium, which is no file\n"
    assert (said.stdout, said.returncode) == ("", 2)
