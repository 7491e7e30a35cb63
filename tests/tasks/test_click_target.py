import json
from functools import partial

import episodes
import numpy as np
import pytest
from hypothesis import given as drawing
from hypothesis import settings
from hypothesis import strategies as st

from lmgym.backends.drawing import glyphs
from lmgym.env.golden import play
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.click_target import SPEC, screenspot
from lmgym.tasks.click_target.env import STREAM
from lmgym.tasks.click_target.points import pointed, within
from lmgym.tasks.click_target.screen import COLOURS, ICONS, INK, ScreenLevel, drawn, icons

Image = pytest.importorskip("PIL.Image")
SMALL = ScreenLevel(128, 128, 1, 1, 4, 4, 32, "colour", 1, True)
DESKTOP = ScreenLevel(1280, 720, 6, 30, 90, 8, 32, "name", 2, False)


opened = partial(episodes.opened, "click_target")


@pytest.mark.parametrize("level", [SMALL, DESKTOP])
def test_no_two_elements_of_a_screen_are_asked_for_by_the_same_words(level):
    for index in range(20):
        screen = drawn(level, (0, index))
        asked = [element.instruction(level.by) for element in screen.elements]
        named = [words for words in asked if words == screen.target.instruction(level.by)]
        assert len(named) == 1
        assert len(set(asked)) == len(asked)


@pytest.mark.parametrize("level", [SMALL, DESKTOP])
def test_elements_lie_on_the_screen_and_apart(level):
    for index in range(20):
        boxes = [element.box for element in drawn(level, (1, index)).elements]
        for number, (left, top, right, bottom) in enumerate(boxes):
            assert 0 <= left < right <= level.width
            assert 0 <= top < bottom <= level.height
            for a, b, c, d in boxes[:number]:
                assert right <= a or c <= left or bottom <= b or d <= top


@pytest.mark.parametrize(
    ("test", "train"), [(300, 900), pytest.param(1000, 6000, marks=pytest.mark.slow)], ids=["some", "all of test"]
)
def test_no_screen_of_test_is_one_of_train(test, train):
    """By what is on it and where, its shade aside; the pictures of such screens differ all the more."""
    level = build("click_target").unwrapped.level
    screens = [drawn(level, (STREAM["test"], index)) for index in range(test)]
    screens += [drawn(level, (STREAM["train"], index)) for index in range(train)]
    assert len({(screen.elements, screen.target) for screen in screens}) == test + train


def test_no_click_of_a_blindfolded_player_hits_much_more_than_one_screen_in_four():
    """Hits of each pixel over all targets: the screen has four places for things."""
    hits = np.zeros((128, 128), int)
    env = build("click_target", split="test")
    for index in range(400):
        env.reset(options={"index": index})
        left, top, right, bottom = (int(edge) for edge in env.unwrapped.box)
        hits[top : bottom + 1, left : right + 1] += 1
    assert 100 <= hits.max() <= 130  # the luckiest of four shares has a deviation of 9


def test_the_oracle_names_few_places():
    said = {next(opened(index).unwrapped.oracle()) for index in range(40)}
    assert said == {"click(32,56)", "click(96,56)", "click(32,104)", "click(96,104)"}


def test_what_an_instruction_names_is_seen_in_its_box():
    for index in range(20):
        screen = drawn(SMALL, (2, index))
        left, top, right, bottom = screen.target.box
        part = screen.picture[top:bottom, left:right]
        assert (part == COLOURS[screen.target.colour]).all(2).any()
        assert not (np.delete(screen.picture, np.s_[top:bottom], 0) == COLOURS[screen.target.colour]).all(2).any()


def test_a_label_is_drawn_in_its_box():
    screen = next(s for i in range(99) if (s := drawn(DESKTOP, (3, i))).target.kind == "button")
    left, top, right, bottom = screen.target.box
    ink = (screen.picture[top:bottom, left:right] == INK).all(2)
    first = glyphs()[screen.target.name[0]].repeat(2, 0).repeat(2, 1)
    places = np.lib.stride_tricks.sliding_window_view(ink, first.shape)
    assert (places == first).all((2, 3)).any()


def test_every_icon_has_seven_by_seven_dots_of_its_own():
    assert set(icons()) == set(ICONS)
    assert {dots.shape for dots in icons().values()} == {(7, 7)}
    assert len({dots.tobytes() for dots in icons().values()}) == len(ICONS)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("click(3, 4)", (3, 4)),
        ("I see it.\nclick(x=3, y=4.5)", (3, 4.5)),
        ('{"name": "click", "arguments": {"x": 3, "y": 4}}', (3, 4)),
        ('{"name": "left_click", "arguments": {"coordinate": [3, 4]}}', (3, 4)),
        ("(3, 4)", (3, 4)),
        ("The answer:\n[10, 20, 30, 60]", (20, 40)),  # a box: its middle
        ("click([10, 20, 30, 60])", (20, 40)),
        ("-5 7", (-5, 7)),
        ("3", None),
        ("1 2 3", None),
        ("", None),
        ("type(3, 4)", None),
        ('click("3", "4")', None),
        ("click(True, 4)", None),
    ],
)
def test_two_numbers_are_a_point_and_four_a_box(words, wanted):
    assert pointed(words) == wanted


def test_edges_are_inside_in_both_units():
    box = (10.0, 20.0, 30.0, 40.0)
    assert [within(point, box) for point in ((10, 20), (30, 40), (9.99, 20), (30, 40.01))] == [True, True, False, False]
    left, top, right, bottom = (float(edge) for edge in opened(4).unwrapped.answer().split(","))
    for x, y, hit in ((left, top, 1.0), (right, bottom, 1.0), (left - 1, top, 0.0), (right, bottom + 1, 0.0)):
        assert opened(4).step(f"click({x},{y})")[1] == hit
        assert opened(4, coordinates="thousand").step(f"click({x * 1000 / 128},{y * 1000 / 128})")[1] == hit


@pytest.mark.parametrize(
    "words", ["click(1e999, 3)", "click(nan, 3)", "click(1)", "nothing", "click(" + "9" * 400 + ", 1)"]
)
def test_what_is_no_point_is_tallied_and_wrong(words):
    _, reward, terminated, truncated, info = opened().step(words)
    assert (reward, terminated, truncated) == (0.0, False, True)  # its only turn is over
    assert (info["valid"], info["score"]) == (False, 0.0)


def test_a_blank_screen_shows_nothing():
    env = build("click_target", blank=True)
    assert {env.reset(options={"index": i})[0]["images"].tobytes() for i in range(5)} == {
        bytes([128]) * (128 * 128 * 3)
    }


def annotated(folder, records, *, name="screenspot_web.json", pictures="screenspot_imgs", size=(200, 100)):
    """A folder in ScreenSpot's layout with one picture, `web_1.png`."""
    (folder / pictures).mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size, (200, 30, 30)).save(folder / pictures / "web_1.png")
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(records), encoding="utf-8")
    return folder


def record(**changed):
    known = {"img_filename": "web_1.png", "instruction": "close this", "bbox": [10, 20, 30, 40], "data_type": "icon"}
    return {**known, "data_source": "shop", **changed}


def spot(folder, **options):
    return build("lmgym/ScreenSpot-v0", data=str(folder), **options)


def scored(env, words, index=0):
    env.reset(seed=0, options={"index": index})
    return env.step(words)[1]


def test_version_1_tells_boxes_by_width_and_height(tmp_path):
    env = spot(annotated(tmp_path, [record()]))
    assert env.unwrapped.tasks[0].box == (10, 20, 40, 60)
    assert scored(env, "click(40, 60)") == 1.0
    assert scored(env, "click(41, 60)") == 0.0


def test_pro_tells_boxes_by_corners(tmp_path):
    pro = record(img_size=[200, 100], application="vim", platform="linux", group="Dev", ui_type="text")
    folder = annotated(tmp_path, [pro], name="annotations/vim_linux.json", pictures="images")
    env = spot(folder)
    assert env.unwrapped.tasks[0].box == (10, 20, 30, 40)
    assert scored(env, "click(31, 40)") == 0.0
    assert spot(folder, boxes="xywh").unwrapped.tasks[0].box == (10, 20, 40, 60)


def test_screenshots_are_shrunk_to_fit_and_points_are_those_of_what_is_shown(tmp_path):
    env = spot(annotated(tmp_path, [record(bbox=[100, 50, 50, 30])]), width=100, height=100)
    observation, _ = env.reset(seed=0, options={"index": 0})
    assert observation["images"].shape == (1, 100, 100, 3)
    assert tuple(observation["images"][0, 49, 99]) == (200, 30, 30)
    assert tuple(observation["images"][0, 50, 99]) == (128, 128, 128)  # half of 200 by 100 is 100 by 50
    assert scored(env, "click(50, 25)") == scored(env, "click(75, 40)") == 1.0
    assert scored(env, "click(76, 40)") == 0.0
    thousand = spot(tmp_path, width=100, height=100, coordinates="thousand")
    assert scored(thousand, "click(500, 500)") == scored(thousand, "click(750, 800)") == 1.0


def test_all_files_are_read_in_the_order_of_their_names_and_titles_find_them(tmp_path):
    annotated(tmp_path, [record(instruction="second")])
    annotated(tmp_path, [record(instruction="first"), record(instruction="first", bbox=[1, 1, 5.5, 5])], name="a.json")
    env = spot(tmp_path).unwrapped
    assert [task.instruction for task in env.tasks] == ["first", "first", "second"]
    assert [env.index_of(env.title(index)) for index in range(3)] == [0, 1, 2]
    assert env.index_of("other") is None


def test_a_mark_at_the_start_and_words_of_any_script_are_read(tmp_path):
    annotated(tmp_path, [])
    text = json.dumps([record(instruction=" schließen 关闭 ")], ensure_ascii=False)
    (tmp_path / "screenspot_web.json").write_text("\ufeff" + text, encoding="utf-8")
    assert spot(tmp_path).unwrapped.tasks[0].instruction == "schließen 关闭"


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"bbox": [10, 20, 30]}, "four numbers"),
        ({"bbox": [10, 20, 30, "40"]}, "four numbers"),
        ({"bbox": [10, 20, 30, True]}, "four numbers"),
        ({"bbox": None}, "four numbers"),
        ({"bbox": [10, 20, 0, 40]}, "no area as xywh"),
        ({"bbox": [10, 20, 5, 40], "img_size": [200, 100]}, "no area as xyxy"),
        ({"instruction": "  "}, "must be words"),
        ({"img_filename": 3}, "must be words"),
        ({"img_filename": "gone.png"}, "no picture"),
        ({"img_filename": "../../etc/passwd"}, "leads out"),
        ({"img_filename": "/etc/passwd"}, "leads out"),
    ],
)
def test_annotations_that_are_wrong_are_named(tmp_path, changed, said):
    with pytest.raises(InstanceError, match=said) as caught:
        spot(annotated(tmp_path, [record(), record(**changed)]))
    assert "screenspot_web.json, annotation 1" in str(caught.value)


def test_a_box_in_the_other_layout_is_noticed_where_it_leaves_the_picture(tmp_path):
    env = spot(annotated(tmp_path, [record(bbox=[150, 50, 190, 90])]))
    with pytest.raises(InstanceError, match="boxes='xyxy'"):
        env.reset(seed=0, options={"index": 0})


def test_files_that_are_no_list_no_json_or_no_picture_are_named(tmp_path):
    with pytest.raises(InstanceError, match="must hold a list"):
        spot(annotated(tmp_path / "a", {"a": 1}))
    (annotated(tmp_path / "b", []) / "screenspot_web.json").write_text("[")
    with pytest.raises(InstanceError, match="cannot be read"):
        spot(tmp_path / "b")
    (annotated(tmp_path / "c", [record()]) / "screenspot_imgs" / "web_1.png").write_bytes(b"no picture")
    with pytest.raises(InstanceError, match="is no picture"):
        spot(tmp_path / "c").reset(seed=0, options={"index": 0})


def test_without_files_it_says_where_to_put_them(tmp_path, monkeypatch):
    monkeypatch.delenv("SCREENSPOT_DATA", raising=False)
    with pytest.raises(InstanceError, match="SCREENSPOT_DATA"):
        build("lmgym/ScreenSpot-v0")
    with pytest.raises(InstanceError, match="no annotations"):
        spot(tmp_path)
    monkeypatch.setenv("SCREENSPOT_DATA", str(annotated(tmp_path, [record()])))
    screenspot._read.cache_clear()
    trace = play(build("lmgym/ScreenSpot-v0"), lambda env: env.oracle(), index=0)
    assert trace.infos[-1]["score"] == 1.0


OPTIONS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SPEC.public.items()})


@pytest.mark.parametrize("task", ["ClickTarget-v0", "ClickTargetDesktop-v0"])
@settings(max_examples=150, deadline=None)
@drawing(options=OPTIONS, index=st.integers(0, 999))
def test_what_strangers_may_ask_for_is_refused_or_no_larger_than_a_desktop_and_can_be_solved(task, options, index):
    try:
        env = build(task, **options)
    except InstanceError:
        return
    observation, _ = env.reset(options={"index": index})
    assert observation["images"].nbytes <= 1280 * 720 * 3
    assert env.step(next(env.unwrapped.oracle()))[4]["score"] == 1.0


def test_clicks_in_thousandths_hit_boxes_that_begin_on_the_grid():
    options = {"width": 314, "scale": 1, "least": 14, "elements": 62, "coordinates": "thousand"}
    env = build("ClickTargetDesktop-v0", **options)
    for index in range(200):
        env.reset(options={"index": index})
        assert env.step(next(env.unwrapped.oracle()))[4]["score"] == 1.0
