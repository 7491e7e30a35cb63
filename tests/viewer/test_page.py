"""The page in a real Chromium: what it shows, its keys, and attacks that come to nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from contextlib import nullcontext
from dataclasses import replace

import pytest
from playwright import sync_api as playwright

from lmgym.evaluation import report as reports
from lmgym.rollout import episodes
from lmgym.viewer.export import export
from lmgym.viewer.index import open_runs
from tests.evaluation.reports import report
from tests.viewer.conftest import Witness, opened, serving
from tests.viewer.planted import ATTACKS, PICTURE, episode, hostile_run, plain_run


@pytest.fixture
def plain(chromium, tmp_path):
    with serving(plain_run(tmp_path)) as viewer, opened(chromium, viewer.url) as (page, witness):
        yield page
        assert witness.messages == []


def listed(page) -> list[str]:
    return page.locator("[role=option] > div:first-child").all_inner_texts()


def title(page) -> str:
    return page.locator("article h1").first.inner_text()


def shown(page, number: int) -> None:
    playwright.expect(page.locator("article h1").first).to_contain_text(f"test {number} try")


def test_episodes_are_listed_the_first_is_open_and_pictures_of_the_run_are_shown(plain):
    assert len(listed(plain)) == 6
    assert plain.locator("#status").inner_text() == "6 of 6 episodes, 3 solved (50 %)"
    assert title(plain) == "lmgym/Planted-v0 test 0 try 0"
    assert plain.locator("section.turn").count() == 2
    assert plain.locator("section.turn pre.said").first.inner_text() == "look 0"
    assert "look 0!" in plain.locator("section.turn details:has-text('was given') pre").first.text_content()
    picture = plain.locator("section.turn img").first
    picture.scroll_into_view_if_needed()
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 4
    assert plain.locator("section.turn img").count() == 2
    assert plain.get_by_text("a picture that is not in the run's folder").count() == 2


def test_an_address_names_its_episode_and_what_broke_is_said_beside_the_list(chromium, tmp_path):
    run = plain_run(tmp_path / "run")
    reports.write(run, report([[1]] * 6, planned=8))
    with serving(run) as viewer, opened(chromium, viewer.url + "#4") as (page, _):
        assert title(page) == "lmgym/Planted-v0 test 4 try 0"
        assert page.locator("#absent").inner_text() == "Not in the list: run: 2 missing."


def test_a_search_and_filters_narrow_the_list_and_escape_widens_it(plain):
    plain.keyboard.press("/")
    plain.keyboard.type("LOOK 4")
    playwright.expect(plain.locator("[role=option]")).to_have_count(1)
    assert plain.locator("#status").inner_text().startswith("1 of 6")
    plain.keyboard.press("Escape")
    playwright.expect(plain.locator("[role=option]")).to_have_count(6)
    plain.select_option("#outcome", "success")
    assert len(listed(plain)) == 3
    plain.fill("#instance", "5")
    assert [text[-3:] for text in listed(plain)] == ["5.0"]
    plain.select_option("#outcome", "failure")
    assert listed(plain) == []
    plain.fill("#instance", "")
    plain.select_option("#task", "lmgym/Planted-v0 test")
    assert len(listed(plain)) == 3


def test_keys_go_through_episodes_and_turns(plain):
    plain.keyboard.press("j")
    shown(plain, 1)
    plain.keyboard.press("j")
    shown(plain, 2)
    plain.keyboard.press("k")
    shown(plain, 1)
    plain.keyboard.press("n")
    plain.keyboard.press("n")
    assert plain.evaluate("document.activeElement.id") == "turn-1"
    plain.keyboard.press("p")
    assert plain.evaluate("document.activeElement.id") == "turn-0"
    plain.keyboard.press("o")
    assert len(listed(plain)) == 3
    plain.locator("#list").focus()
    plain.keyboard.press("ArrowDown")
    shown(plain, 3)
    plain.keyboard.press("?")
    assert plain.locator("dialog[open]").count() == 1


def test_tokens_are_shaded_by_surprisal_and_by_entropy(plain):
    def shades():
        return [
            re.search(r"h\d", name)[0]
            for name in plain.locator("#turn-0 .token").evaluate_all("all => all.map(one => one.className)")
        ]

    plain.keyboard.press("t")
    plain.wait_for_selector("#turn-0 .token")
    assert shades() == ["h0", "h6", "h7"]  # surprisal .01, 3.5, 9 nats
    assert "probability 0.99" in plain.locator("#turn-0 .token").first.get_attribute("title")
    plain.keyboard.press("t")
    plain.wait_for_selector("text=entropy in nats")
    assert shades() == ["h0", "h3", "h7"]  # entropy 0, .9, 6 nats
    plain.keyboard.press("t")
    playwright.expect(plain.locator(".token")).to_have_count(0)


def test_two_runs_stand_side_by_side_on_an_instance(chromium, tmp_path):
    plain_run(tmp_path / "a")
    plain_run(tmp_path / "b", words="go")
    with serving(tmp_path / "a", tmp_path / "b") as viewer, opened(chromium, viewer.url) as (page, witness):
        page.keyboard.press("j")
        shown(page, 1)
        assert page.locator("#against option").all_inner_texts() == ["nothing", "b: try 0, score 1"]
        page.keyboard.press("d")
        page.wait_for_selector("#parting")
        assert page.locator("#parting").inner_text() == "They part at turn 1."
        assert page.locator("#turn-0 pre.said mark").all_text_contents() == ["look", "go"]  # drawn or not yet
        page.select_option("#run", "1")
        assert all("b ·" in row for row in page.locator("[role=option] .more").all_inner_texts())
        assert witness.messages == []


def test_ten_thousand_rows_draw_a_few_and_load_one(chromium, tmp_path):
    line = episodes.dump(episode(0))
    (tmp_path / "episodes.jsonl").write_text(
        "".join(line.replace('"index": 0', f'"index": {n}') + "\n" for n in range(10_000))
    )
    with serving(tmp_path) as viewer, opened(chromium, viewer.url) as (page, witness):
        assert page.locator("#status").inner_text().startswith("10000 of 10000")
        assert page.locator("[role=option]").count() == 60
        page.locator("#list").evaluate("list => { list.scrollTop = list.scrollHeight; }")
        page.wait_for_selector("#row-9999")
        assert page.locator("[role=option]").count() == 60
        page.locator("#row-9999").click()
        shown(page, 9999)
        loaded = [address for address in witness.requests if "/episode/" in address]
        assert len(loaded) == 2


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_light_or_dark_as_the_reader_wishes(chromium, tmp_path, scheme):
    def brightness(page):
        colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3]) / 3

    with serving(plain_run(tmp_path)) as viewer, opened(chromium, viewer.url, color_scheme=scheme) as (page, _):
        before = brightness(page)
        page.locator("#theme").click()
        after = brightness(page)
    assert (before > 128, after > 128) == ((True, False) if scheme == "light" else (False, True))


def nothing_happened(page, witness, allowed: str) -> None:
    assert page.evaluate("window.planted") is None
    assert witness.dialogs == []
    assert [address for address in witness.requests if not address.startswith(allowed)] == []
    scripts = "script:not([src='app.js']):not([type='application/json'])"
    assert page.locator("iframe, base, object, embed, article a, article svg, article form").count() == 0
    assert page.locator(f"head {scripts}, article script, nav script, header script").count() == 0
    assert page.locator("[onerror], [onload], [onfocus], [onclick], [href^='javascript:']").count() == 0
    assert page.locator(f"article img:not([src*='{PICTURE}']):not([src^='data:image/png'])").count() == 0


def walk(page) -> None:
    """Open every episode with everything unfolded, tokens shaded, two side by side, and search for an attack."""
    for number in range(len(ATTACKS)):
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        page.keyboard.press("t")
        if number + 1 < len(ATTACKS):
            page.keyboard.press("j")
            playwright.expect(page.locator(f"#row-{number + 1}")).to_have_attribute("aria-selected", "true")
            playwright.expect(page.locator("article h1").first).to_contain_text(f" {number + 1} try")
    page.keyboard.press("/")
    page.keyboard.type("<script>")
    playwright.expect(page.locator("[role=option]")).to_have_count(sum("<script>" in text for text in ATTACKS))


def test_what_does_not_show_is_written_out(chromium, tmp_path):
    episodes.write(
        tmp_path / "episodes.jsonl", [episode(0, "\x1b[2J a\u202eb \u2066 \u2028 \ud800 \x00 ok\nnext\ttab")]
    )
    with serving(tmp_path) as viewer, opened(chromium, viewer.url) as (page, _):
        text = page.locator("pre.said").first.text_content()
        assert text == "U+001B[2J aU+202Eb U+2066 U+2028 U+D800 U+0000 ok\nnext\ttab"


MISTAKES = """async () => {
    const fails = [];
    const attempt = (name, act) => { try { act(); } catch (error) { fails.push(name); } };
    attempt("markup", () => { document.body.innerHTML = "<b>x</b>"; });
    const script = document.createElement("script");
    attempt("script", () => { script.textContent = "window.planted = 1"; });
    await fetch("http://127.0.0.1:9/").catch(() => fails.push("fetch"));
    const link = document.createElement("a");
    link.setAttribute("href", "javascript:window.planted=1");
    document.body.append(link);
    link.click();
    await new Promise((resume) => setTimeout(resume, 50));
    return fails;
}"""  # what a page that forgot itself might do


def test_a_flood_is_shown_too(chromium, tmp_path):
    flood = episode(0, "\x00" * 100_000)
    turns = (*flood.turns[:1], *episode(0).turns * 500)
    episodes.write(tmp_path / "episodes.jsonl", [replace(flood, turns=turns, options={}, tags={}, prompt=None)])
    with serving(tmp_path) as viewer, opened(chromium, viewer.url) as (page, _):
        said = page.locator("#turn-0 pre.said")
        assert said.locator(".control").count() == 2000
        assert said.text_content().count("\ufffd") == 98_000
        assert page.locator("section.turn").count() == 1001


def test_the_policy_stops_what_a_mistake_in_the_page_would_let_through(chromium, tmp_path):
    with serving(plain_run(tmp_path)) as viewer, opened(chromium, viewer.url) as (page, witness):
        blocked = page.evaluate(MISTAKES)
        planted = page.evaluate("window.planted")
    assert blocked == ["markup", "script", "fetch"]
    assert planted is None
    assert any("javascript:" in text or "inline" in text for text in witness.messages)


def exported(folder, *runs):
    opened_runs = open_runs(runs)
    export(folder / "out.html", opened_runs, [row for run in opened_runs for row in run.rows])
    return folder / "out.html"


def test_one_file_shows_what_the_server_shows(chromium, tmp_path):
    path = exported(tmp_path, plain_run(tmp_path / "run"))
    with opened(chromium, path.as_uri()) as (page, witness):
        assert len(listed(page)) == 6
        picture = page.locator("section.turn img").first
        assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") == 4
        page.keyboard.press("j")
        shown(page, 1)
        page.keyboard.press("/")
        page.keyboard.type("look 4")
        playwright.expect(page.locator("[role=option]")).to_have_count(1)
        assert witness.messages == []
        assert all(address.startswith(("file:", "data:")) for address in witness.requests)


@pytest.mark.parametrize("served", [True, False], ids=["served", "one file"])
def test_planted_attacks_are_text(chromium, tmp_path, served):
    run = hostile_run(tmp_path)
    with serving(run) if served else nullcontext() as viewer:
        address, allowed = (viewer.url,) * 2 if served else (exported(tmp_path, run).as_uri(), ("file:", "data:"))
        with opened(chromium, address) as (page, witness):
            assert title(page).startswith(ATTACKS[0])
            walk(page)
            nothing_happened(page, witness, allowed)
            assert [text for text in witness.messages if served or "favicon" not in text] == []


def test_one_file_runs_its_own_script_alone(tmp_path):
    text = exported(tmp_path, hostile_run(tmp_path)).read_text()
    scripts = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    assert len(scripts) == 1
    digest = base64.b64encode(hashlib.sha256(scripts[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in text
    assert text.count("</script>") == text.count("<script")
    assert "window.planted = 1</script>" not in text


@pytest.mark.parametrize("text", ATTACKS)
def test_planted_attacks_are_text_in_a_report(chromium, tmp_path, text):
    made = report(
        [[1, 0], [1, 1]], policy=text, task=text, options={text: text}, stopped=text, identity=text, planned=9
    )
    reports.write(tmp_path, made)
    page = chromium.new_page()
    witness = Witness(page)
    page.goto((tmp_path / "report.html").as_uri())
    nothing_happened(page, witness, "file:")
    assert witness.messages == []
    assert page.locator("svg polyline.curve").count() == 1
    page.close()
