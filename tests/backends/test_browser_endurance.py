"""Many episodes at once while the browser is killed, and many after one another in flat memory."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("playwright")

from lmgym.backends import browser
from lmgym.backends.browser import family
from lmgym.backends.browser_session import Session
from lmgym.errors import BackendError
from lmgym.policy.load import load_policy
from lmgym.rollout.engine import Engine
from lmgym.types import Job

from .pages import HERE, Site, sites
from .test_browser_walls import gone

try:
    browser.executable()
except BackendError as missing:
    pytest.skip(str(missing), allow_module_level=True)

JOBS = [
    Job(task=f"lmgym/MiniWoB-{page}-v0", index=i // 4, seed=i)
    for i in range(80)
    for page in [("click-checkboxes", "email-inbox-reply", "enter-date", "read-table-2")[i % 4]]
]


def running() -> browser.Running:
    owner = browser.browser()
    return owner.run(owner.ready(), 60)


def memory(pids: list[int]) -> int:
    """Bytes that processes hold for themselves."""
    held = 0
    for pid in pids:
        try:
            lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
        except OSError:
            continue
        held += (
            sum(int(line.split()[1]) for line in lines if line.startswith(("Private_Clean", "Private_Dirty"))) * 1024
        )
    return held


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("victim", ["chromium", "renderer"])
def test_a_kill_during_fifty_episodes_voids_and_replays_them(victim):
    engine = Engine(concurrency=50)
    killed: list[int] = []
    families: list[int] = []
    profiles: list[Path | None] = []

    def kill() -> None:
        time.sleep(8)  # the fifty are under way
        up = running()
        families.extend([up.pid, *family(up.pid)])
        profiles.append(up.profile)
        renderers = [p for p in family(up.pid) if b"--type=renderer" in Path(f"/proc/{p}/cmdline").read_bytes()]
        killed.append(up.pid if victim == "chromium" else renderers[len(renderers) // 2])
        os.kill(killed[0], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    done = list(engine.run(load_policy("oracle"), JOBS))
    thread.join()
    assert killed
    assert len(done) == len(JOBS)
    assert all(trajectory.success for trajectory in done)
    assert engine.stats.voided >= (1 if victim == "renderer" else 5)
    assert engine.stats.abandoned == 0
    if victim == "chromium":
        assert engine.stats.faults <= 3
        assert gone(families)
        assert profiles[0] is not None
        assert not profiles[0].exists()


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_thousand_resets_leave_memory_flat():
    session = Session(sites(Site()))
    held = []
    for number in range(2000):
        session.open(f"{HERE}/form?{number}")
        session.look()
        if number in (200, 600, 1000, 1400, 1800, 1999):
            up = running()
            held.append(memory([os.getpid()]) + memory([up.pid, *family(up.pid)]) + memory(family(os.getpid())))
    session.close()
    assert max(held[1:]) <= 1.05 * held[0], [value >> 20 for value in held]
