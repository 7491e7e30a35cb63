import zlib
from dataclasses import replace
from functools import partial

import episodes
import numpy as np
import pytest
from hypothesis import given as drawing
from hypothesis import settings
from hypothesis import strategies as st

from lmgym.backends.drawing import resized
from lmgym.env.golden import given, play
from lmgym.env.registry import build, specs
from lmgym.errors import InstanceError
from lmgym.tasks.visual_search import SPEC
from lmgym.tasks.visual_search.env import STREAM
from lmgym.tasks.visual_search.protocols import distinct, mgpo, tool, vigorl
from lmgym.tasks.visual_search.scene import LETTERS, Scene, SceneLevel, Tile, drawn, found, nearest

IDS = [spec.id for spec in specs().values() if spec.name == "visual_search"]
SMALL = SceneLevel(side=1024, view=64, cells=4, margin=4, least=1, tiles=4, colours=4, shapes=1, letters=4)
SHAPED = SceneLevel(side=1024, view=64, cells=4, margin=4, least=6, tiles=8, colours=8, shapes=3, letters=16)
CALL = '<tool_call>{"name": "search_coordinate", "arguments": {"coordinate": [%d, %d]}}</tool_call>'


every = pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=[pytest.mark.slow] if task == "lmgym/VisualSearchLarge-v0" else []) for task in IDS],
)


def lettered(scene, letters):
    tiles = tuple(replace(tile, letter=letter) for tile, letter in zip(scene.tiles, letters, strict=True))
    return replace(scene, tiles=tiles)


opened = partial(episodes.opened, "visual_search", cells=4, margin=4, colours=4, zoom=4)


def test_no_scene_of_test_is_one_of_train():
    level = build("visual_search").unwrapped.level
    scenes = [drawn(level, (STREAM["test"], index)) for index in range(1000)]
    scenes += [drawn(level, (STREAM["train"], index)) for index in range(4000)]
    assert len({scene.view().tobytes() for scene in scenes}) == 5000


@pytest.mark.parametrize("level", [SMALL, SHAPED])
def test_a_shrunk_picture_is_the_whole_one_averaged(level):
    for index in range(4):
        scene = drawn(level, (0, index))
        whole = scene.cut((0, 0, level.side, level.side))
        assert whole.shape == (1024, 1024, 3)
        assert np.array_equal(resized(whole, (0, 0, 1024, 1024), 64, 64), scene.view())


@every
def test_a_shrunk_picture_is_the_same_bit_for_bit_whatever_the_letters_are(task):
    level = build(task).unwrapped.level
    scene = drawn(level, (0, 3))
    full, whole, shrunk = (0, 0, level.side, level.side), set(), set()
    for letter in LETTERS[: level.letters]:
        picture = lettered(scene, letter * len(scene.tiles)).cut(full)
        whole.add(zlib.crc32(picture))
        shrunk.add(resized(picture, full, level.view, level.view).tobytes())
    assert (len(whole), len(shrunk)) == (level.letters, 1)


def test_the_nearest_template_reads_every_letter_in_full_and_is_at_chance_when_shrunk():
    read = {"full": 0, "shrunk": 0}
    for number in range(32):  # each of the 16 letters is right twice
        scene = drawn(SHAPED, (0, number))
        truth = scene.tiles[0]
        x, y, size = truth.left * 16, truth.top * 16, SHAPED.tile * 16
        box = (x, y, x + size, y + size)
        versions = [lettered(scene, letter + "A" * (len(scene.tiles) - 1)) for letter in LETTERS]
        asked = versions[number % 16]
        read["full"] += nearest(asked.cut(box), [version.cut(box) for version in versions]) == number % 16
        small = [resized(version.cut(box), (0, 0, size, size), 12, 12) for version in versions]
        read["shrunk"] += nearest(small[number % 16], small) == number % 16
    assert read == {"full": 32, "shrunk": 2}


def test_tiles_are_found_by_their_pixels_and_no_two_answer_to_the_same_words():
    for index in range(40):
        scene = drawn(SHAPED, (1, index))
        there = {(tile.colour, tile.shape, tile.left, tile.top) for tile in scene.tiles}
        assert set(found(scene.view(), SHAPED)) == there
        assert len({(tile.colour, tile.shape) for tile in scene.tiles}) == len(scene.tiles)
        assert 6 <= len(scene.tiles) <= 8


def test_a_crop_shows_what_stands_there():
    scene = Scene(SMALL, (Tile(0, 0, "red", "square", "T"),), tuple((200, 200, 200, 200) for _ in range(4)))
    crop = scene.cut((0, 0, 256, 256))
    assert tuple(crop[0, 0]) == (191, 70, 70)
    assert tuple(crop[200, 200]) == (200, 200, 200)  # a tile is 12 blocks of 16 pixels wide: 192
    # 5 by 7 dots in 12 blocks begin at block 3 across and 2 down; the bar of a T is dark, then bright in each dot
    assert tuple(crop[32, 48]) == (131, 10, 10)
    assert tuple(crop[32, 56]) == (251, 130, 130)


def test_the_demonstrator_reads_the_pixels_it_is_shown_and_looks_again_where_its_tile_was_not():
    env = opened(index=5)
    trace = play(env, lambda env: env.demonstrator(), index=5)
    assert [action.partition("(")[0] for action in trace.actions] == ["crop", "answer"]
    assert trace.infos[-1]["score"] == 1.0
    env = opened(index=5)
    right = next(env.unwrapped.demonstrator())
    x, y = (int(n) for n in right[5:-1].split(","))
    env.step(f"crop({(x + 32) % 64},{(y + 32) % 64})")
    assert next(env.unwrapped.demonstrator()) == right


def test_blank_pictures_show_nothing_and_leave_the_demonstrator_at_chance():
    env = build("visual_search", blank=True)
    scores = []
    for index in range(80):
        trace = play(env, lambda env: env.demonstrator(), index=index)
        scores.append(trace.infos[-1]["score"])
        assert all((observation["images"] == 128).all() for observation in trace.observations)
    assert 0.1 < np.mean(scores) < 0.4  # a quarter of 80, four standard errors of 0.048
    env.reset(seed=0, options={"index": 0})
    assert (env.step("crop(10,10)")[0]["images"] == 128).all()


def test_mgpo_cuts_a_square_around_the_box_and_one_of_the_whole_is_no_help():
    env = opened(protocol="mgpo")
    view = env.unwrapped.view
    shown = env.step("[0, 0, 64, 64]")[0]["images"][0]
    assert np.array_equal(shown, view)
    env = opened(protocol="mgpo")
    env.step("[16, 8, 32, 40]")  # 16 by 32 pixels of the view: 256 by 512 of the picture, around (384, 384)
    assert env.unwrapped.seen[0][0] == (128, 128, 640, 640)


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("crop(3, 4)", (3.0, 4.0)),
        ("I look there.\ncrop(3.5,4)", (3.5, 4.0)),
        ("crop(x=3, y=4)", (3.0, 4.0)),
        ('{"name": "crop", "arguments": {"x": 3, "y": 4}}', (3.0, 4.0)),
        ("crop(3)", None),
        ("crop(3, True)", None),
        ('crop("3", "4")', None),
        ("zoom(3, 4)", None),
        ("crop 3 4", None),
        ("", None),
    ],
)
def test_crops_are_calls(words, wanted):
    look = tool(words, True)
    assert (look.where if look else None) == wanted


def test_answers_are_calls_and_any_case_of_the_right_letter_ends_the_episode_with_1():
    assert tool('answer("a.")', True).words == "a."
    assert tool("answer(1)", True) is None
    env = opened(index=2)
    letter = env.unwrapped.answer()
    _, reward, terminated, _, info = env.step(f'answer(" {letter.lower()}. ")')
    assert (reward, terminated, info["score"], info["success"]) == (1.0, True, 1.0, True)


@pytest.mark.parametrize("words", ["crop(65, 3)", "crop(-1, 3)", "crop(1e12, 3)", "look", "<answer>A</answer>"])
def test_what_is_no_crop_within_the_picture_is_answered(words):
    observation, reward, terminated, _, info = opened().step(words)
    assert (reward, terminated, info["valid"]) == (0.0, False, False)
    assert observation["images"].shape == (0, 64, 64, 3)


def test_crops_run_out_and_name_the_same_places_in_pixels_and_thousandths():
    env = opened(crops=1)
    assert env.step("crop(3, 3)")[4]["valid"]
    observation, *_, info = env.step("crop(3, 3)")
    assert not info["valid"]
    assert "answer" in observation["text"]
    pixels, thousand = opened(), opened(coordinates="thousand")
    for x, y in ((0, 0), (16, 48), (64, 64)):
        first, second = (env.step(f"crop({x * share},{y * share})") for env, share in ((pixels, 1), (thousand, 15.625)))
        assert np.array_equal(first[0]["images"], second[0]["images"])
    assert [box for box, _ in pixels.unwrapped.seen] == [(0, 0, 256, 256), (128, 640, 384, 896), (768, 768, 1024, 1024)]


def test_mgpo_takes_a_box_and_then_an_answer():
    assert mgpo("The key region is [1, 2, 30.5, 40].", True).where == (1.0, 2.0, 30.5, 40.0)
    assert mgpo("[1, 2, 3]", True) is None
    assert mgpo("x\nB", False).words == "B"
    assert mgpo("<answer>B</answer> it is", False).words == "B"


def test_mgpo_shows_the_whole_picture_where_the_box_is_none_and_pays_the_answer_alone():
    env = opened(protocol="mgpo", max_turns=2)
    observation, reward, terminated, _, info = env.step("I do not know")
    assert np.array_equal(observation["images"][0], env.unwrapped.view)
    assert (reward, terminated, info["valid"]) == (0.0, False, False)
    _, reward, terminated, truncated, info = env.step(env.unwrapped.answer())
    assert (reward, terminated, truncated, info["score"]) == (1.0, True, False, 1.0)


def test_vigorl_reads_a_thought_and_one_tag():
    assert vigorl(f"<think>at (3, 4)</think>{CALL % (3, 4)}", True).where == (3.0, 4.0)
    assert vigorl("<think>so</think>\n<answer>B</answer>", True).words == "B"
    assert vigorl("<answer>B</answer>", True) is None
    assert vigorl("<think>so</think>B", True) is None
    assert vigorl(f"<think>so</think>{CALL % (3, 4)}<answer>B</answer>", True) is None
    assert vigorl("<think>so</think><tool_call>{}</tool_call>", True) is None


def test_looks_ten_pixels_apart_are_distinct():
    assert distinct([(0, 0), (9, 0), (6, 8)]) == 2  # 9 and 10 from the first
    assert distinct([(0, 0), (10, 0), (6, 8), (30, 30)]) == 3  # the third is 8.9 from the second


@pytest.mark.parametrize(
    ("right", "most", "wanted"),
    [  # two distinct looks: format 1.2
        (True, 0.0, {"accuracy": 0.6, "format": 0.4 * 1.2}),
        (False, 0.0, {"accuracy": 0.0, "format": 0.4 * 1.2}),  # as released: paid for wrong answers too
        (True, 1.0, {"accuracy": 0.6, "format": 0.4}),
    ],
)
def test_vigorl_pays_for_form_and_places(right, most, wanted):
    env = opened(protocol="vigorl", crops=5, max_turns=6, most_format=most)
    env.step(f"<think>(3, 4)</think>{CALL % (3, 4)}")
    env.step(f"<think>(30, 4)</think>{CALL % (30, 4)}")
    letter = env.unwrapped.answer() if right else "?"
    *_, info = env.step(f"<think>so</think><answer>{letter}</answer>")
    assert info["reward_terms"] == pytest.approx(wanted, abs=1e-12)
    assert info["score"] == float(right)


def test_vigorl_pays_nothing_for_form_after_one_answer_out_of_form():
    env = opened(protocol="vigorl", crops=5, max_turns=6)
    env.step("hello")
    *_, info = env.step(f"<think>so</think><answer>{env.unwrapped.answer()}</answer>")
    assert info["reward_terms"] == {"accuracy": 0.6, "format": 0.0}


def test_a_different_answer_makes_no_other_first_observation():
    env = opened(index=0)
    first = play(env, given([]), index=0).observations[0]
    env.unwrapped.scene = lettered(env.unwrapped.scene, "T" * len(env.unwrapped.scene.tiles))
    assert np.array_equal(env.unwrapped.scene.view(), first["images"][0])


WIDE = {"least": 1, "tiles": 1, "colours": 1, "shapes": 1}  # what strangers may change of a level
OPTIONS = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in SPEC.public.items()})


@pytest.mark.parametrize("task", [task for task in IDS if task != "lmgym/VisualSearchLarge-v0"])
@settings(max_examples=100, deadline=None)
@drawing(options=OPTIONS, index=st.integers(0, 999))
def test_what_strangers_may_ask_for_is_refused_or_as_large_as_it_was_and_can_be_solved(task, options, index):
    try:
        env = build(task, **options)
    except InstanceError:
        return
    assert replace(env.unwrapped.level, **WIDE) == replace(build(task).unwrapped.level, **WIDE)
    env.reset(options={"index": index})
    ends = [step for action in env.unwrapped.oracle() if (step := env.step(action))[2]]
    assert [step[4]["score"] for step in ends] == [1.0]
