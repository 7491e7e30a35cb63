"""Access to the server: clients, tokens, and what nobody is given."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from websockets.exceptions import ConnectionClosed, InvalidStatus

from lmgym.backends import wire
from lmgym.env.env import Reply
from lmgym.env.registry import load, options_of, specs
from lmgym.env.spec import TaskSpec
from lmgym.errors import BackendError, InstanceError, MissingExtra
from lmgym.serve.catalogue import Catalogue, tellable
from lmgym.serve.clients import Client, Clients, Limits, tokens_of
from lmgym.serve.env_session import EnvSession, SessionConfig
from lmgym.serve.server import Serving

from ..env.games import RACE, Race
from ..rollout.games import PHONE
from .conftest import OTHER, TOKEN, Asking, said, served

SECRET = "/srv/secret place/answers.json"
MOODY = TaskSpec(
    id="test/Moody-v0",
    entry_point=f"{__name__}:Moody",
    summary="A backend with moods.",
    max_turns=100,
    splits={"train": 10},
    score="0",
    references={},
    public={"mode": ("calm", "wild"), "level": range(1, 4), "flag": (True, False)},
)


class Moody(Race):
    """Does what its action says: breaks, fails, dies, stalls."""

    SPEC = MOODY
    gate = threading.Event()

    def __init__(self, *, mode: str = "calm", level: int = 1, flag: bool = False, **common: Any) -> None:
        super().__init__(**common)
        if mode == "wild" and flag:
            raise InstanceError(f"cannot open {SECRET}")

    def begin(self, index: int) -> Reply:
        return Reply("calm")

    def answer(self) -> str:
        return "the hidden truth"

    def act(self, action: str) -> Reply:
        match action:
            case "break":
                raise BackendError(f"the engine at {SECRET} broke")
            case "fail":
                raise FileNotFoundError(2, "no such file", SECRET)
            case "extra":
                raise MissingExtra(f"needs {SECRET}")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "wait":
                self.gate.wait(30)
            case "nap":
                time.sleep(0.002)
            case "long":
                return Reply("x" * 1000)
        return Reply(f"did {action[:20]}", reward={"step": 1.0})


SHELF = {
    spec.id: spec
    for spec in (
        MOODY,
        replace(MOODY, id="test/Thread-v0", player="thread"),
        replace(MOODY, id="test/Process-v0", player="process"),
        RACE,
    )
}


PLACES = ["test/Moody-v0", "test/Thread-v0", "test/Process-v0"]  # where the environments of a server run


@pytest.fixture(scope="module")
def moods():
    Moody.gate.clear()
    with served(catalogue=Catalogue(specs=SHELF)) as asking:
        yield asking
        Moody.gate.set()


def step(session: str, action: str) -> dict[str, Any]:
    return {"op": "step", "session": session, "action": action}


def reset(session: str, **more: Any) -> dict[str, Any]:
    return {"op": "reset", "session": session, **more}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": ""}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN} {TOKEN}"}, 401),
        ({"Host": "evil.example"}, 400),
        ({"Host": "evil.example:{port}"}, 400),
        ({"Host": "127.0.0.1.evil.example:{port}"}, 400),
        ({"Host": "10.0.0.1:{port}"}, 400),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 403),
        ({"Host": "localhost:{port}"}, 200),
        ({}, 200),
    ],
)
def test_host_origin_and_token_are_looked_at_by_http_and_by_websocket(games, headers, status):
    headers = {name: value.format(port=games.serving.port) for name, value in headers.items()}
    answered = games.http.get("/v1/tasks", headers=headers)
    assert answered.status_code == status
    assert ("tasks" in answered.text) is (status == 200)
    if "Host" in headers:  # the client library sets its own
        assert upgrade(games, headers) == (101 if status == 200 else status)
    elif status == 200:
        with games.socket(**headers) as connection:
            assert connection.request is not None
    else:
        with pytest.raises(InvalidStatus) as refused, games.socket(**headers):
            pass
        assert refused.value.response.status_code == status


def upgrade(games: Asking, headers: dict[str, str]) -> int:
    """Status of a WebSocket handshake of bytes."""
    lines = {
        "Authorization": f"Bearer {TOKEN}",
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        **headers,
    }
    return raw(games, "GET /v1/ws HTTP/1.1", *(f"{name}: {value}" for name, value in lines.items()))[0]


def raw(games: Asking, *lines: str) -> tuple[int, bytes]:
    with socket.create_connection(("127.0.0.1", games.serving.port), timeout=10) as wire_:
        wire_.sendall("\r\n".join([*lines, "", ""]).encode("latin-1"))
        answer = wire_.recv(65536)
    return int(answer.split()[1]), answer


def test_two_hosts_or_two_tokens_are_none(games):
    right = f"Host: 127.0.0.1:{games.serving.port}"
    token = f"Authorization: Bearer {TOKEN}"
    assert raw(games, "GET /v1/tasks HTTP/1.1", right, token)[0] == 200
    assert raw(games, "GET /v1/tasks HTTP/1.1", right, "Host: evil.example", token)[0] == 400
    assert raw(games, "GET /v1/tasks HTTP/1.1", right, token, f"Authorization: Bearer {OTHER}")[0] == 401
    assert raw(games, "GET /v1/tasks HTTP/1.0", token)[0] == 400


LAB, EVIL = {"Origin": "https://lab.example"}, {"Origin": "https://evil.example"}
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def lab():
    """A client of a server that allows the name gym.example and the origin lab.example."""
    serving = Serving(Catalogue.of(["wordle"]), [TOKEN], names=["Gym.example"], origins=["https://lab.example"])
    with serving.running(), httpx.Client(base_url=serving.url) as client:
        yield client


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "gym.example", **LAB}, 200),
        ({"Host": "gym.example:443", **LAB}, 200),
        ({"Host": "x.gym.example"}, 400),
        ({"Origin": "https://lab.example.evil"}, 403),
    ],
)
def test_an_origin_and_a_name_may_be_allowed(lab, headers, status):
    assert lab.get("/v1/tasks", headers={**BEARER, **headers}).status_code == status


def test_a_page_of_an_allowed_origin_may_ask_and_read(lab):
    asks = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    allowed = lab.options("/v1/call", headers={**LAB, **asks})  # a browser's question has no token
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://lab.example"
    assert {"Authorization", "Content-Type"} <= set(allowed.headers["access-control-allow-headers"].split(", "))
    assert allowed.headers["access-control-allow-methods"] == "GET, POST"
    answers = [
        lab.post("/v1/call", json={"calls": [{"op": "open", "task": "wordle"}]}, headers={**LAB, **BEARER}),
        lab.get("/v1/tasks", headers={**LAB, **BEARER}),
        lab.get("/v1/tasks", headers=LAB),
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 401]
    for answer in answers:
        assert answer.headers["access-control-allow-origin"] == "https://lab.example"
        assert "Origin" in answer.headers["vary"]
        assert "access-control-allow-credentials" not in answer.headers
    refused = [
        lab.options("/v1/call", headers={**EVIL, **asks}),
        lab.options("/v1/call", headers={**LAB, **asks, "Host": "evil.example"}),
        lab.options("/v1/call", headers=asks),
        lab.get("/v1/tasks", headers={**EVIL, **BEARER}),
    ]
    assert [answer.status_code for answer in refused] == [403, 400, 401, 403]
    own = lab.get("/v1/tasks", headers=BEARER)
    assert not any("access-control-allow-origin" in answer.headers for answer in (refused[0], *refused[2:], own))


def test_nothing_but_the_three_paths_is_there(games):
    paths = ("/", "/docs", "/openapi.json", "/redoc", "/v1", "/v1/call", "/v1/ws", "/v1/tasks/../../etc/passwd")
    assert {games.http.get(path).status_code for path in paths} <= {404, 405}


def test_a_strangers_token_or_session_gets_nothing_and_names_cannot_be_guessed(games):
    mine = games.open("wordle")
    games.call(reset(mine, seed=0))
    for op in (reset(mine), step(mine, "crane"), {"op": "cut", "session": mine}, {"op": "close", "session": mine}):
        assert games.code(op, token=OTHER) == "session"
    unknown = games.call(step("guessed" * 3, "crane"))
    assert unknown == games.call(step(mine, "crane"), token=OTHER)  # that it exists is not told either
    assert games.call(step(mine, "crane"))[0]["info"]["valid"]
    with pytest.raises(AssertionError, match="the token is missing or wrong"):
        games.call(step(mine, "crane"), token="x" * 24)
    names = {games.open("guess_number") for _ in range(20)}
    assert len(names) == 20
    assert all(len(name) == 24 for name in names)  # 18 bytes of chance
    games.call(*({"op": "close", "session": name} for name in names))


def test_tokens_come_from_the_environment_or_are_made():
    assert tokens_of({"LMGYM_SERVE_TOKEN": f" {TOKEN},{OTHER}\n"}) == ([TOKEN, OTHER], False)
    (made,), new = tokens_of({})
    assert new
    assert len(made) == 32
    assert made != tokens_of({})[0][0]
    with pytest.raises(InstanceError, match="16 ASCII characters") as refused:
        Clients(["short"], Limits())
    assert "short" not in str(refused.value)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"task": "lmgym/Nothing-v0"}, "task"),
        ({"task": "webshop"}, "task"),  # registered, but not served
        ({"task": "../wordle"}, "task"),
        ({"task": "wordle", "split": "../test"}, "option"),
        ({"task": "wordle", "options": {"words": "/etc/passwd"}}, "option"),
        ({"task": "wordle", "options": {"others": "python:os:system"}}, "option"),
        ({"task": "wordle", "options": {"render_mode": "ansi"}}, "option"),
        ({"task": "wordle", "options": {"spec": "x"}}, "option"),
        ({"task": "wordle", "options": {"split": "test"}}, "option"),
        ({"task": "wordle", "options": {"max_turns": 3}}, "option"),
        ({"task": "wordle", "options": {"__class__": "x"}}, "option"),
        ({"task": "wordle", "options": {"__init__": 1}}, "option"),
        ({"task": "wordle", "options": {"colouring": "other"}}, "option"),
        ({"task": "wordle", "options": {"colouring": True}}, "option"),
        ({"task": "guess_number", "options": {"highest": 10_001}}, "option"),
        ({"task": "guess_number", "options": {"highest": 0}}, "option"),
        ({"task": "guess_number", "options": {"highest": True}}, "option"),
        ({"task": "guess_number", "options": {"highest": 7.0}}, "option"),
        ({"task": "guess_number", "options": {"highest": 10**4000}}, "option"),
        ({"task": "wordle", "others": "caller"}, "withheld"),
        ({"task": "wordle", "others": "python:os:system"}, "withheld"),
        ({"task": "wordle", "max_turns": 0}, "option"),
        ({"task": "wordle", "max_turns": 10**9}, "option"),
    ],
)
def test_tasks_and_options_that_are_not_on_the_list_are_refused(games, wanted, code):
    answer = games.call({"op": "open", **wanted})[0]["error"]
    assert answer["code"] == code
    assert len(answer["message"]) < 400


def test_listed_tasks_say_what_may_be_chosen_and_options_on_the_list_are_taken(games):
    (listed,) = [each for each in games.http.get("/v1/tasks").json()["tasks"] if each["task"] == "lmgym/GuessNumber-v0"]
    assert listed["options"] == {"highest": {"from": 1, "to": 10_000}}
    assert listed["splits"] == ["train", "test"]
    session = games.open("GuessNumber-v0", split="test", options={"highest": 7}, max_turns=2)
    first, *_, last = games.call(reset(session, index=3), step(session, "0"), step(session, "0"))
    assert "from 1 to 7" in first["text"]
    assert (first["info"]["instance"], last["truncated"], last["info"]["score"]) == ("test/3", True, 0.0)


@pytest.mark.parametrize("spec", [spec for spec in specs().values() if spec.public], ids=lambda spec: spec.id)
def test_options_that_specs_call_public_are_options_of_their_types(spec):
    known = options_of(load(spec))
    for name, values in spec.public.items():
        default = spec.options.get(name, known[name])
        assert {type(value) for value in values} == {type(default)}
        assert default in values
        assert not isinstance(default, str) or not any(set("/\\:~") & set(value) for value in values)


def test_the_operators_options_hold_and_cannot_be_chosen():
    shelf = Catalogue.of(["guess_number"], options={"highest": 5})
    with served(catalogue=shelf) as asking:
        session = asking.open("guess_number")
        assert "from 1 to 5" in asking.call(reset(session))[0]["text"]
        assert asking.code({"op": "open", "task": "guess_number", "options": {"highest": 5}}) == "option"


def test_the_operators_turn_limit_is_the_tasks_and_clients_may_only_lower_it():
    with served(catalogue=Catalogue.of(["guess_number"], options={"max_turns": 2})) as asking:
        for wanted, turns in ((None, 2), (5, 2), (1, 1)):
            session = asking.open("guess_number", max_turns=wanted)
            answers = asking.call(reset(session), *(step(session, "no number") for _ in range(turns)))
            assert [answer.get("truncated", False) for answer in answers[1:]] == [False] * (turns - 1) + [True]
        assert asking.http.get("/v1/tasks").json()["tasks"][0]["max_turns"] == 2
        with asking.remote("guess_number") as env:
            assert env.unwrapped.task.max_turns == 2
            env.reset(seed=0)
            assert [env.step("no number")[3] for _ in range(2)] == [False, True]


@pytest.mark.parametrize("limit", [0, 10_001, True, "5", 2.0])
def test_a_turn_limit_that_is_none_is_refused_before_serving(limit):
    with pytest.raises(InstanceError, match="max_turns must be a whole number from 1 to 10000"):
        Catalogue.of(["guess_number"], options={"max_turns": limit})


def test_what_runs_code_and_what_is_played_elsewhere_is_not_served_by_default():
    chosen = Catalogue.of().specs.values()
    assert not any(spec.runs_code or spec.remote for spec in chosen)


def test_answers_and_advice_are_withheld_and_errors_of_opening_tell_no_path(moods):
    session = moods.open("test/Moody-v0")
    info = moods.call(reset(session))[0]["info"]
    assert set(info) == {"instance", "valid", "reward_terms", "seat"}
    for what in ("oracle", "demonstrator", "admissible", "scripted", "answer", "score_if_cut", "__class__"):
        assert moods.code({"op": "ask", "session": session, "what": what, "seat": "black"}) == "withheld"
    assert moods.code(reset(session, instance={"sum": 3})) == "withheld"
    (answer,) = moods.call({"op": "open", "task": "test/Moody-v0", "options": {"mode": "wild", "flag": True}})
    assert answer["error"]["message"] == "the details are in the server's log"


def test_each_secret_is_told_where_it_is_revealed():
    with served(catalogue=Catalogue(specs=SHELF, reveals=frozenset({"answer", "oracle"}))) as asking:
        session = asking.open("test/Moody-v0")
        assert asking.call(reset(session))[0]["info"]["answer"] == "the hidden truth"
        assert asking.call({"op": "ask", "session": session, "what": "oracle"}) == [{"advice": "2"}]
        assert asking.code({"op": "ask", "session": session, "what": "admissible"}) == "withheld"


@pytest.mark.parametrize("task", PLACES)
@pytest.mark.parametrize(("action", "code"), [("break", "backend"), ("fail", "internal"), ("extra", "task")])
def test_what_breaks_ends_its_session_and_tells_no_path(moods, task, action, code):
    session, other = moods.open(task), moods.open(task)
    moods.call(reset(session), reset(other))
    answered = moods.post({"calls": [step(session, action)]})
    assert answered.json()["answers"][0]["error"]["code"] == code
    assert "secret" not in answered.text
    assert "lmgym/" not in answered.text
    assert moods.code(step(session, "x")) == "session"
    assert moods.call(step(other, "x"))[0]["text"] == "did x"


@pytest.mark.slow
def test_a_dead_process_voids_its_sessions_and_the_next_one_lives(moods):
    session, other = moods.open("test/Process-v0"), moods.open("test/Process-v0")
    moods.call(reset(session), reset(other))
    assert moods.code(step(session, "die")) == "backend"
    assert moods.code(step(other, "x")) in ("backend", "session")
    session = moods.open("test/Process-v0")
    assert moods.call(reset(session), step(session, "x"))[1]["text"] == "did x"


@settings(max_examples=200, deadline=None)
@given(st.text(), st.sampled_from(["/", "\\", "~"]), st.text(min_size=1))
def test_no_message_with_a_path_is_told(before, mark, after):
    message = f"cannot read {before}{mark}home{mark}{after}"
    assert tellable(InstanceError(message)) == "the details are in the server's log"


def test_messages_without_a_path_are_told():
    words = "lmgym/Wordle-v0 train has instances 0 to 371; got index 999 (train/999)"
    assert tellable(InstanceError(words)) == words


def test_mistakes_of_a_policy_or_a_caller_leave_the_session_open(games):
    session = games.open("wordle")
    assert games.code(step(session, "crane")) == "instance"  # no episode yet
    assert games.code({"op": "cut", "session": session}) == "instance"
    assert games.code(reset(session, index=10**30)) == "instance"
    assert games.code(reset(session, seed=-1)) == "instance"
    first, answer = games.call(reset(session, seed=10**30, index=1), step(session, "no word at all"))
    assert first["info"]["instance"] == "train/1"
    assert (answer["info"]["valid"], answer.get("error")) == (False, None)
    assert games.code({"op": "step", "session": session, "action": "crane", "reseed": -1}) == "instance"
    closed, after = games.call({"op": "close", "session": session}, step(session, "crane"))
    assert closed == {"closed": True}
    assert after["error"]["code"] == "session"


@pytest.mark.parametrize("task", PLACES)
def test_a_mistake_of_a_client_disturbs_no_other(moods, task):
    session, other = moods.open(task), moods.open(task, token=OTHER)
    moods.call(reset(other), token=OTHER)
    assert moods.code(step(session, "x")) == "instance"  # no episode yet
    assert moods.code(reset(session, index=10**30)) == "instance"
    assert moods.call(reset(session), step(session, "x"))[1]["text"] == "did x"
    assert moods.call(step(other, "y"), token=OTHER)[0]["text"] == "did y"


@pytest.mark.parametrize("task", ["test/Moody-v0", "test/Thread-v0"])
def test_a_bug_of_the_server_ends_its_session_alone(moods, task, monkeypatch):
    session, other = moods.open(task), moods.open(task)
    moods.call(reset(session), reset(other))
    with monkeypatch.context() as patch:
        patch.setattr(EnvSession, "answer", lambda env_session, call: 1 / 0)
        assert moods.code(step(session, "x")) == "internal"
    assert moods.code(step(session, "x")) == "session"
    assert moods.call(step(other, "x"))[0]["text"] == "did x"


WRONG = [
    b"",
    b"\xff\xfe",
    b"null",
    b"[]",
    b"{",
    b'{"calls": []}',
    b'{"calls": [{}]}',
    b'{"calls": [{"op": "eval", "code": "1"}]}',
    b'{"calls": [{"op": "step", "session": 1, "action": "x"}]}',
    b'{"calls": [{"op": "step", "session": "x", "action": null}]}',
    b'{"calls": [{"op": "step", "session": "x", "action": "x", "__class__": "y"}]}',
    b'{"calls": [{"op": "step", "session": "x", "action": "\\ud800"}]}',
    b'{"calls": [{"op": "step", "session": "\xff", "action": "x"}]}',
    b'{"calls": [{"op": "reset", "session": "x", "seed": NaN}]}',
    b'{"calls": [{"op": "reset", "session": "x", "seed": 1e400}]}',
    b'{"calls": [{"op": "reset", "session": "x", "seed": ' + b"9" * 5000 + b"}]}",
    b'{"calls": [{"op": "reset", "session": "x", "seed": true}]}',
    b'{"calls": [{"op": "open", "task": "wordle", "options": {"words": ["crane"]}}]}',
    b'{"calls": [{"op": "open", "task": "wordle", "options": {"words": {"a": 1}}}]}',
    b'{"calls": ' + b"[" * 200_000,
    b'{"calls": [{"op": "reset", "session": "x", "instance": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}]}",
    b"\x80\x04\x95.",  # a pickle
    json.dumps({"calls": [{"op": "close", "session": "x"}] * 1025}).encode(),
]


@pytest.mark.parametrize("content", WRONG, ids=lambda content: repr(content[:60]))
def test_what_is_no_message_is_refused_and_the_connection_lives(games, content):
    answered = games.post(content)
    assert (answered.status_code, answered.json()["error"]["code"]) == (400, "message")
    assert len(answered.content) < 1000
    with games.socket() as connection:
        connection.send(content)
        assert json.loads(connection.recv(timeout=30))["error"]["code"] == "message"
        assert said(connection, {"op": "open", "task": "wordle"})[0]["task"] == "lmgym/Wordle-v0"


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary()
    | st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from(["calls", "op", "session", "task"]), inner),
    )
)
def test_any_content_is_answered_with_an_error(games, content):
    answered = games.post(content)
    assert answered.status_code == 400
    assert answered.json()["error"]["code"] == "message"


def test_messages_are_answered_by_their_numbers(games):
    with games.socket() as connection:
        connection.send(json.dumps({"id": 7, "calls": [{"op": "close", "session": "x"}]}))
        assert json.loads(connection.recv(timeout=30))["id"] == 7
        connection.send(b'{"id": 8, "calls": []}')  # bytes are read as text is
        assert json.loads(connection.recv(timeout=30))["id"] == 8


def test_large_messages_and_bodies_without_end_are_refused_before_they_are_kept():
    with served("guess_number", message=4096) as asking:
        answered = asking.post(b"x" * 5000)
        assert (answered.status_code, answered.json()["error"]["code"]) == (413, "size")
        session = asking.open("guess_number")
        with asking.socket() as connection:
            connection.send("x" * 5000)
            with pytest.raises(ConnectionClosed) as closed:
                connection.recv(timeout=30)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 1009
        endless = (b"x" * 1024 for _ in iter(int, 1))
        with suppress(httpx.TransportError):  # who goes on talking may find the line cut before the answer is read
            assert asking.http.post("/v1/call", content=endless).status_code == 413
        assert asking.call(reset(session))[0]["info"]["valid"]


def test_sessions_are_limited_for_each_client_and_for_all_and_what_could_not_be_opened_counts_for_nothing():
    with served("guess_number", sessions=4, sessions_per_client=3) as asking:
        for _ in range(5):
            assert asking.code({"op": "open", "task": "guess_number", "split": "x"}) == "option"
        mine = [asking.open("guess_number") for _ in range(3)]
        assert asking.code({"op": "open", "task": "guess_number"}) == "limit"
        asking.open("guess_number", token=OTHER)
        assert asking.code({"op": "open", "task": "guess_number"}, token=OTHER) == "limit"
        asking.call({"op": "close", "session": mine[0]})
        assert len(asking.call(*[{"op": "open", "task": "guess_number"}] * 5)) == 5
        assert len(asking.serving.sessions.by_name) == 4


def test_a_flood_is_told_when_to_come_back():
    with served("guess_number", rate=2.0, calls=1000) as asking:  # a thousand at once, then two a second
        session = asking.open("guess_number")
        first, second = (asking.post({"calls": [reset(session)] * 999}) for _ in range(2))
        assert (first.status_code, second.status_code) == (200, 429)
        error = second.json()["error"]
        assert error["code"] == "rate"
        assert 0 < error["retry_after"] <= 499.5
        assert int(second.headers["Retry-After"]) == round(error["retry_after"])
        assert asking.call(reset(session), token=OTHER)[0]["error"]["code"] == "session"  # others have their own


def test_a_flood_of_what_is_no_message_is_one_too():
    with served("guess_number", rate=1.0, calls=3) as asking:
        assert [asking.post(b"x").status_code for _ in range(4)] == [400, 400, 400, 429]


def test_the_client_waits_as_long_as_the_server_says():
    with served("guess_number", rate=40.0, calls=1) as asking, asking.remote("guess_number", max_turns=100) as env:
        env.reset(seed=0)
        assert [env.step("0")[4]["valid"] for _ in range(60)] == [True] * 60


def test_limits_are_above_nothing_and_an_allowance_fills_up_again():
    with pytest.raises(InstanceError, match="limit rate must be above 0"):
        Limits(rate=0.0)
    client = Client("one", Limits(rate=10.0, calls=5))
    assert client.spend(10) == 0.0
    assert 0.3 < client.spend(5) <= 0.5
    client.since -= 0.5  # half a second later
    assert client.spend(5) == 0.0


def test_idle_sessions_end():
    with served("guess_number", idle=1000.0) as asking:
        idle, used = asking.open("guess_number"), asking.open("guess_number")
        asking.serving.sessions.by_name[idle].used -= 2000.0
        asking.serving.sessions.reap_once()
        assert asking.code(reset(idle)) == "session"
        assert asking.call(reset(used))[0]["info"]["valid"]
        with asking.remote("guess_number") as env:
            env.reset(seed=0)
            for session in asking.serving.sessions.by_name.values():
                session.used -= 2000.0
            asking.serving.sessions.reap_once()
            with pytest.raises(BackendError, match="idle for too long"):
                env.step("1")
            assert env.reset(seed=0)[1]["valid"]  # with a seed, a new session


def test_the_reaper_comes_by_itself():
    with served("guess_number", idle=0.2) as asking:
        asking.open("guess_number")
        until(lambda: not asking.serving.sessions.by_name)


def until(fact: Any) -> None:
    """Wait for something that will be so; the suite's own time-out is the end of it."""
    while not fact():
        time.sleep(0.01)


def test_sessions_end_with_their_connection(games):
    sessions = games.serving.sessions
    with games.socket() as connection:
        session = said(connection, {"op": "open", "task": "guess_number"})[0]["session"]
        assert games.call(reset(session))[0]["info"]["valid"]  # the same client, by another way
    until(lambda: session not in sessions.by_name)
    assert games.code(reset(session)) == "session"


@pytest.mark.parametrize("task", ["test/Moody-v0", "test/Thread-v0"])
def test_a_client_that_goes_in_the_middle_of_a_step_leaves_nothing_behind(moods, task):
    sessions = moods.serving.sessions
    Moody.gate.clear()
    with moods.socket() as connection:
        session = said(connection, {"op": "open", "task": task})[0]["session"]
        said(connection, reset(session))
        connection.send(json.dumps({"calls": [step(session, "wait")]}))
        until(lambda: sessions.by_name[session].busy is not None)
        connection.socket.shutdown(socket.SHUT_RDWR)
    assert moods.http.get("/v1/tasks").status_code == 200  # nobody else waits
    Moody.gate.set()
    until(lambda: session not in sessions.by_name)


def test_a_session_takes_one_message_at_a_time(moods):
    session = moods.open("test/Thread-v0")
    moods.call(reset(session))
    Moody.gate.clear()
    with moods.socket() as connection:
        connection.send(json.dumps({"calls": [step(session, "wait")]}))
        until(lambda: moods.serving.sessions.by_name[session].busy is not None)
        assert moods.code(step(session, "x")) == "busy"
        Moody.gate.set()
        assert json.loads(connection.recv(timeout=30))["answers"][0]["text"] == "did wait"
    assert moods.call(step(session, "x"), step(session, "y"))[1]["text"] == "did y"


def test_answers_to_a_message_are_limited_and_what_was_not_done_can_be_asked_again():
    with served(catalogue=Catalogue(specs=SHELF), answers=1500) as asking:
        session = asking.open("test/Moody-v0")
        asking.call(reset(session))
        answers = asking.call(*[step(session, "long")] * 4)  # 1,000 characters each: the second oversteps
        assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, "size", "size"]
        assert asking.call(step(session, "x"))[0]["text"] == "did x"
        refused = asking.call(*[step(session, "long")] * 3, {"op": "close", "session": session})
        assert [next(iter(answer)) for answer in refused[2:]] == ["error", "closed"]


def test_a_connection_too_many_is_told_to_come_back():
    with served("guess_number", connections_per_client=1) as asking, asking.socket():
        with pytest.raises(InvalidStatus) as refused, asking.socket():
            pass
        assert refused.value.response.status_code == 429
        assert json.loads(refused.value.response.body)["error"]["code"] == "limit"
        with pytest.raises(BackendError, match="HTTP 429") as told:
            asking.remote("guess_number")
        assert "refused" not in str(told.value)


def test_clients_that_send_too_slowly_or_take_nothing_are_cut_off_and_hold_up_nobody():
    with served("guess_number", slow=0.3) as asking:
        host = f"Host: 127.0.0.1:{asking.serving.port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        begun = f"POST /v1/call HTTP/1.1\r\n{host}Content-Length: 100\r\n\r\n{{"
        for start in ("GET / HT", begun):
            with socket.create_connection(("127.0.0.1", asking.serving.port), timeout=30) as wire_:
                wire_.sendall(start.encode())
                got = b"".join(iter(lambda wire_=wire_: wire_.recv(65536), b""))
            assert got == b"" or b" 408 " in got
        assert asking.http.get("/v1/tasks").status_code == 200
        head = f"GET /v1/tasks HTTP/1.1\r\n{host}"
        with socket.create_connection(("127.0.0.1", asking.serving.port), timeout=30) as wire_:
            for _ in range(2):
                wire_.sendall(f"{head}\r\n".encode())
                got = wire_.recv(65536)
                while not got.endswith(b"}"):  # head and body come in as many pieces as they like
                    got += wire_.recv(65536)
                assert got.startswith(b"HTTP/1.1 200")
            wire_.sendall(head.encode())  # a further request that has no end
            assert wire_.recv(65536) == b""  # else nothing comes, and the 30 seconds are over
        with asking.socket() as connection:
            session = said(connection, {"op": "open", "task": "guess_number"})[0]["session"]
            until_closed(connection, json.dumps({"calls": [reset(session)] * 1000}))
            assert asking.http.get("/v1/tasks").status_code == 200


def until_closed(connection: Any, content: str) -> None:
    """Send and take nothing, until the other end has enough."""
    try:
        while True:
            connection.send(content)
    except (ConnectionClosed, OSError):
        return


def test_connections_send_what_they_have_at_once():
    with served("guess_number") as asking, asking.socket():
        assert asking.http.get("/v1/tasks").status_code == 200
        transports = [each.transport for each in asking.serving.server.server_state.connections]
        sockets = [transport.get_extra_info("socket") for transport in transports]
        assert [each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) for each in sockets] == [1, 1]


def test_the_wire_names_all_that_info_may_hold():
    names = "instance valid reward_terms seat seat_rewards points score success seat_scores figures answer prompts"
    assert set(wire.Info.__struct_fields__) - {"more"} == set(names.split())


@pytest.mark.parametrize(("reveals", "seats"), [((), {"agent"}), (("seats",), {"agent", "user"})])
def test_prompts_of_other_seats_and_new_tools_are_sent_as_the_task_says(reveals, seats):
    config = SessionConfig(spec=PHONE, split="train", options={"others": "caller"}, reveals=frozenset(reveals))
    session = EnvSession(config)
    answer = session.reset(wire.Reset("s", 0, 4, None))
    assert set(answer.info.prompts) == seats
    answers = [answer, *(session.step(wire.Step("s", "a", None)) for _ in range(4))]
    tools = [None if each.tools is UNSET else [tool["name"] for tool in each.tools] for each in answers]
    assert tools == [["refund"], ["restart"], ["refund", "close"], ["restart"], ["refund", "close"]]
