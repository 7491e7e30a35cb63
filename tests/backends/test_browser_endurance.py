"""Many episodes at once while the browser is killed, and many after one another in flat memory."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from pathlib import Path
from statistics import median

import pytest

from lmgym.backends.browser import process
from lmgym.backends.browser.process import descendants
from lmgym.backends.browser.session import BrowserSession
from lmgym.policy.load import load_policy
from lmgym.rollout.engine import Engine
from lmgym.types import Job
from tests.components import chromium
from tests.processes import gone

from .pages import HERE, Site, sites
from .test_browser_walls import running

chromium()

JOBS = [
    Job(task=f"lmgym/MiniWoB-{page}-v0", index=i // 4, seed=i)
    for i in range(80)
    for page in [("click-checkboxes", "email-inbox-reply", "enter-date", "read-table-2")[i % 4]]
]


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


def pages_of(count: int) -> list[int]:
    """Wait until as many contexts have a page, and return the processes of pages."""
    owner, deadline = process.shared_browser(), time.monotonic() + 240
    found: list[int] = []
    while (owner.sessions < count or len(found) < count) and time.monotonic() < deadline:
        time.sleep(0.1)
        with contextlib.suppress(OSError):  # one that ends meanwhile
            below = descendants(running().pid)
            found = [pid for pid in below if b"--type=renderer" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("victim", ["chromium", "renderer"])
def test_a_kill_during_fifty_episodes_voids_and_replays_them_and_leaves_nothing(victim, monkeypatch, tmp_path):
    engine = Engine(concurrency=50)
    before, profiles = set(descendants(os.getpid())), []
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # where Playwright makes the profile of the next browser
    lost: list[int] = []  # contexts that were open at the kill
    below: set[int] = set()

    def kill() -> None:
        renderers = pages_of(50)
        up = running()
        lost.append(process.shared_browser().sessions)
        profiles.append(up.profile)
        below.update(descendants(os.getpid()))
        os.kill(up.pid if victim == "chromium" else renderers[len(renderers) // 2], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    done = list(engine.run(load_policy("oracle"), JOBS))
    thread.join()
    below.update(descendants(os.getpid()))
    assert lost == [50]
    assert len(done) == len(JOBS)
    assert all(trajectory.success for trajectory in done)
    assert engine.stats.abandoned == 0
    if victim == "chromium":
        assert 45 <= engine.stats.voided <= 52  # one each, but for contexts whose episode had just ended
        assert engine.stats.faults <= 3
    else:
        assert 1 <= engine.stats.voided <= 2  # a page has a process of its own
    assert gone(sorted(below - before))
    assert profiles[0] is not None
    deadline = time.monotonic() + 20  # folders go after their processes
    while (left := [*tmp_path.glob("playwright*profile*")]) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert left == []
    assert not profiles[0].exists()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "resets", [pytest.param(800, marks=pytest.mark.slow), pytest.param(2000, marks=pytest.mark.whole)]
)
def test_many_resets_leave_memory_flat(resets):
    session = BrowserSession(sites(Site()))
    held: dict[int, list[int]] = {}
    for number in range(resets + 11):
        session.open(f"{HERE}/form?{number}")
        session.look()
        if number >= 200 and number % 200 < 11:  # the median, as a page's process is in the midst of something
            up = running().pid
            driver = int(Path(f"/proc/{up}/stat").read_text().rpartition(")")[2].split()[1])  # Playwright's, its parent
            held.setdefault(number // 200, []).append(memory([os.getpid(), driver, up, *descendants(up)]))
    session.close()
    flat = [median(held[k]) for k in range(1, resets // 200 + 1)]
    assert max(flat[1:]) <= 1.05 * flat[0], [int(value) >> 20 for value in flat]
