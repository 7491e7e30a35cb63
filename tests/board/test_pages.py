"""The site in a real Chromium, opened from disk: sorting, filtering, small screens, no barrier that axe-core finds."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright import sync_api as playwright

from lmgym.backends.browser.process import executable
from tests.board.test_site import board_store, pages

__all__ = ["board_store", "pages"]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
HERE = Path(__file__).parent
SIZES = {"desktop": (1280, 900), "phone": (375, 700)}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=executable(), args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, installed by npm."""
    folder = tmp_path_factory.mktemp("npm")
    shutil.copy(HERE / "package.json", folder)
    command = ["npm", "install", "--silent", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=300)
    return (folder / "node_modules/axe-core/axe.min.js").read_text(encoding="utf-8")


def names(pages: Path) -> list[str]:
    return sorted(path.relative_to(pages).as_posix() for path in pages.rglob("*.html"))


def opened(chromium: Any, path: Path, size: str = "desktop", **more: Any) -> tuple[Any, list[str]]:
    """A page opened from disk, and what it complained of or asked for."""
    width, height = SIZES[size]
    context = chromium.new_context(viewport={"width": width, "height": height}, **more)
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    page.on("request", lambda request: told.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    return page, told


def first_words(page: Any, table: str) -> list[str]:
    """The row headings that are shown, in order."""
    return [words.split()[-1] for words in page.locator(f"{table} tbody tr:visible th").all_inner_texts()]


def test_no_page_asks_for_anything_or_complains(chromium: Any, pages: Path) -> None:
    for name in names(pages):
        page, told = opened(chromium, pages / name)
        assert told == [], name
        page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_axe_finds_no_serious_barrier(chromium: Any, pages: Path, axe: str, size: str, scheme: str) -> None:
    barriers = {}
    for name in names(pages):
        page, _ = opened(chromium, pages / name, size, color_scheme=scheme)
        page.evaluate(axe)
        result = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        serious = [each for each in result["violations"] if each["impact"] in ("serious", "critical")]
        if serious:
            barriers[name] = [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in serious]
        assert result["passes"] or result["violations"] or result["incomplete"]  # it did look
        page.context.close()
    assert barriers == {}


def test_axe_would_find_one(chromium: Any, axe: str, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text('<html><body><img src="x.png"><input></body></html>')
    page, _ = opened(chromium, tmp_path / "bad.html")
    page.evaluate(axe)
    barriers = {each["id"] for each in page.evaluate("axe.run()")["violations"]}
    assert {"image-alt", "label", "html-has-lang"} <= barriers
    page.context.close()


def test_tables_are_sorted_by_their_headings_and_by_keys(chromium: Any, pages: Path) -> None:
    page, told = opened(chromium, pages / "tasks/Wordle-v0.html")
    assert first_words(page, "#t-task")[:2] == ["oracle", "honest"]
    heading = page.locator("#t-task thead th", has_text="Score")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "ascending"
    assert first_words(page, "#t-task")[-1] == "oracle"
    heading.get_by_role("button").focus()
    page.keyboard.press("Enter")
    assert heading.get_attribute("aria-sort") == "descending"
    assert first_words(page, "#t-task")[0] == "oracle"
    page.locator("#t-task thead th", has_text="Entry").get_by_role("button").click()
    assert page.locator("#t-task thead th[aria-sort]").count() == 1
    assert first_words(page, "#t-task") == ["honest", "null", "oracle", "random"]
    assert told == []


def test_rows_are_filtered_by_words(chromium: Any, pages: Path) -> None:
    page, _ = opened(chromium, pages / "tasks/Wordle-v0.html")
    page.get_by_label("Show only").fill("the rand")
    assert first_words(page, "#t-task") == ["random"]
    assert page.locator("#t-task-count").inner_text() == "1 of 4 rows"
    page.get_by_label("Show only").fill("<b>nothing like it</b>")
    assert first_words(page, "#t-task") == []


def test_tables_are_whole_without_a_script_and_pages_fit_a_phone(chromium: Any, pages: Path) -> None:
    page, _ = opened(chromium, pages / "tasks/Wordle-v0.html", java_script_enabled=False)
    assert page.locator("#t-task tbody tr").count() == 4
    assert page.locator(".tools").is_hidden()
    for name in names(pages):
        page, _ = opened(chromium, pages / name, "phone")
        wide, seen = page.evaluate("[document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert wide <= seen, name  # tables scroll in a box of their own
        page.context.close()


def test_the_policy_keeps_a_planted_script_from_running(chromium: Any, pages: Path, tmp_path: Path) -> None:
    text = (pages / "index.html").read_text()
    attack = "<script>document.title = 'taken'</script><img src=x onerror=\"document.title = 'taken'\">"
    (tmp_path / "index.html").write_text(text.replace("<h1>", f"{attack}<h1>", 1))
    page, told = opened(chromium, tmp_path / "index.html")
    page.wait_for_timeout(200)
    assert "taken" not in page.title()
    assert any("Content Security Policy" in each for each in told)
