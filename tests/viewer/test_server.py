from __future__ import annotations

import json
from urllib.parse import urlsplit

import pytest

from lmgym.viewer.local_server import HEADERS, LocalServer, RequestHandler
from tests.viewer.conftest import send
from tests.viewer.planted import ATTACKS, PICTURE, PNG, hostile_run, plain_run


@pytest.fixture
def viewer(tmp_path, served):
    with served(plain_run(tmp_path)) as viewer:
        yield viewer


def get(viewer, path: str) -> tuple[int, dict, bytes]:
    """Return the answer to a request with the right host and token."""
    return send(viewer, urlsplit(viewer.url).path + path, f"Host: 127.0.0.1:{viewer.server_port}")


def test_the_page_and_its_episodes_are_served(viewer):
    assert b"app.js" in get(viewer, "")[2]
    for name, kind in (("app.js", "text/javascript"), ("style.css", "text/css"), ("icon.svg", "image/svg+xml")):
        status, headers, _ = get(viewer, name)
        assert (status, headers["Content-Type"].partition(";")[0]) == (200, kind)
    assert json.loads(get(viewer, "listing.json")[2])["count"] == 6
    assert json.loads(get(viewer, "episode/3")[2])["turns"][0]["text"] == "look 3"
    assert get(viewer, f"picture/0/{PICTURE}.png")[2] == PNG
    assert json.loads(get(viewer, "search.json?words=LOOK+4&start=0")[2]) == {"hits": [4], "next": None}


def test_every_answer_keeps_the_browser_in(viewer):
    paths = ["", "listing.json", "episode/99", "none"]
    for _, headers, _ in [get(viewer, path) for path in paths] + [send(viewer, "/", "Host: evil.example")]:
        assert HEADERS.items() <= headers.items()
    assert "'unsafe" not in HEADERS["Content-Security-Policy"]


@pytest.mark.parametrize("path", ["/", "/{start}/", "/{start}x/", "/x/{token}/", "/?{token}", "/favicon.ico"])
def test_without_the_token_there_is_nothing(viewer, path):
    token = viewer.token
    address = path.format(start=token[:-1], token=token)
    assert send(viewer, address, f"Host: 127.0.0.1:{viewer.server_port}")[0] == 404


@pytest.mark.parametrize(
    ("hosts", "wanted"),
    [
        ((), 421),
        (("evil.example:{port}",), 421),
        (("127.0.0.1",), 421),
        (("127.0.0.1:1",), 421),
        (("127.0.0.1.evil.example:{port}",), 421),
        (("10.0.0.1:{port}",), 421),
        (("127.0.0.1:{port}", "evil.example:{port}"), 421),
        (("\xff:{port}",), 421),
        (("localhost:{port}",), 200),
    ],
)
def test_a_strangers_name_for_this_machine_is_refused(viewer, hosts, wanted):
    headers = [f"Host: {host.format(port=viewer.server_port)}" for host in hosts]
    status, _, content = send(viewer, f"/{viewer.token}/listing.json", *headers)
    assert (status, content == b"wrong host\n") == (wanted, wanted == 421)


ADDRESSES, NAMES = ("127.0.0.1", "10.0.0.1", "[::1]"), ("evil.example", "localhost", "")


def test_a_server_on_all_addresses_is_reached_by_address_and_never_by_name():
    server = LocalServer(RequestHandler, host="0.0.0.0")
    server.server_close()
    names = {name: server.knows(f"{name}:{server.server_port}") for name in (*ADDRESSES, *NAMES)}
    assert names == {**dict.fromkeys(ADDRESSES, True), **dict.fromkeys(NAMES, False)}


@pytest.mark.parametrize(
    "path",
    [
        "../../../../etc/passwd",
        "..%2f..%2fetc/passwd",
        "episodes.jsonl",
        "episode/6",
        "episode/-1",
        "episode/1e3",
        "episode/999999999",
        "picture/0/../../episodes.jsonl",
        f"picture/9/{PICTURE}.png",
        f"picture/0/{'1' * 32}.png",
        "search.json",
        "search.json?words=&start=0",
        "search.json?words=a&start=-1",
        "index.html",
        "search.json?" + "&".join(["words=a"] * 20),  # too many fields
    ],
)
def test_nothing_else_is_there(viewer, path):
    assert get(viewer, path)[0] == (422 if path.count("words=a") == 20 else 404)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "HEAD", "CONNECT"])
def test_nothing_can_be_changed(viewer, method):
    path = f"/{viewer.token}/listing.json"
    assert send(viewer, path, f"Host: 127.0.0.1:{viewer.server_port}", method=method)[0] == 501


def test_a_damaged_episode_is_an_answer_and_no_fault(tmp_path, served):
    run = plain_run(tmp_path)
    lines = (run / "episodes.jsonl").read_text().splitlines()
    lines[2] = lines[2].replace('"turns": [{"observation"', '"turns": [{"nothing"')
    (run / "episodes.jsonl").write_text("\n".join(lines) + "\n")
    with served(run) as viewer:
        status, _, content = get(viewer, "episode/2")
        assert status == 422
        assert "not a recorded episode" in json.loads(content)["error"]
        assert get(viewer, "episode/3")[0] == 200


def test_no_markup_begins_in_what_is_served(tmp_path, served):
    with served(hostile_run(tmp_path)) as viewer:
        for path in ["listing.json", *(f"episode/{n}" for n in range(len(ATTACKS)))]:
            status, _, content = get(viewer, path)
            assert status == 200
            assert b"<" not in content
            assert content.isascii()
        assert get(viewer, f"picture/0/{'0' * 32}.png")[0] == 404


def test_an_address_of_version_six_is_served_and_two_viewers_have_two_tokens(tmp_path, served):
    with served(plain_run(tmp_path), host="::1") as viewer:
        assert viewer.url.startswith("http://[::1]:")
        assert send(viewer, f"/{viewer.token}/", f"Host: [::1]:{viewer.server_port}")[0] == 200
    run = plain_run(tmp_path)
    with served(run) as first, served(run) as second:
        assert first.token != second.token
        assert len(first.token) >= 32
