"""The desktop itself: real applications on a real display."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import openpyxl
import pytest

from lmgym.backends.desktop import pool, session, view
from lmgym.backends.desktop.calls import inputs_of_call
from lmgym.backends.desktop.display import wait_until
from lmgym.backends.desktop.folders import sweep
from lmgym.backends.desktop.inputs import check, perform
from lmgym.backends.desktop.session import Desktop, Launch
from lmgym.errors import BackendError, MissingExtra
from tests import components
from tests.processes import gone, named

components.desktop()


@pytest.fixture(scope="module")
def desktop() -> Iterator[Desktop]:
    running = Desktop()
    yield running
    running.close()


def act(desktop: Desktop, *actions: tuple[str, *tuple[object, ...]]) -> None:
    for name, *arguments in actions:
        inputs = inputs_of_call(name, arguments, {})
        check(inputs, desktop)
        for each in inputs:
            perform(each, desktop)


def watch(desktop: Desktop) -> None:
    for _ in range(100):
        desktop.rest()
        desktop.tree()
        time.sleep(0.02)


def with_file(name: str, content: str = "") -> Callable[[Path], None]:
    def furnish(home: Path) -> None:
        (home / name).write_text(content)

    return furnish


def nothing(home: Path) -> None:
    """Add no files."""


def test_a_missing_browser_is_named(desktop: Desktop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "BROWSER_PROGRAM", Path("/none"))
    with pytest.raises(MissingExtra, match="apt-get install chromium"):
        desktop.launch(Launch("chromium"))


def test_text_of_any_script_is_typed_whole_and_saved(desktop: Desktop) -> None:
    text = "Grüße, 漢字 🙂 Ω ≤ “quoted” {[|]} ABC\tend\n" + "".join(map(chr, range(0x400, 0x412)))
    desktop.reset(with_file("note.txt"), [Launch("mousepad", ("note.txt",), "note.txt")])
    for line, part in enumerate(text.split("\n")):
        act(desktop, *([("press", "enter")] if line else []), ("type", part))
    act(desktop, ("hotkey", "ctrl+s"))
    assert (desktop.home / "note.txt").read_text() == text


def test_tree_names_the_menus_the_text_and_where_they_are(desktop: Desktop) -> None:
    desktop.reset(with_file("a.txt", "seven words"), [Launch("mousepad", ("a.txt",))])
    chosen = view.elements(desktop.tree(), desktop.size)
    text = view.describe(chosen)
    assert "'seven words'" in text
    number = next(i for i, node in enumerate(chosen) if node.role == "menu" and node.name == "File")
    before = desktop.screenshot()
    act(desktop, ("click", *chosen[number].centre))
    assert (desktop.screenshot() != before).any()
    assert "menu-item 'Save As...'" in view.describe(view.elements(desktop.tree(), desktop.size)).replace(
        "Save _As", ""
    )
    picture = view.marked(desktop.screenshot(), chosen)
    assert picture.shape == (800, 1280, 3)
    assert (picture != desktop.screenshot()).any()


def test_reset_leaves_nothing_of_the_last_episode(desktop: Desktop) -> None:
    desktop.reset(with_file("old.txt"), [Launch("mousepad", ("old.txt",))])
    act(desktop, ("type", "x"), ("hotkey", "alt+f"))
    (desktop.home / ".bashrc").write_text("exit 1")
    desktop.reset(nothing, [])
    assert not desktop.windows()
    assert not (desktop.home / "old.txt").exists()
    assert "exit" not in (desktop.home / ".bashrc").read_text()


def test_every_episode_begins_at_the_same_time(desktop: Desktop) -> None:
    for _ in range(2):
        desktop.reset(with_file("a.txt"), [Launch("lxterminal")])
        act(desktop, ("type", "ls -l --time-style=full-iso a.txt >list; date -u '+%F %H:%M' >now; date +%s >late\n"))
        wait_until(lambda: (desktop.home / "late").exists(), 30, "the command")
        assert "2026-03-02 09:00:00.000000000 +0000 a.txt" in (desktop.home / "list").read_text()
        assert (desktop.home / "now").read_text() == "2026-03-02 09:00\n"


def test_a_sheet_knows_the_date_of_the_episode(desktop: Desktop) -> None:
    book = openpyxl.Workbook()
    book.active["A1"] = '=TEXT(TODAY(),"YYYY-MM-DD")'
    desktop.reset(lambda home: book.save(home / "a.xlsx"), [])
    desktop.run(session.OFFICE_PROGRAM, ["--headless", "--convert-to", "csv", "a.xlsx"])
    assert (desktop.home / "a.csv").read_text() == "2026-03-02\n"


def test_what_a_terminal_kills_are_applications_only(desktop: Desktop) -> None:
    desktop.reset(nothing, [Launch("mousepad"), Launch("lxterminal")])
    act(desktop, ("type", "id -un; cat /etc/shadow; ls /root; ping -c1 127.0.0.1\n"))
    terminal = next(node for root in desktop.tree() for node in root.walk() if node.role == "terminal")
    assert "user\n" in (terminal.text or "")
    assert "root:" not in (terminal.text or "")
    act(desktop, ("type", "kill -9 -1\n"), ("wait", 0.5))
    assert desktop.windows() == []
    assert desktop.alive


def test_a_terminal_reaches_no_file_of_the_servers(desktop: Desktop) -> None:
    desktop.reset(nothing, [Launch("lxterminal")])
    command = "cd $XDG_RUNTIME_DIR; : >Xvfb_screen0; mkfifo exits; rm -rf bus at-spi /tmp/.X11-unix/X0; cd\n"
    act(desktop, ("type", command), ("type", "yes >/proc/1/fd/1 & sleep 0.3; kill $!\n"), ("wait", 0.5))
    assert desktop.screenshot().std() > 0
    assert desktop.usable
    desktop.reset(with_file("a.txt", "seven words"), [Launch("mousepad", ("a.txt",))])
    assert "'seven words'" in view.describe(view.elements(desktop.tree(), desktop.size))
    assert {path.name for path in desktop.folders[1].iterdir()} <= {"bus", "at-spi", "dconf"}


def test_a_terminal_may_end_the_window_manager(desktop: Desktop) -> None:
    desktop.reset(nothing, [Launch("lxterminal")])
    for command in ("openbox --exit", "openbox --replace &"):
        act(desktop, ("type", f"{command}\n"), ("wait", 0.5))
        wait_until(lambda: bool(desktop.windows()), 10, "the window manager")
    assert desktop.alive


def test_a_terminal_of_the_root_menu_may_end_applications(desktop: Desktop) -> None:
    desktop.reset(nothing, [Launch("mousepad")])
    act(desktop, ("right_click", 1270, 790), *[("press", "up")] * 3, ("press", "enter"))
    wait_until(lambda: desktop.rest() and len(desktop.windows()) == 2, 10, "the terminal")
    act(desktop, ("type", "pkill -9 mousepad; kill -9 -1\n"), ("wait", 0.5))
    assert desktop.windows() == []
    act(desktop, ("right_click", 1270, 790), *[("press", "up")] * 3, ("press", "enter"))
    wait_until(lambda: desktop.rest() and len(desktop.windows()) == 1, 10, "the terminal")


def test_the_crash_of_an_application_of_the_root_menu_raises(desktop: Desktop) -> None:
    desktop.reset(nothing, [])
    act(desktop, ("right_click", 1270, 790), *[("press", "up")] * 5, ("press", "enter"))
    wait_until(lambda: desktop.rest() and bool(desktop.windows()), 10, "the editor")
    os.kill(named("mousepad", desktop.processes())[0], signal.SIGKILL)
    with pytest.raises(BackendError, match="mousepad has crashed"):
        watch(desktop)


def test_a_desktop_without_a_socket_is_not_usable() -> None:
    with closing(Desktop()) as broken:
        assert broken.usable
        (broken.home.parent / "servers" / "at-spi" / "bus_0").unlink()
        assert broken.alive
        assert not broken.usable


def test_waiting_desktops_that_broke_are_ended_and_make_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MOST", 1)
    waiting = pool.DesktopPool()
    broken, fresh = Desktop(), Desktop()
    waiting.give_back(broken)
    (broken.home.parent / "servers" / "at-spi" / "bus_0").unlink()
    waiting.take((640, 480)).close()
    assert not broken.alive
    waiting.give_back(fresh)
    assert waiting.take() is fresh
    fresh.close()


@pytest.mark.slow
def test_too_much_in_the_home_folder_ends_the_applications_only(desktop: Desktop) -> None:
    for command in ("for i in $(seq 9); do head -c 100M /dev/zero >$i; done", "mkdir -p d; cd d; touch $(seq 30000)"):
        desktop.reset(nothing, [Launch("mousepad"), Launch("lxterminal")])
        act(desktop, ("type", f"({command}; sleep 100) & exit\n"))
        wait_until(lambda: not desktop.windows(), 30, "the end of the applications")
        assert sum(path.stat().st_size for path in desktop.home.glob("[1-9]")) < 9 * 100 * 1024**2
        assert desktop.alive
    desktop.reset(nothing, [Launch("lxterminal")])
    assert not list(desktop.home.glob("[1-9d]"))


def test_a_killed_part_raises_backend_error() -> None:
    for name in ("Xvfb", "openbox", "dbus-daemon"):
        with closing(Desktop()) as broken:
            broken.reset(nothing, [])
            os.kill(named(name, broken.processes())[0], signal.SIGKILL)
            with pytest.raises(BackendError):
                watch(broken)


def test_a_killed_application_raises_backend_error(desktop: Desktop) -> None:
    desktop.reset(nothing, [Launch("mousepad")])
    os.kill(named("mousepad", desktop.processes())[0], signal.SIGKILL)
    with pytest.raises(BackendError, match="mousepad has crashed"):
        watch(desktop)


def test_a_killed_owner_leaves_nothing_after_the_next_start() -> None:
    code = (
        "from lmgym.backends.desktop.session import Desktop, Launch; d = Desktop(); d.reset(lambda h: None, []);"
        "print(d.home.parent, *d.processes(), flush=True); import time; time.sleep(100)"
    )
    owner = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    folder, *pids = owner.stdout.readline().split()
    assert len(pids) > 4
    owner.kill()
    owner.wait()
    owner.stdout.close()
    sweep()
    assert gone(pids, 4)
    assert not Path(folder).exists()
