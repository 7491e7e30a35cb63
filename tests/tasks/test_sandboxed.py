"""Tasks whose policy's code runs in sandboxes of their own are replayed outside of one: their sandboxes must hold."""

import itertools
import time

import pytest

from lmgym.backends.desktop.session import Desktop
from lmgym.backends.sandbox import Sandbox, open_sandbox
from lmgym.env.registry import build, specs
from lmgym.errors import InstanceError
from tests import components
from tests.backends.sandbox.test_escapes import PROGRAMS

pytestmark = pytest.mark.slow
DESKTOPS = {"lmgym/Desktop-v0", "lmgym/OSWorldOfficial-v0"}  # their sandboxes are no Sandbox: the last test has them
TASKS = [spec.id for spec in specs().values() if spec.sandboxed and not spec.part_of and spec.id not in DESKTOPS]
FIRST = {"lmgym/Mint-v0": "<execute>print(1)</execute>"}  # where the oracle runs no code
# What the attacks reach on a desktop is its applications' own: process 1 is a shell of the same user, and files in /tmp
# are limited by their bytes alone.
OWN = {"descriptors of process 1", "root of process 1", "inodes"}


@pytest.fixture
def boxes(monkeypatch):
    """The different boxes of the sandboxes that a test opens."""
    opened, start = [], Sandbox.__init__

    def noted(sandbox, channel, box):
        if box not in opened:
            opened.append(box)
        start(sandbox, channel, box)

    monkeypatch.setattr(Sandbox, "__init__", noted)
    return opened


@pytest.mark.parametrize("task", TASKS)
def test_the_sandboxes_of_a_task_hold(task, boxes):
    """All boxes that an oracle's episode opens withstand the attacks, and go on."""
    components.bubblewrap()
    env = build(task, split=next(iter(specs()[task].splits)))
    try:
        env.reset(seed=0, options={"index": 0})
    except InstanceError as error:
        pytest.skip(f"{task} has no instances here: {error}")
    for action in itertools.chain([FIRST[task]] if task in FIRST else [], env.unwrapped.oracle()):
        if any(env.step(action)[2:4]):
            break
    env.close()
    assert boxes
    for box in list(boxes):
        with open_sandbox(box) as sandbox:
            attack(sandbox)


def attack(sandbox):
    """Assert that a sandbox withstands the attacks and its limits."""
    for name, program in PROGRAMS.items():
        if name in ("disk", "inodes", "shared memory"):  # these fill a small disk; the ones below any
            continue
        text = sandbox.run(["python3", "-c", program], timeout=20).text
        assert "HELD" in text, name
        assert "ESCAPED" not in text, name
    limits = sandbox.box.limits
    assert sandbox.run(f"head -c {limits.disk + 1} /dev/zero > /tmp/full").code != 0
    sandbox.run("rm /tmp/full")
    assert sandbox.run(["python3", "-c", f"bytearray({limits.memory + limits.disk + (64 << 20)})"]).code != 0
    sandbox.run(":(){ :|:& };:", timeout=1.5)
    sandbox.kill()
    assert sandbox.run("echo on").text == "on\n"


def test_the_applications_of_a_desktop_are_held():
    """Programs started as a terminal's are; the desktop goes on."""
    components.desktop()
    desktop = Desktop()
    desktop.reset(lambda home: None, [])
    for name, program in PROGRAMS.items():
        (desktop.home / "attack.py").write_text(program)
        desktop._applications.launch("sh", ["-c", "timeout 20 python3 ~/attack.py >~/out 2>&1; mv ~/out ~/done"])
        done, patience = desktop.home / "done", time.monotonic() + 60
        while not done.exists():
            assert time.monotonic() < patience, name
            time.sleep(0.05)
        text = done.read_text(errors="replace")
        done.unlink()
        assert ("ESCAPED" in text) is (name in OWN), name
        desktop._applications.launch("sh", ["-c", "rm -rf /tmp/big* /dev/shm/big*"])
    assert desktop.alive
    desktop.close()
