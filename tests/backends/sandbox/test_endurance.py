"""Episodes and killed trainers leave no container, process, mount, control group or folder.

`LMGYM_EPISODES=1000 LMGYM_KILLS=100 .ci/docker run .venv/bin/pytest -m slow tests/backends/sandbox/test_endurance.py`
plays the full numbers, 1,000 episodes of which 50 are judged, and 100 trainers killed with -9, on each engine. On two
cores beside other work this took 2,027 and 148 seconds in bubblewrap, 2,141 and 152 in Docker, and left nothing.
"""

import contextlib
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from lmgym.backends.sandbox import Box, cgroup, daemon, open_sandbox
from lmgym.backends.sandbox.bubblewrap import USERS
from lmgym.backends.sandbox.owner import alive, owner
from lmgym.env.coding import AgentStep, call
from lmgym.env.registry import build
from tests.backends.sandbox.conftest import ENGINES

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7_200)]
EPISODES = int(os.environ.get("LMGYM_EPISODES", "6"))
KILLS = int(os.environ.get("LMGYM_KILLS", "4"))
JUDGED = 20  # one episode in so many is played by the oracle and judged
SLEEP = 900_000 + os.getpid()  # seconds: by this number programs of this run are known
DAEMONS = f"(setsid sleep {SLEEP} &); sleep {SLEEP} & echo done"
CONTAINER = re.compile(r"[0-9a-f]{64}")
TRAINER = f"""
import threading
from lmgym.backends.sandbox import open_sandbox
def play():
    while True:
        with open_sandbox() as sandbox:
            sandbox.run("{DAEMONS}; head -c 1M /dev/zero > /tmp/x; sleep 0.05")
for _ in range(3):
    threading.Thread(target=play).start()
print("ready", flush=True)
"""


@pytest.fixture(params=["bubblewrap", "docker"])
def chosen(request, monkeypatch, tmp_path):
    """The name of an engine, with a folder of temporary files of its own."""
    ENGINES[request.param]()
    monkeypatch.setenv("LMGYM_SANDBOX", request.param)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    with open_sandbox(Box()):
        pass  # sweeps what was there
    return request.param


def leftovers(engine, trainers=()):
    """Return what sandboxes consist of, by kind; `trainers` are processes that are gone."""
    groups = {os.path.join(above, name) for above, names, _ in os.walk(cgroup.ROOT) for name in names}
    kinds = {
        "groups": {path for path in groups if cgroup.NAME.fullmatch(Path(path).name) and not _in_use(path)},
        "mounts": set(Path("/proc/self/mounts").read_text().splitlines()),
        "files": set(Path(tempfile.gettempdir()).rglob("*")),
        "programs": set(_programs({os.getpid(), *trainers})),
    }
    if engine == "docker":
        with daemon.requests("list containers") as connection:
            rows = connection.containers(all=True)
            others = [row["Id"] for row in rows if not _ours(row["Labels"])]
            kinds["containers"] = {row["Id"] for row in rows} - set(others)
            kinds["volumes"] = {row["Name"] for row in connection.volumes()["Volumes"] or ()}
            places = [place for other in others for place in _places(connection, other)]
        kinds["groups"] |= {
            path for path in groups if CONTAINER.fullmatch(Path(path).name) and path[-64:] not in others
        }
        kinds["mounts"] |= {line for line in _mounts_of_the_daemon() if not any(place in line for place in places)}
    return kinds


def _programs(owners):
    """Yield the processes that sleep, or run as a sandbox's user, for one of these owners."""
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile
            user = path.stat().st_uid - USERS
            if (path / "cmdline").read_bytes() == f"sleep\0{SLEEP}\0".encode() or user // 256 in owners:
                yield path.name


def _in_use(group):
    """Return True for a control group of another living process, such as another run of the tests."""
    return _foreign(Path(group).name[len(cgroup.PREFIX) :].rpartition("-")[0])


def _foreign(mark):
    return alive(mark) and mark != owner()


def _ours(labels):
    """Return True for a container of this process or of one that is gone."""
    return daemon.abandoned(labels) or labels.get(daemon.OWNER, "").rpartition("/")[2] == owner()


def _places(connection, container):
    """Return by which strings the mounts of a container are known."""
    import docker

    with contextlib.suppress(docker.errors.NotFound):
        facts = connection.inspect_container(container)
        merged = facts["GraphDriver"]["Data"].get("MergedDir")
        return [place for place in (container, merged, facts["NetworkSettings"].get("SandboxKey")) if place]
    return [container]


def _mounts_of_the_daemon():
    """Return the mounts that a daemon on this machine sees, which may have a namespace of its own."""
    host = daemon.address()
    if not host.startswith("unix://"):
        return []
    with socket.socket(socket.AF_UNIX) as end:
        end.connect(host.removeprefix("unix://"))
        pid = struct.unpack("3i", end.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    return Path(f"/proc/{pid}/mounts").read_text().splitlines()


def settled(engine, before, trainers=()):
    """Return what is left of `leftovers` beyond what was there before, once nothing goes away any more."""
    for _ in range(100):
        after = leftovers(engine, trainers)
        surplus = {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}
        if not surplus:
            break
        time.sleep(0.1)
    return surplus


def test_an_open_sandbox_is_seen(chosen):
    before = leftovers(chosen)
    with open_sandbox(Box()) as sandbox:
        assert sandbox.run(DAEMONS).text == "done\n"
        after = leftovers(chosen)
        surplus = {kind for kind in after if after[kind] - before[kind]}
        assert {"groups", "programs"} <= surplus
        assert chosen == "bubblewrap" or {"containers", "mounts"} <= surplus
    assert settled(chosen, before) == {}


def test_episodes_leave_nothing(chosen):
    before = leftovers(chosen)
    env = build("lmgym/SWERepair-v0", split="test")
    for number in range(EPISODES):
        env.reset(seed=0, options={"index": number % 52})
        observation, *_, info = env.step(call("bash", AgentStep("run", {"command": DAEMONS})))
        assert info["valid"]
        assert "done" in observation["text"]
        if number % JUDGED == 0:
            for action in env.unwrapped.oracle():
                *_, info = env.step(action)
            assert info["score"] == 1.0
    env.close()
    assert settled(chosen, before) == {}


def test_killed_trainers_leave_nothing(chosen):
    before, chance, trainers = leftovers(chosen), random.Random(0), []
    for _ in range(KILLS):
        trainer = subprocess.Popen([sys.executable, "-c", TRAINER], stdout=subprocess.PIPE)
        with trainer:
            assert trainer.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0.0, 1.5))
            os.kill(trainer.pid, signal.SIGKILL)
        trainers.append(trainer.pid)
    sweep = "from lmgym.backends.sandbox import open_sandbox\nopen_sandbox().close()"
    time.sleep(2.0)  # containers that were being made when their owner died
    subprocess.run([sys.executable, "-c", sweep], check=True)
    assert settled(chosen, before, trainers) == {}
