"""A server that is not ours, or goes: whatever it says, the client raises BackendError and nothing else."""

from __future__ import annotations

import base64
import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from websockets.sync.server import ServerConnection, serve

from lmgym.backends import wire
from lmgym.env.pictures import _chunk, _chunks, decode, encode
from lmgym.env.registry import build
from lmgym.errors import BackendError, InstanceError, LmgymError
from lmgym.policy.scripted import hinted
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.rollout.fork import fork
from lmgym.types import Job
from tests.command import command

from ..rollout.fakes import Bytes
from .conftest import TOKEN, served

OPENED: dict[str, Any] = {
    "session": "s",
    "task": "lmgym/Wordle-v0",
    "split": "train",
    "splits": ["train"],
    "size": 9,
    "max_turns": 6,
    "task_turns": 6,
    "text": 1000,
    "images": None,
    "deterministic": True,
    "reveals": [],
}
INFO = {"instance": "train/0", "valid": True, "reward_terms": {}, "seat": "agent"}
PLAYED = {"text": "hello", "info": INFO}
OVER = {**PLAYED, "terminated": True}


@contextmanager
def stranger(*answers: Any) -> Iterator[str]:
    """A server that says these things one after the other, whatever it is asked, and then hangs up."""

    def talk(connection: ServerConnection) -> None:
        for answer in answers:
            request = json.loads(connection.recv())
            if callable(answer):
                answer(connection)
            elif isinstance(answer, bytes | str):
                connection.send(answer)
            else:
                connection.send(json.dumps({"id": request["id"], "answers": [answer]}))

    with serve(talk, "127.0.0.1", 0) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()
        thread.join()


def remote(url: str, **options: Any) -> closing[Any]:
    return closing(build("remote", url=url, task="wordle", token=TOKEN, timeout=5.0, **options))


MALFORMED = [
    b"",
    b"\xff",
    "null",
    "[]",
    "{",
    '{"id": 2}',
    '{"id": 2, "answers": []}',
    '{"id": 2, "answers": [{}, {}]}',
    '{"id": 2, "answers": [null]}',
    '{"id": 2, "answers": 3}',
    '{"id": 9, "answers": [' + json.dumps(PLAYED) + "]}",
    '{"id": 2, "error": {"code": 1}}',
    '{"id": 2, "answers": [{"error": {"code": "new", "message": "x"}}]}',
    '{"id": 2, "answers": ' + "[" * 100_000,
    '{"id": 2, "answers": [' + '{"a":' * 100_000 + "1" + "}" * 100_000 + "]}",
    {**PLAYED, "text": 3},
    {**PLAYED, "text": "x" * 1001},
    {"text": "x"},
    {**PLAYED, "info": {}},
    {**PLAYED, "info": {**INFO, "reward_terms": {"a": "b"}}},
    {**PLAYED, "tools": [3]},
    {**PLAYED, "reward": None},
]


@pytest.mark.parametrize("answer", MALFORMED, ids=lambda answer: str(answer)[:50])
def test_a_malformed_answer_is_a_backend_error(answer):
    with stranger(OPENED, answer) as url, remote(url) as env:
        with pytest.raises(BackendError):
            env.reset(seed=0)
        with pytest.raises(BackendError, match="is closed"):
            env.reset()


@pytest.mark.parametrize(
    "scores",
    [
        {},
        {"score": 2.0, "success": True},
        {"score": -0.5, "success": True},
        {"score": 1.0},
        {"score": "1", "success": True},
        {"more": {"score": "x", "success": True}},
        {"more": {"score": [], "success": True}},
        {"more": {"score": 1, "success": "no"}},
        {"more": {"score": 1.0, "success": True}},
    ],
)
def test_an_episode_must_end_with_a_score(scores):
    with stranger(OPENED, PLAYED, {**OVER, "info": {**INFO, **scores}}) as url, remote(url) as env:
        env.reset(seed=0)
        with pytest.raises(BackendError, match="an episode that ended with" if "more" in scores else None):
            env.step("crane")


@pytest.mark.parametrize(
    "change",
    [
        {"session": 3},
        {"splits": ["test"]},
        {"size": -1},
        {"task_turns": 0},
        {"task_turns": 10**9},
        {"text": 0},
        {"text": 1 << 40},
        {"images": [0, 5, 1]},
        {"images": [1 << 20, 1 << 20, 1 << 20]},
        {"images": [5]},
    ],
)
def test_a_task_that_cannot_be_is_a_backend_error(change):
    with stranger({**OPENED, **change}) as url, pytest.raises(BackendError):
        build("remote", url=url, task="wordle", token=TOKEN)


@pytest.mark.parametrize("picture", ["", "x", "iVBORw0KGgo=", "é", "A" * 100_000])
def test_pictures_that_are_none_are_a_backend_error(picture):
    shows = {**OPENED, "images": [4, 5, 1]}
    with stranger(shows, {**PLAYED, "images": [picture]}) as url, remote(url) as env, pytest.raises(BackendError):
        env.reset(seed=0)


def test_pictures_are_counted_before_any_is_decoded(monkeypatch):
    made = base64.b64encode(encode(np.zeros((4, 5, 3), np.uint8))[1]).decode()
    decoded: list[bytes] = []

    def counted(content: bytes, height: int, width: int) -> Any:
        decoded.append(content)
        return decode(content, height, width)

    monkeypatch.setattr("lmgym.tasks.remote.env.decode", counted)
    shows = {**OPENED, "images": [4, 5, 2]}
    with stranger(shows, *({**PLAYED, "images": [made] * n} for n in (2, 3))) as url, remote(url) as env:
        assert env.reset(seed=0)[0]["images"].shape == (2, 4, 5, 3)
        with pytest.raises(BackendError, match="3 pictures; at most 2"):
            env.step("x")
    assert len(decoded) == 2


def test_unread_parts_of_a_png_are_not_kept_and_info_of_its_own_stands_in_for_nothing():
    content = encode(np.zeros((4, 5, 3), np.uint8))[1]
    padding = _chunk(b"tEXt", bytes(1 << 16)) + _chunk(b"zTXt", b"")
    assert not decode(content[:33] + padding + content[33:], 4, 5).any()
    assert set(_chunks(content[:33] + padding + content[33:])) == {b"IHDR", b"IDAT"}
    info = {**INFO, "more": {"valid": False, "nouns": "own", "score": 1.0, "seat_rewards": "x", "ply": "x"}}
    with stranger(OPENED, {**PLAYED, "info": info}) as url, remote(url) as env:
        assert env.reset(seed=0)[1] == {**INFO, "nouns": "own"}


ENDED = {**OVER, "info": {**INFO, "score": 1.0, "success": True}}


@pytest.mark.parametrize("name", ["seat_rewards", "seat_scores", "points", "answer", "ply", "reseed"])
@pytest.mark.parametrize("value", ["x", [1], None])
def test_what_is_told_beside_breaks_no_engine(monkeypatch, name, value):
    ended = {**ENDED, "info": {**ENDED["info"], "more": {name: value}}}
    with stranger(OPENED, {**PLAYED, "info": {**INFO, "more": {name: value}}}, ended) as url:
        monkeypatch.setenv("LMGYM_REMOTE_URL", url)
        monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
        job = Job(task="lmgym/Remote-v0", options={"url": url, "task": "wordle", "timeout": 5.0}, index=0, id="e")
        (trajectory,) = Engine().run(Bytes(lambda _: "x"), [job])
    assert (trajectory.score, trajectory.success) == (1.0, True)
    assert fork(trajectory, 1, trusted=True).prefix == trajectory.turns


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*PLAYED, *wire.BASE, "more", "images", "tools", "error", "code"]), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(ANYTHING)
def test_whatever_is_answered_nothing_but_a_backend_error_is_raised(answer):
    with stranger(OPENED, answer) as url, remote(url) as env:
        try:
            observation, _ = env.reset(seed=0)
        except BackendError:
            return
        assert observation in env.observation_space


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    more=st.dictionaries(st.sampled_from([*sorted(wire.BASE), "own"]), ANYTHING),
    over=st.dictionaries(st.sampled_from(["text", "info", "reward", "terminated", "truncated", "images"]), ANYTHING),
)
def test_whatever_a_step_is_answered_nothing_but_a_backend_error_is_raised(more, over):
    answer = {**ENDED, "info": {**ENDED["info"], "more": more}, **over}
    with stranger(OPENED, PLAYED, answer) as url, remote(url) as env:
        env.reset(seed=0)
        try:
            observation, reward, terminated, truncated, info = env.step("x")
        except BackendError:
            return
        assert observation in env.observation_space
        assert type(reward) is float
        if terminated or truncated:
            assert (info["score"], info["success"]) == (1.0, True)


def hangs_up(connection: ServerConnection) -> None:
    connection.socket.shutdown(socket.SHUT_RDWR)


def says_nothing(connection: ServerConnection) -> None:
    time.sleep(1.0)


@pytest.mark.parametrize("ends", [hangs_up, says_nothing, lambda connection: connection.close(1011)])
def test_a_connection_that_goes_is_a_backend_error(ends: Callable[[ServerConnection], None]):
    with (
        stranger(OPENED, PLAYED, ends) as url,
        closing(build("remote", url=url, task="wordle", token=TOKEN, timeout=0.5)) as env,
    ):
        env.reset(seed=0)
        with pytest.raises(BackendError, match="was lost"):
            env.step("crane")


def test_a_server_of_another_kind_is_a_backend_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            wire, _ = listener.accept()
            with wire:
                wire.recv(4096)
                wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(BackendError):
            build("remote", url=f"http://127.0.0.1:{listener.getsockname()[1]}", task="wordle", token=TOKEN)


def test_a_token_is_never_part_of_a_message():
    with served("wordle") as asking:
        for wrong in ({"token": "secret-of-somebody-else"}, {"task": "chess"}):
            with pytest.raises(LmgymError) as refused:
                build("remote", **{"url": asking.url, "task": "wordle", "token": TOKEN, **wrong})
            assert "secret" not in str(refused.value)
            assert TOKEN not in str(refused.value)


def test_an_episode_whose_connection_is_lost_is_played_again_and_never_scored(monkeypatch):
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    with served("guess_number") as asking:
        monkeypatch.setenv("LMGYM_REMOTE_URL", asking.url)
        options = {"url": asking.url, "task": "guess_number"}
        jobs = [Job(task="lmgym/Remote-v0", options=options, index=n, id=f"e{n}") for n in range(24)]
        cut: list[str] = []

        def speak(conversation: Any) -> str:
            if len(cut) < 2 and (sessions := list(asking.serving.sessions.by_name)):
                cut.append(sessions[0])  # as the reaper would
                session = asking.serving.sessions.by_name[sessions[0]]
                asking.serving.sessions._end(session)
            return "50"

        engine = Engine(concurrency=4)
        trajectories = list(engine.run(Bytes(speak), jobs))
    assert len(trajectories) == 24
    assert len(cut) == 2
    assert engine.stats.voided >= 1
    assert all(trajectory.stop for trajectory in trajectories)


def test_a_secret_may_not_stand_in_a_record():
    from lmgym.cli.options import task_options

    with pytest.raises(InstanceError, match="LMGYM_REMOTE_TOKEN"):
        task_options(["url=http://127.0.0.1:1", "token=abc"])


def test_the_oracle_of_a_server_that_withholds_it_plays_nothing(games, monkeypatch):
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    monkeypatch.setenv("LMGYM_REMOTE_URL", games.url)
    job = Job(task="lmgym/Remote-v0", options={"url": games.url, "task": "wordle"}, index=0)
    with pytest.raises(InstanceError, match="withholds the oracle"):
        list(Engine().run(hinted("oracle"), [job]))


@contextmanager
def eavesdropper() -> Iterator[tuple[str, list[bytes]]]:
    """An address, and what is said there."""
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def listen() -> None:
            try:
                while True:
                    caller, _ = listener.accept()
                    with caller:
                        heard.append(caller.recv(4096))
            except OSError:
                return

        threading.Thread(target=listen, daemon=True).start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", heard
        listener.shutdown(socket.SHUT_RDWR)


def recorded(folder: Any, **changes: Any) -> str:
    """A file with an episode that says it was another."""
    (trajectory,) = Engine().run(Bytes(lambda _: "50"), [Job(task="lmgym/GuessNumber-v0", index=0, id="e")])
    file = folder / "episodes.jsonl"
    episodes.write(file, [replace(trajectory, **changes)])
    return str(file)


def test_a_record_calls_no_server_unless_it_is_trusted(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("LMGYM_REMOTE_TOKEN", TOKEN)
    with eavesdropper() as (url, heard):
        file = recorded(tmp_path, task="lmgym/Remote-v0", options={"url": url, "task": "wordle", "timeout": 2.0})
        assert command("replay", file) == 2
        assert "--trust" in capsys.readouterr().err
        assert heard == []
        monkeypatch.setenv("LMGYM_REMOTE_URL", url.replace("http:", "https:"))  # the same host, overheard on the way
        assert command("replay", file, "--trust") == 2
        assert "LMGYM_REMOTE_TOKEN is sent only" in capsys.readouterr().err
        assert heard == []
        monkeypatch.setenv("LMGYM_REMOTE_URL", url + "/")
        assert command("replay", file, "--trust") == 2
        assert heard
        assert all(TOKEN.encode() in words for words in heard)


@pytest.mark.parametrize("option", ["others", "judge"])
def test_a_record_imports_nothing_unless_it_is_trusted(monkeypatch, capsys, tmp_path, option):
    (tmp_path / "planted_by_a_record.py").write_text("def play(text):\n    return '1'\n")
    monkeypatch.syspath_prepend(tmp_path)
    named = "python:planted_by_a_record:play"
    file = recorded(tmp_path, task="lmgym/WebFormsArena-v0", options={option: named, "split": "train"})
    assert command("replay", file) == 2
    assert f"imports {option}={named!r}" in capsys.readouterr().err
    assert "planted_by_a_record" not in sys.modules
