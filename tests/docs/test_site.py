"""The documentation site builds without warnings and needs no network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "docs/site/mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-f", str(CONFIG), "-d", str(folder)]
    env = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, capture_output=True, text=True, env=env)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    for page in pages:
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*src=\"(https?:[^\"]+)", page.read_text())
        loaded += re.findall(
            r"<link[^>]*rel=\"(?:stylesheet|preconnect|icon)\"[^>]*href=\"(https?:[^\"]+)", page.read_text()
        )
        assert not loaded, page


def test_reference_lists_every_command(site: Path) -> None:
    from lmgym.cli import app

    page = (site / "reference/cli.html").read_text()
    assert all(f'id="lmgym-{command.name or command.callback.__name__}"' in page for command in app.registered_commands)
