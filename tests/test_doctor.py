"""`lmgym doctor`: records of what is installed, and the command that prints them."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError
from types import SimpleNamespace

import pytest

from lmgym import doctor
from lmgym.backends.browser.process import EXECUTABLE
from tests.command import command


def check(name: str) -> doctor.Check:
    (found,) = [each for each in doctor.doctor() if each.name == name]
    return found


def test_every_missing_thing_says_who_needs_it_and_how_to_get_it():
    checks = doctor.doctor()
    assert len({each.name for each in checks}) == len(checks)
    assert {"lmgym", "threads", "disk", "GPU", "Chromium", "bubblewrap", "sandbox", "desktop"} <= {
        each.name for each in checks
    }
    assert all(each.needed_by and each.fix for each in checks if each.status == "missing")


def test_a_missing_package_names_its_extra_and_its_tasks(monkeypatch):
    def version(package: str) -> str:
        if package == "playwright":
            raise PackageNotFoundError(package)
        return "1"

    monkeypatch.setattr(doctor, "version", version)
    web = check("extra web")
    assert (web.status, web.detail, web.fix) == ("missing", "not installed: playwright", "pip install 'lmgym[web]'")
    assert "miniwob" in web.needed_by
    assert check("extra board").status == "ok"


@pytest.mark.parametrize("program", ["bubblewrap", "Chromium", "Stockfish"])
def test_a_missing_program_names_its_debian_package(monkeypatch, program):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(EXECUTABLE, raising=False)
    monkeypatch.setenv("LMGYM_STOCKFISH", "/nonexistent")
    found = check(program)
    assert found.status == "missing"
    assert f"apt-get install {program.lower()}" in found.fix


def test_a_sandbox_and_a_desktop_say_what_they_lack(monkeypatch):
    monkeypatch.setattr(doctor.bubblewrap, "unavailable", lambda: "bwrap is not installed: apt-get install bubblewrap")
    monkeypatch.setenv("PATH", "")
    assert check("sandbox").detail.startswith("bwrap is not installed")
    for task in ("swe_repair", "swebench", "python_math", "terminal"):
        assert task in check("sandbox").needed_by
    assert check("desktop").fix.startswith("apt-get install bubblewrap xvfb")
    assert "desktop" in check("desktop").needed_by


def test_an_unknown_sandbox_engine_is_reported(monkeypatch):
    monkeypatch.setenv("LMGYM_SANDBOX", "nonsense")
    sandbox = check("sandbox")
    assert sandbox.status == "missing"
    assert sandbox.detail == "LMGYM_SANDBOX: unknown sandbox engine 'nonsense'; choose bubblewrap or docker"
    assert sandbox.fix == "unset LMGYM_SANDBOX, or set it to bubblewrap or docker"


@pytest.mark.parametrize(
    ("driver", "below", "words"),
    [("overlay2", "extfs", "no limit on all files"), ("overlay2", "xfs", "only if XFS is mounted"), ("btrfs", "", "")],
)
def test_docker_without_quotas_says_that_the_disk_of_image_boxes_has_no_limit(monkeypatch, driver, below, words):
    """Docker refuses the limit there, and such boxes start without it."""
    facts = {
        **{"ServerVersion": "27.0", "SecurityOptions": ["name=userns"], "Driver": driver},
        "DriverStatus": [["Backing Filesystem", below]],
    }

    @contextmanager
    def requests(purpose):
        yield SimpleNamespace(info=lambda: facts)

    monkeypatch.setattr(doctor.daemon, "requests", requests)
    monkeypatch.setattr(doctor.daemon, "unavailable", lambda: "")
    _, *limits = check("Docker").detail.split("; ")
    assert [words in limit for limit in limits] == [True] * bool(words)


def test_a_narrow_terminal_cuts_nothing(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    address = "unix:///var/run/a-long-name-of-a-socket.sock"
    row = doctor.Check(name="Docker", status="missing", detail=address, needed_by="x", fix="set $LMGYM_DOCKER_HOST")
    monkeypatch.setattr(doctor, "doctor", lambda: [row])
    assert command("doctor") == 0
    lines = [line.split("│") for line in capsys.readouterr().out.splitlines() if line.startswith("│")]
    assert "".join(line[3].strip() for line in lines) == address
    assert "…" not in str(lines)


def test_official_data_is_counted_or_missing(monkeypatch, tmp_path):
    monkeypatch.delenv("WEBSHOP_DATA", raising=False)
    webshop = check("data of lmgym/WebShopOfficial-v0")
    assert webshop.status == "missing"
    assert "WEBSHOP_DATA" in webshop.detail


def test_the_command_prints_what_is_missing(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    assert command("doctor", "--missing") == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "bubblewrap" in printed
    assert "threads" not in printed
