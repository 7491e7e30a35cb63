"""Every code block of README and docs/ runs, here or in the test of the page's area."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.evaluation.server import bisect, reply, serving

from .blocks import ROOT, PageRunner, blocks, in_new_process

ELSEWHERE = {  # pages whose blocks need servers or other libraries, and the test that runs them
    "docs/how-to/evaluation.md": "tests/evaluation/test_docs.py",
    "docs/how-to/interop.md": "tests/interop/test_docs.py",
    "docs/how-to/leaderboard.md": "tests/board/test_docs.py",
    "docs/how-to/serving.md": "tests/serve/test_docs.py",
}
ENDPOINT = "http://localhost:8000/v1"
OWN_TASK = "docs/tutorials/task.md"  # its commands import a package that the page writes
PAGES = ["README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md"))]
HERE = [page for page in PAGES if page not in ELSEWHERE and blocks(page)]
SLOW = [page for page in HERE if any(block.note == "slow" for block in blocks(page))]


def test_pages_that_run_elsewhere_are_named_there() -> None:
    for page, test in ELSEWHERE.items():
        assert page in (ROOT / test).read_text()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_has_a_language_and_a_known_note(page: str) -> None:
    fences = re.findall(r"^[ \t]*```", (ROOT / page).read_text(), re.MULTILINE)
    assert len(fences) == 2 * len(blocks(page))  # none is indented or left open
    for block in blocks(page):
        assert block.language, block.place
        assert re.fullmatch("|slow|output|not run: .+", block.note), f"{block.place}: {block.note}"


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[PageRunner]:
    """A reader of the page in an empty folder, with a model on loopback where the page names an endpoint."""
    monkeypatch.chdir(tmp_path)
    commands = {"lmgym": in_new_process} if request.node.callspec.params["page"] == OWN_TASK else {}
    with serving(lambda body: reply(bisect(body))) as server:
        yield PageRunner(monkeypatch, replace={ENDPOINT: server.url}, commands=commands)


@pytest.mark.parametrize("page", HERE)
def test_blocks_run(page: str, runner: PageRunner) -> None:
    for block in blocks(page):
        if not block.note:
            runner.run(block)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("page", SLOW)
def test_slow_blocks_run(page: str, runner: PageRunner) -> None:
    for block in blocks(page):
        if block.note in ("", "slow"):
            runner.run(block)
