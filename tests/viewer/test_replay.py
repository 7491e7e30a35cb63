"""`lmgym replay --html`: an episode as one file, with clicks drawn where they fell."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from lmgym.evaluation import runner
from lmgym.policy.load import load_policy
from lmgym.rollout import episodes
from lmgym.rollout.engine import Engine
from lmgym.types import Completion, Message, Turn
from lmgym.viewer.marks import points
from tests.command import command
from tests.viewer.conftest import opened
from tests.viewer.planted import ATTACKS, PICTURE, PNG, episode, hostile_run


def turn(action: str, **info) -> Turn:
    return Turn(observation=Message(role="user", text=""), completion=Completion(text=""), action=action, info=info)


@pytest.mark.parametrize(
    ("action", "found"),
    [
        ("mouse_click(3, 4)", [(3, 4)]),
        ("mouse_click(x=3, y=4.5, button='left')", [(3, 4.5)]),
        ("I see it.\n```mouse_dblclick(1, 2)```", [(1, 2)]),
        ("mouse_drag_and_drop(1, 2, 3, 4)", [(1, 2), (3, 4)]),
        ("mouse_drag_and_drop(1, 2, to_x=3, to_y=4)", [(1, 2), (3, 4)]),
        ("scroll_at(5, 6, 0, 100)", [(5, 6)]),
        ("mouse_click(3)", []),
        ("mouse_click('3', 4)", []),
        ("mouse_click(True, 4)", []),
        ("mouse_click(1e300, 4)", []),
        ("mouse_click(" + "9" * 400 + ", 4)", []),
        ("scroll(3, 4)", []),
        ("click('12')", []),
        ("", []),
    ],
)
def test_coordinates_of_a_call_are_points(action, found):
    assert points(turn(action)) == found


TREE = """Goal: [7] button 'x', at="1,1"
RootWebArea 'Page'
\t[7] button 'It\\'s, at="9,9"', at="80,96", focused
\t\t[8] textbox "don't" value='a, at="3,3"', at="-4,20", required
\t[a12] LabelText '', at="33,44"
\t[9] button 'unseen', focused"""
HTML = """<body bid="2">
  <button bid="7" id="a" class="at=&quot;1,1&quot; b" focused at="80,96">[7] button 'x', at="5,5"</button>
  <input bid="8" value="x" at="-4,20">
  <p bid="9">unseen</p>"""


@pytest.mark.parametrize(
    ("page", "action", "found"),
    [
        (TREE, "click('7')", [(80, 96)]),
        (TREE, "click(7)", [(80, 96)]),
        (TREE, "fill(bid='8', value='x')", [(-4, 20)]),
        (TREE, "hover('a12')", [(33, 44)]),
        (TREE, "drag_and_drop('7', 'a12')", [(80, 96), (33, 44)]),
        (TREE, "drag_and_drop('7', to_bid='9')", [(80, 96)]),
        (TREE, "click('9')", []),
        (TREE, "click('77')", []),
        (TREE, "click('.*')", []),
        (TREE, "click()", []),
        (HTML, "click('7')", [(80, 96)]),
        (HTML, "press('8', 'Enter')", [(-4, 20)]),
        (HTML, "click('9')", []),
    ],
)
def test_an_element_is_where_the_page_said(page, action, found):
    observed = replace(turn(action), observation=Message(role="user", text=page))
    assert points(observed) == found


NO_POINTS = ("ab", 3, None, [[1]], [["1", 2]], [[float("nan"), 1]], [[float("inf"), 1]], [{"x": 1}], [[10**400, 1]])


@pytest.mark.parametrize(
    ("action", "told", "found"),
    [
        ("mouse_click(3, 4)", [[7, 8]], [(7, 8)]),
        ("click(500, 500)", [[48.0, 20.5], [1, 1]], [(48.0, 20.5), (1, 1)]),
        ("look", [[1, 2]] * 10_000, [(1, 2)] * 8),
        *(("look", told, []) for told in NO_POINTS),
    ],
)
def test_an_environments_own_points_come_first_and_what_is_none_is_left_out(action, told, found):
    assert points(turn(action, points=told)) == found


def recorded(folder, task: str, size: int = 1000, **options):
    """The oracle's episode of instance 0, as an evaluation keeps it, without its pictures."""
    kept: list = []
    jobs = runner.episodes(task, split="test", size=size, count=1, options=options)
    runner.evaluate(load_policy("oracle"), jobs, engine=Engine(), keep=kept.append)
    episodes.write(folder / "episodes.jsonl", kept)
    return folder / "episodes.jsonl", kept[0]


def marks(page, number: int = 0) -> list[list[float]]:
    """Return the positions of the marks in a turn's picture, in its pixels."""
    picture = page.locator(f"#turn-{number} .picture")
    picture.scroll_into_view_if_needed()
    picture.locator("img").evaluate("image => image.decode()")
    return picture.evaluate("""frame => {
        const image = frame.querySelector('img'), around = image.getBoundingClientRect();
        return [...frame.querySelectorAll('.point')].map(mark => {
            const box = mark.getBoundingClientRect();
            return [(box.x + box.width / 2 - around.x) * image.naturalWidth / around.width,
                    (box.y + box.height / 2 - around.y) * image.naturalHeight / around.height];
        });
    }""")


@pytest.mark.parametrize("coordinates", ["pixels", "thousand"])
def test_one_file_shows_pictures_and_where_was_clicked(chromium, tmp_path, coordinates):
    file, found = recorded(tmp_path, "lmgym/ClickTarget-v0", coordinates=coordinates)
    left, top, right, bottom = map(float, found.info["answer"].split(","))
    size = 128 / 1000 if coordinates == "thousand" else 1  # pixels of a unit: the picture is 128 wide and high
    across, down = (size * float(number) for number in re.findall(r"\d+", str(found.turns[0].action)))
    assert command("replay", str(file), "--html", str(tmp_path / "out.html")) == 0
    with opened(chromium, (tmp_path / "out.html").as_uri()) as (page, witness):
        ((x, y),) = marks(page)
        assert abs(x - across) < 1
        assert abs(y - down) < 1
        assert left <= x <= right
        assert top <= y <= bottom
        assert page.locator("#turn-0 pre.said").inner_text() == found.turns[0].action
        assert "reward 1" in page.locator("#turn-0").inner_text()
        assert page.locator("nav").is_hidden()
        assert witness.messages == []
        assert all(address.startswith(("file:", "data:")) for address in witness.requests)


@pytest.mark.parametrize("observe", ["axtree", pytest.param("html", marks=pytest.mark.slow)])
def test_a_click_by_element_is_marked_on_it(chromium, tmp_path, observe):
    file, found = recorded(tmp_path, "lmgym/MiniWoB-click-button-v0", 100, pixels="screenshot", observe=observe)
    number = re.findall(r"\d+", str(found.turns[0].action))[0]
    (line,) = re.findall(rf".*(?:\[{number}\]|bid=\"{number}\").*", found.turns[0].observation.text)
    middle = [float(side) for side in re.findall(r'at="(\d+),(\d+)"', line)[0]]
    assert command("replay", str(file), "--html", str(tmp_path / "out.html")) == 0
    with opened(chromium, (tmp_path / "out.html").as_uri()) as (page, _):
        assert marks(page) == [pytest.approx(middle, abs=1)]


def test_a_drag_has_two_numbered_marks_and_what_lies_outside_has_none(chromium, tmp_path):
    plain = Message(role="user", text="look", images=(PICTURE,))
    actions = ("mouse_drag_and_drop(0, 1, 3, 2)", "mouse_click(4, 1)", "mouse_click(-1, 0)")
    turns = tuple(replace(turn(action), observation=plain) for action in actions)
    file = tmp_path / "episodes.jsonl"
    episodes.write(file, [replace(episode(0), turns=turns)])
    (tmp_path / "pictures").mkdir()
    (tmp_path / "pictures" / f"{PICTURE}.png").write_bytes(PNG)
    words = ("replay", str(file), "--no-verify", "--html", str(tmp_path / "out.html"))
    assert command(*words) == 0
    with opened(chromium, (tmp_path / "out.html").as_uri()) as (page, _):
        assert [marks(page, number) for number in (1, 2)] == [[], []]
        assert page.locator("#turn-0 .point").all_inner_texts() == ["1", "2"]
        assert marks(page) == [pytest.approx([0.5, 1.5], abs=0.1), pytest.approx([3.5, 2.5], abs=0.1)]


@pytest.mark.parametrize("number", [1, 5, 7])
def test_planted_attacks_are_text_in_a_replay(chromium, tmp_path, number):
    file = hostile_run(tmp_path) / "episodes.jsonl"
    words = ("replay", str(file), "--number", str(number), "--no-verify", "--html", str(tmp_path / "out.html"))
    assert command(*words) == 0
    with opened(chromium, (tmp_path / "out.html").as_uri()) as (page, witness):
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert page.evaluate("window.planted") is None
        assert witness.dialogs == []
        assert page.locator("article script, article svg, iframe, base, object, article a").count() == 0
        assert page.locator("[onerror], [onload], [onfocus], [onclick], [href^='javascript:']").count() == 0
        assert all(address.startswith(("file:", "data:")) for address in witness.requests)
        assert page.locator("#turn-0 pre.said").text_content().startswith(ATTACKS[number][:10])


def test_a_replay_that_differs_is_written_all_the_same(capsys, tmp_path):
    file, _ = recorded(tmp_path, "lmgym/ClickTarget-v0")
    file.write_text(file.read_text().replace('"score": 1.0', '"score": 0.5'))
    assert command("replay", str(file), "--html", str(tmp_path / "out.html")) == 2
    assert "does not replay" in capsys.readouterr().err
    assert (tmp_path / "out.html").read_text().startswith("<!doctype html>")
