"""`lmgym doctor`: records of what is installed, and the command that prints them."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError

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
    assert "swe_repair" in check("sandbox").needed_by
    assert check("desktop").fix.startswith("apt-get install bubblewrap xvfb")
    assert "desktop" in check("desktop").needed_by


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
