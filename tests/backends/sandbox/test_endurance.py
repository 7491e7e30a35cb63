"""Episodes and killed trainers leave no container, process, mount, control group or folder.

`LMGYM_EPISODES=1000 LMGYM_KILLS=100 .ci/docker run .venv/bin/pytest -m slow tests/backends/sandbox/test_endurance.py`
plays the full numbers.
"""

import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from lmgym.backends.sandbox import Box, cgroup, daemon, open_sandbox
from lmgym.backends.sandbox.owner import alive, owner
from lmgym.env.registry import build
from tests.backends.sandbox.conftest import ENGINES

pytestmark = pytest.mark.slow
EPISODES = int(os.environ.get("LMGYM_EPISODES", "6"))
KILLS = int(os.environ.get("LMGYM_KILLS", "4"))
TRAINER = """
import os, threading
from lmgym.backends.sandbox import open_sandbox
def play():
    while True:
        with open_sandbox() as sandbox:
            sandbox.run("sleep 987 & (setsid sleep 987 &) ; head -c 1M /dev/zero > /tmp/x; sleep 0.05")
for _ in range(3):
    threading.Thread(target=play).start()
print("ready", flush=True)
"""


@pytest.fixture(params=["bubblewrap", "docker"])
def chosen(request, monkeypatch):
    ENGINES[request.param]()
    monkeypatch.setenv("LMGYM_SANDBOX", request.param)
    return request.param


def leftovers(engine):
    """Return what sandboxes consist of, by kind."""
    commands = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # gone meanwhile
            commands.append(path.read_bytes())
    kinds = {
        "groups": {str(path) for path in cgroup.ROOT.rglob("lmgym-*") if not _in_use(path.name)},
        "mounts": set(Path("/proc/self/mounts").read_text().splitlines()),
        "folders": {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("lmgym-ssh")},
        "programs": {each for each in commands if each.startswith(b"sleep\x00987")},
    }
    if engine == "docker":
        with daemon.requests("list containers") as connection:
            kinds["containers"] = {row["Id"] for row in connection.containers(all=True)}
            kinds["volumes"] = {row["Name"] for row in connection.volumes()["Volumes"] or ()}
    return kinds


def _in_use(group):
    """Return True for a control group of a living process, such as another run of the tests."""
    return not cgroup.NAME.fullmatch(group) or _foreign(group[len(cgroup.PREFIX) :].rpartition("-")[0])


def _foreign(mark):
    return alive(mark) and mark != owner()


def settled(engine, before):
    """Return what is left of `leftovers` beyond what was there before, once nothing goes away any more."""
    for _ in range(100):
        after = leftovers(engine)
        surplus = {kind: after[kind] - before[kind] for kind in after if after[kind] - before[kind]}
        if not surplus:
            break
        time.sleep(0.1)
    return surplus


def test_episodes_leave_nothing(chosen):
    with open_sandbox(Box()):
        pass  # sweeps what was there
    before = leftovers(chosen)
    env = build("lmgym/SWERepair-v0", split="test")
    for number in range(EPISODES):
        env.reset(seed=0, options={"index": number % 52})
        env.step("```bash\n(setsid sleep 987 &); sleep 987 & echo done\n```")
    env.close()
    assert settled(chosen, before) == {}


def test_killed_trainers_leave_nothing(chosen):
    with open_sandbox(Box()):
        pass
    before, chance = leftovers(chosen), random.Random(0)
    for _ in range(KILLS):
        trainer = subprocess.Popen([sys.executable, "-c", TRAINER], stdout=subprocess.PIPE)
        with trainer:
            assert trainer.stdout.readline() == b"ready\n"
            time.sleep(chance.uniform(0.0, 1.5))
            os.kill(trainer.pid, signal.SIGKILL)
    sweep = "from lmgym.backends.sandbox import open_sandbox\nopen_sandbox().close()"
    time.sleep(2.0)  # containers that were being made when their owner died
    subprocess.run([sys.executable, "-c", sweep], check=True)
    assert settled(chosen, before) == {}
