"""Limits on what pages can reach, and sessions whose browser breaks."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import ProxyHandler, build_opener

import pytest

pytest.importorskip("playwright")

from lmgym.backends.browser import process, view
from lmgym.backends.browser.calls import SETS
from lmgym.backends.browser.gate import Response, Sites, folder, origin
from lmgym.backends.browser.process import descendants
from lmgym.backends.browser.session import BrowserSession
from lmgym.errors import BackendError, InstanceError
from tests.processes import gone

from .pages import HERE, THERE, Site, serving, sites
from .test_browser import bid, title

SHORT = 4.0  # seconds that a hopeless page is given here


@pytest.fixture
def session() -> Iterator[BrowserSession]:
    opened = BrowserSession(sites(Site()), sets=SETS, size=(400, 300))
    yield opened
    opened.close()


def running() -> process.BrowserProcess:
    owner = process.shared_browser()
    return owner.run(owner.ready(), 60)


def test_pages_load_nothing_from_elsewhere_and_it_is_counted(session):
    session.open(HERE + "/outside")
    session.wait()
    assert session.blocked[THERE] == 2  # the picture and the frame
    assert session.blocked["http://127.0.0.1:8123"] == 1
    assert session.blocked[f"websocket {THERE}"] == 1
    assert session.blocked["http://webrtc.refused.invalid"] == 1
    assert title(session) == "NotSupportedError"


def test_a_redirect_to_elsewhere_is_blocked(session):
    session.open(HERE + "/redirected")
    session.do("click", [bid(session, "away")])
    assert session.blocked[THERE] >= 1  # some builds ask again
    assert "landed" not in session.look().text


@pytest.mark.parametrize(("words", "counted"), [("there", THERE), ("file", "file:"), ("data", "data:")])
def test_links_lead_nowhere_else_and_are_counted(session, words, counted):
    session.open(HERE + "/links")
    assert session.do("click", [bid(session, f"link '{words}'")]) == ""
    assert session.blocked == {counted: 1}
    if words == "there":  # the gate's answer has the address that was asked for
        assert session.look().url == THERE + "/"
        assert session.evaluate("document.body.innerText") == "blocked"
    else:
        assert session.look().url == HERE + "/links"


@pytest.mark.parametrize("scheme", ["file", "data"])
@pytest.mark.parametrize("script", ["url => { location.href = url; }", "url => { window.open(url); }"])
def test_scripts_lead_nowhere_else_and_are_counted(session, scheme, script):
    session.open(HERE + "/links")
    session.evaluate(script, {"file": "file:///etc/passwd", "data": "data:text/html,<h1>hi"}[scheme])
    session.wait()
    assert session.blocked == {f"{scheme}:": 1}
    assert session.look().tabs == (("", HERE + "/links"),)


def test_a_page_cannot_pretend_that_it_was_refused_something(session):
    session.open(HERE + "/")
    session.evaluate("console.error('Not allowed to load local resource: file:///etc/passwd')")
    session.wait()
    assert session.blocked == {}


def test_downloads_are_refused_and_counted(session):
    session.open(HERE + "/links")
    session.evaluate("document.querySelector('a[download]').click()")
    session.wait()
    deadline = time.monotonic() + 10
    while not session.blocked["download"] and time.monotonic() < deadline:
        session.wait()
    assert session.blocked["download"] == 1


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "data:text/html,x", "chrome://version", THERE, "http://127.0.0.1:1"]
)
def test_goto_stays_within_the_sites_and_is_counted(session, url):
    session.open(HERE + "/")
    assert "outside of this task's sites" in session.do("goto", [url])
    assert session.blocked["navigation"] == 1
    assert title(session) == "Start"


def test_pop_ups_are_tabs_up_to_eight_and_the_others_are_counted(session):
    session.open(HERE + "/popups")
    session.do("click", [bid(session, "go")])
    assert len(session.look().tabs) == 8
    assert session.blocked == {"pop-up": 13}  # of 20, beside the tab that asked


@pytest.mark.parametrize(
    "register",
    [
        "navigator.serviceWorker.register('/worker.js')",
        "ServiceWorkerContainer.prototype.register.call(navigator.serviceWorker, '/worker.js')",
    ],
)
def test_a_service_worker_of_an_allowed_origin_is_blocked_and_counted(register):
    site = Site()
    with serving(site) as address:  # on loopback: elsewhere pages without TLS know no service workers
        session = BrowserSession(Sites(passed=frozenset({address})))
        session.open(address + "/")
        assert session.evaluate(f"{register}.catch(error => error.name)") == "NotSupportedError"
        session.wait()
        assert session.evaluate("navigator.serviceWorker.getRegistrations().then(all => all.length)") == 0
        assert session.blocked == {"http://serviceworker.refused.invalid": 1}
        assert site.asked["/worker.js"] == 0
        session.close()


def test_no_worker_tells_a_page_the_real_time_and_one_without_tls_knows_no_service_workers(session):
    session.open(HERE + "/")
    script = """() => {
        const frame = document.body.appendChild(document.createElement('iframe')).contentWindow;
        return [window, frame].flatMap(view => ['Worker', 'SharedWorker'].map(kind => {
            try { new view[kind](URL.createObjectURL(new Blob(['postMessage(Date.now())']))); return 'there'; }
            catch (error) { return error.name + (view.Date.now() - Date.now()); }
        })); }"""
    assert session.evaluate(script) == ["NotSupportedError0"] * 4
    session.wait()
    assert session.blocked == {"http://worker.refused.invalid": 4}
    assert session.evaluate("typeof navigator.serviceWorker") == "undefined"


def test_a_site_over_the_network_has_its_workers():
    site = Site()
    with serving(site) as address:
        session = BrowserSession(Sites(passed=frozenset({address})))
        session.open(address + "/")
        script = "new Promise(done => { new Worker('data:,postMessage(7)').onmessage = event => done(event.data); })"
        assert session.evaluate(script) == 7
        session.close()


def test_dialogs_are_answered_and_told(session):
    session.open(HERE + "/alert")
    session.do("click", [bid(session, "warn")])
    assert session.look().dialogs == ("alert: mind the gap",)
    session.do("click", [bid(session, "ask")])
    assert session.look().dialogs == ("confirm: sure?",)
    assert title(session) == ""


def test_a_page_that_closes_itself_leaves_the_others(session):
    session.open(HERE + "/close")
    session.do("click", [bid(session, "link 'open'")])
    assert session.look().url == HERE + "/closing"
    session.do("click", [bid(session, "close")])
    assert title(session) == "Closing"


def test_endless_redirects_of_a_server_end_and_its_mistake_voids_the_episode(session):
    session.open(HERE + "/")
    assert "ERR_TOO_MANY_REDIRECTS" in session.do("goto", [HERE + "/round"])
    with pytest.raises(BackendError, match="a mistake of the site"):
        session.do("goto", [HERE + "/broken"])


def test_a_page_that_is_left_while_it_is_looked_at_gives_way_to_the_next(session, monkeypatch):
    session.open(HERE + "/")
    mark, left = view.mark, []

    async def leaving(context, *hidden):
        if not left:
            left.append(context.tab.page.url)
            await context.tab.page.evaluate(
                "to => { location.href = to; return new Promise(() => {}); }", HERE + "/next"
            )
        return await mark(context, *hidden)

    monkeypatch.setattr(view, "mark", leaving)
    assert session.look().url == HERE + "/next"
    assert left == [HERE + "/"]


@pytest.mark.parametrize("text", ["none", "axtree", "html"])
def test_a_page_without_an_element_is_looked_at(session, text):
    session.open(HERE + "/")
    session.evaluate("() => document.documentElement.remove()")
    assert session.look(text).url == HERE + "/"


def stays(session: BrowserSession) -> bool:
    """Return True if the page is not left for half a second."""
    url = session.look("none").url
    time.sleep(0.5)
    return url.startswith(HERE + "/again") and session.look("none").url == url


@pytest.mark.slow
def test_endless_redirects_of_a_page_are_stopped(session):
    session.open(HERE + "/")
    session.do("goto", [HERE + "/again"])
    assert stays(session)


def test_a_stop_that_comes_between_two_redirects_is_repeated(session, monkeypatch):
    monkeypatch.setattr("lmgym.backends.browser.actions.LOAD", 500)
    monkeypatch.setattr("lmgym.backends.browser.context.SETTLE", 0.5)
    session.open(HERE + "/")
    devtools = session._context.tab.devtools
    send, stops = devtools.send, 0

    async def late(method, *arguments):
        nonlocal stops
        stops += method == "Page.stopLoading"
        return {} if method == "Page.stopLoading" and stops <= 2 else await send(method, *arguments)

    monkeypatch.setattr(devtools, "send", late)
    session.do("goto", [HERE + "/again"])
    assert stops > 2
    assert stays(session)


@pytest.mark.parametrize("path", ["/loop", "/alerts"])
def test_a_page_without_end_voids_the_episode_and_the_next_one_runs(session, path):
    session.open(HERE + path)
    button = bid(session, "go")
    session.patience = SHORT
    with pytest.raises(BackendError, match="did not answer within"):
        session.do("click", [button])
    with pytest.raises(BackendError, match="is not open"):
        session.look()
    session.open(HERE + "/")
    assert title(session) == "Start"


def test_a_page_that_is_busy_without_end_by_now_gives_way_to_the_next_episode(session):
    session.open(HERE + "/")
    session.evaluate("() => { __pwClock.builtins.setTimeout(() => { for (;;); }, 100); }")
    time.sleep(0.3)
    session.open(HERE + "/next")
    assert title(session) == "Next"


def test_a_page_that_takes_all_memory_is_ended(session):
    session.open(HERE + "/hog")
    with pytest.raises(BackendError, match="held too much memory"):
        session.do("click", [bid(session, "go")])
    session.open(HERE + "/")
    assert title(session) == "Start"


def look_again_and_again(session: BrowserSession) -> None:
    for _ in range(50):
        session.look()


def test_chromium_killed_leaves_nothing_behind_and_the_next_open_starts_another(session):
    session.open(HERE + "/")
    first = running()
    below = [first.pid, *descendants(first.pid)]
    assert first.profile is not None
    assert first.profile.is_dir()
    os.kill(first.pid, signal.SIGKILL)
    with pytest.raises(BackendError):
        look_again_and_again(session)
    session.open(HERE + "/")
    assert title(session) == "Start"
    assert running().pid != first.pid
    assert gone(below)
    assert not first.profile.exists()


def test_a_killed_renderer_voids_its_session_only(session):
    session.open(HERE + "/")
    before = set(descendants(running().pid))
    other = BrowserSession(sites(Site()))
    other.open(HERE + "/next")
    renderers = [
        pid
        for pid in set(descendants(running().pid)) - before
        if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    for pid in renderers:
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(BackendError, match="a page's process died"):
        look_again_and_again(other)
    assert title(session) == "Start"
    other.close()


def test_the_browser_ends_with_its_owner():
    owner = process.BrowserThread()
    up = owner.run(owner.ready(), 60)
    below = [up.pid, *descendants(up.pid)]
    owner.close()
    owner.close()
    assert gone(below)
    assert up.profile is not None
    assert not up.profile.exists()


def test_sites_are_named_by_their_origin():
    with pytest.raises(InstanceError, match="named by its origin"):
        Sites({"http://here.test/": lambda request: Response()})
    with pytest.raises(InstanceError, match="http:// one"):
        Sites({"https://here.test": lambda request: Response()})


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://a.test/x?y#z", "http://a.test"),
        ("HTTP://A.test:80", "http://a.test"),
        ("https://a.test:443/", "https://a.test"),
        ("http://a.test:8080/", "http://a.test:8080"),
        ("http://a.test@b.test/", "http://b.test"),
        ("http://[::1]:99/", "http://[::1]:99"),
        ("http://a.test:99999/", ""),
        ("file:///etc/passwd", ""),
        ("ftp://a.test", ""),
        ("", ""),
        ("\x00", ""),
    ],
)
def test_origins(url, named):
    assert origin(url) == named


@pytest.mark.parametrize(
    "path", ["/../secret", "/..%2fsecret", "/%2e%2e/secret", "/link", "/\x00", "/" + "a" * 5000, "/"]
)
def test_a_folder_shows_its_files_only(tmp_path, path):
    (tmp_path / "shown").mkdir()
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "shown" / "page.html").write_text("page")
    (tmp_path / "shown" / "link").symlink_to(tmp_path / "secret")
    site = folder(tmp_path / "shown")
    from lmgym.backends.browser.gate import Request

    assert site(Request("GET", path, {})).status == 404
    assert site(Request("GET", "/page.html?x", {})).body == b"page"


def test_a_gate_refuses_malformed_requests_and_stays_up(session):
    session.open(HERE + "/")
    import socket

    port = session.evaluate("0") or next(int(sock.getsockname()[1]) for sock in session._context.gate._server.sockets)
    for bad in (b"\r\n\r\n", b"GET\r\n\r\n", b"GET http://x HTTP/1.1\r\nContent-Length: x\r\n\r\n", b"\xff" * 70000):
        with socket.create_connection(("127.0.0.1", port), 5) as raw:
            raw.sendall(bad)
            raw.shutdown(socket.SHUT_WR)
            while raw.recv(1000):
                pass
    opener = build_opener(ProxyHandler({"http": f"http://127.0.0.1:{port}"}))
    assert b"Hello" in opener.open(HERE + "/", timeout=5).read()
