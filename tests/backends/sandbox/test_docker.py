"""The engine Docker: images, limits, and what becomes of containers when something is killed."""

import io
import os
import signal
import subprocess
import sys
import tarfile

import pytest

from lmgym.backends.sandbox import Box, SandboxLimits, daemon, images, open_sandbox, opening
from lmgym.errors import BackendError, InstanceError
from tests.components import docker

pytestmark = pytest.mark.slow
NAME = "lmgym/test:built"


@pytest.fixture(scope="module", autouse=True)
def daemon_of_the_tests():
    docker()


def containers():
    """Return the ids of all sandboxes' containers."""
    with daemon.requests("list containers") as connection:
        return {row["Id"] for row in connection.containers(all=True, filters={"label": daemon.SANDBOX})}


@pytest.fixture
def image(tmp_path):
    """An image built from a folder, its base replaced."""
    (tmp_path / "Dockerfile").write_text("FROM python:3.11\nWORKDIR /app\nCOPY . /app\nRUN echo built > /app/mark\n")
    (tmp_path / "data.txt").write_text("data\n")
    images.build(tmp_path, NAME, base_image=images.base())
    yield NAME
    images.delete(NAME)


def test_a_folder_becomes_an_image(image):
    with open_sandbox(Box(image=image, folder="/app", root=True)) as sandbox:
        assert sandbox.run("pwd; cat data.txt mark; id -u").text == "/app\ndata\nbuilt\n0\n"
        assert sandbox.run("echo x > /usr/bin/new && echo $?").text == "0\n"
        state = sandbox.save()
        sandbox.run("rm -rf /app/*")
        sandbox.restore(state)
        assert sandbox.read("data.txt") == b"data\n"
    with open_sandbox(Box(image=image, folder="/app")) as sandbox:
        assert sandbox.run("id -u; ls /usr/bin/new; touch x").code != 0


def test_trees_stand_in_an_image(image, tmp_path):
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "fresh.txt").write_text("fresh")
    with open_sandbox(Box(image=image, folder="/app", trees={"/app": tree})) as sandbox:
        assert sandbox.run("ls").text == "fresh.txt\n"


def test_an_archive_becomes_an_image():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        member = tarfile.TarInfo("note.txt")
        member.size = 5
        tar.addfile(member, io.BytesIO(b"hello"))
    buffer.seek(0)
    images.load(buffer, "lmgym/test:loaded", changes=("ENV COLOUR=red",))
    try:
        with daemon.requests("look at an image") as connection:
            assert connection.inspect_image("lmgym/test:loaded")["Config"]["Env"] == ["COLOUR=red"]
    finally:
        images.delete("lmgym/test:loaded")
    assert not images.exists("lmgym/test:loaded")


@pytest.mark.parametrize(
    "text", ["FROM scratch\nRUN true", "FRM x", "", "FROM {base}\nRUN exit 3", "FROM {base}\nCOPY missing /"]
)
def test_a_dockerfile_that_fails_is_one_line_and_leaves_nothing(tmp_path, text):
    base = images.base()
    (tmp_path / "Dockerfile").write_text(text.format(base=base))
    with daemon.requests("list images") as connection:
        before = {each["Id"] for each in connection.images(all=True)}
        with pytest.raises(InstanceError, match="Dockerfile fails: ") as raised:
            images.build(tmp_path, NAME)
        assert "\n" not in str(raised.value)
        assert {each["Id"] for each in connection.images(all=True)} == before
        assert not connection.containers(all=True, filters={"label": daemon.IMAGE})


def test_what_is_missing_is_named(tmp_path):
    with pytest.raises(InstanceError, match="has no Dockerfile"):
        images.build(tmp_path, NAME)
    with pytest.raises(InstanceError, match="no image 'lmgym/test:nonesuch'"):
        open_sandbox(Box(image="lmgym/test:nonesuch"))
    with pytest.raises(InstanceError, match="needs the engine docker"):
        open_sandbox(Box(image="lmgym/test:nonesuch"), engine="bubblewrap")


def test_the_engine_of_the_environment(monkeypatch):
    monkeypatch.setenv("LMGYM_SANDBOX", "docker")
    before = containers()
    with open_sandbox():
        assert len(containers() - before) == 1
    assert containers() == before


def test_a_killed_container_is_a_broken_backend():
    sandbox = open_sandbox(engine="docker")
    container = sandbox._channel._id
    killer = f"import time; time.sleep(0.3); from lmgym.backends.sandbox import daemon; daemon.remove('{container}')"
    with subprocess.Popen([sys.executable, "-c", killer]), pytest.raises(BackendError, match="container is gone"):
        sandbox.run("sleep 30")
    assert container not in containers()


def test_a_killed_owner_leaves_no_container():
    before = containers()
    program = (
        "import os, sys; from lmgym.backends.sandbox import open_sandbox\n"
        "box = open_sandbox(engine='docker')\nprint(box._channel._id, flush=True)\nbox.run('sleep 987')"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        container = owner.stdout.readline().strip()
        os.kill(owner.pid, signal.SIGKILL)
    daemon.sweep()
    with daemon.requests("wait") as connection:
        for _ in range(100):
            if container not in containers():
                break
            connection.ping()
    assert containers() == before


def test_only_the_containers_of_the_dead_are_swept():
    with open_sandbox(engine="docker") as sandbox:
        marks = {**daemon.labels(), daemon.OWNER: daemon.labels()[daemon.OWNER].rpartition("/")[0] + "/4000000-1"}
        foreign = {**marks, daemon.SANDBOX: "another machine"}
        with daemon.requests("create containers") as connection:
            made = [
                connection.create_container(images.base(), ["true"], labels=each)["Id"] for each in (marks, foreign, {})
            ]
            try:
                assert daemon.sweep() == 1
                left = {row["Id"] for row in connection.containers(all=True)}
                assert left >= {*made[1:], sandbox._channel._id}
                assert made[0] not in left
            finally:
                for each in made:
                    daemon.remove(each)


def test_disk_of_one_box():
    limits = SandboxLimits(disk=8 << 20)
    with open_sandbox(Box(limits=limits), engine="docker") as sandbox:
        assert sandbox.run("head -c 9M /dev/zero > x").code != 0
        assert sandbox.run("rm x; head -c 7M /dev/zero > x").code == 0


def test_a_warm_pool_has_the_next_sandbox_ready(monkeypatch):
    monkeypatch.setenv("LMGYM_SANDBOX_WARM", "1")
    before = containers()
    pool = opening._pool(os.getpid(), 1)
    with open_sandbox(engine="docker") as first:
        first.write("mark", b"1")
        ready = next(iter(pool._ready.values()))[0].result()
        with open_sandbox(engine="docker") as second:
            assert second is ready
            assert second.run("ls").text == ""
    pool.close()
    opening._pool.cache_clear()
    assert containers() == before
    monkeypatch.setenv("LMGYM_SANDBOX_WARM", "many")
    with pytest.raises(InstanceError, match="got 'many'"):
        open_sandbox(engine="docker")
