"""Action formats of computer use."""

from __future__ import annotations

import random
from contextlib import closing, suppress

import pytest

from lmgym.backends.desktop.inputs import Coordinates, Input, InvalidAction, corners, pixel
from lmgym.backends.desktop.keys import keysym
from lmgym.env.hostile import HOSTILE
from lmgym.env.registry import build, find
from lmgym.tasks.desktop.parsing import parse

CLICK = [Input("click", ((10.0, 20.0),))]
SAVE = [Input("hotkey", keys=("ctrl", "s"))]
DOWN = [Input("scroll", count=3)]
TYPED = [Input("type", text="añ 漢")]


def held(key: str, inputs: list[Input]) -> list[Input]:
    """Return the inputs with a key held down meanwhile."""
    return [Input("key_down", keys=(key,)), *inputs, Input("key_up", keys=(key,))]


@pytest.mark.parametrize(
    ("action", "inputs"),
    [
        ("click(10, 20)", CLICK),
        ("I will click.\nclick(x=10, y=20)", CLICK),
        ('{"name": "click", "arguments": {"x": 10, "y": 20}}', CLICK),
        ('{"action_type": "CLICK", "parameters": {"x": 10, "y": 20}}', CLICK),
        ('{"action": "left_click", "coordinate": [10, 20]}', CLICK),
        ('{"name": "computer", "arguments": {"action": "left_click", "coordinate": [10, 20]}}', CLICK),
        ('{"type": "click", "x": 10, "y": 20, "button": "left"}', CLICK),
        (
            '{"type": "tool_use", "name": "computer", "input": {"action": "left_click", "coordinate": [10, 20]}}',
            CLICK,
        ),
        ('{"type": "computer_call", "action": {"type": "click", "x": 10, "y": 20, "button": "left"}}', CLICK),
        (
            '{"type": "computer_call", "actions": [{"type": "click", "x": 10, "y": 20}, '
            '{"type": "keypress", "keys": ["ctrl", "s"]}]}',
            CLICK + SAVE,
        ),
        ('{"type": "click", "x": 10, "y": 20, "keys": ["shift"]}', held("shift", CLICK)),
        ('{"action": "left_click", "coordinate": [10, 20], "text": "shift"}', held("shift", CLICK)),
        ('{"type": "scroll", "scroll_x": 0, "scroll_y": 300, "keys": ["ctrl"]}', held("ctrl", DOWN)),
        ('{"action": "scroll", "scroll_direction": "down", "scroll_amount": 3, "text": "ctrl"}', held("ctrl", DOWN)),
        ("pyautogui.moveRel(-5, 7)", [Input("move", ((-5.0, 7.0),), relative=True)]),
        ("pyautogui.drag(yOffset=7, button='left')", [Input("drag", ((0.0, 7.0),), relative=True)]),
        ("pyautogui.click(10, 20)", CLICK),
        ("```python\nimport pyautogui\npyautogui.click(x=10, y=20)\n```", CLICK),
        ("click(element=3)", [Input("click", element=3)]),
        ('hotkey("ctrl+s")', SAVE),
        ('pyautogui.hotkey("ctrl", "s")', SAVE),
        ('{"action_type": "HOTKEY", "parameters": {"keys": ["ctrl", "s"]}}', SAVE),
        ('{"action": "zoom", "region": [10, 20, 300, 400]}', [Input("zoom", ((10.0, 20.0), (300.0, 400.0)))]),
        ('{"action": "key", "text": "ctrl+s"}', SAVE),
        ('{"action": "key", "text": "ctrl+s", "repeat": 2}', SAVE * 2),
        ('{"type": "keypress", "keys": ["ctrl", "s"]}', SAVE),
        ('type("añ 漢")', TYPED),
        ('pyautogui.write("añ 漢", interval=0.1)', TYPED),
        ('{"action_type": "TYPING", "parameters": {"text": "añ 漢"}}', TYPED),
        ('{"action": "type", "text": "añ 漢"}', TYPED),
        ('{"type": "type", "text": "añ 漢"}', TYPED),
        ("DONE", [Input("done")]),
        ("```FAIL```", [Input("fail")]),
        ('{"action_type": "DONE"}', [Input("done")]),
        ("pyautogui.scroll(-3)", [Input("scroll", count=3)]),
        ('{"action_type": "SCROLL", "parameters": {"dx": 0, "dy": 2}}', [Input("scroll", direction="up", count=2)]),
        (
            '{"type": "drag", "path": [{"x": 1, "y": 2}, {"x": 3, "y": 4}]}',
            [Input("drag", ((1.0, 2.0), (3.0, 4.0)))],
        ),
        (
            '{"action": "left_click_drag", "start_coordinate": [1, 2], "coordinate": [3, 4]}',
            [Input("drag", ((1.0, 2.0), (3.0, 4.0)))],
        ),
        (
            "pyautogui.moveTo(1, 2)\ntime.sleep(0.5)\npyautogui.dragTo(3, 4, button='left')",
            [Input("move", ((1.0, 2.0),)), Input("wait", seconds=0.5), Input("drag", ((3.0, 4.0),))],
        ),
    ],
)
def test_formats_name_the_same_inputs(action: str, inputs: list[Input]) -> None:
    assert parse(action) == inputs


@pytest.mark.parametrize(
    "action",
    [
        "pyautogui.click(__import__('os').getpid(), 1)",
        "pyautogui.click(1, 2); os.system('true')",
        "for i in range(9): pyautogui.click(1, 2)",
        "pyautogui.write('a' * 10)",
        "pyautogui.alert('x')",
        "click(1)",
        'click("1", "2")',
        "click(1, 2, 3, 4, 5, 6)",
        '{"action_type": "EXEC", "parameters": {}}',
        '{"type": "computer_call", "action": {"type": "computer_call", "action": {}}}',
        '{"type": "computer_call", "actions": [1]}',
        '{"action": "key", "text": "ctrl+s", "repeat": 1000000000}',
        '{"type": "tool_use", "name": "computer", "input": []}',
        '{"type": "click", "x": NaN, "y": 1}',
        '{"action": "left_click", "coordinate": [1]}',
        '{"action": "left_click", "coordinate": {"x": 1}}',
        '{"name": "rm", "arguments": {}}',
    ],
)
def test_anything_else_is_refused(action: str) -> None:
    with pytest.raises(InvalidAction):
        parse(action)


def test_hostile_and_mutated_texts_are_parsed_or_refused() -> None:
    rng = random.Random(0)
    bases = ["click(10, 20)", '{"type": "drag", "path": [{"x": 1, "y": 2}]}', "pyautogui.hotkey('ctrl', 's')"]
    mutated = []
    for _ in range(500):
        characters = list(rng.choice(bases))
        for _ in range(rng.randint(1, 4)):
            characters[rng.randrange(len(characters))] = rng.choice(
                ["(", '"', "1e999", "-1", "{", "\ud800", "\x00", "null", "[]"]
            )
        mutated.append("".join(characters))
    for text in (*HOSTILE, *mutated):
        with suppress(InvalidAction):
            assert parse(text)


def test_three_conventions_of_coordinates_name_the_same_pixel() -> None:
    size = (1001, 501)
    assert pixel((250, 125), "pixel", size) == pixel((0.25, 0.25), "unit", size) == pixel((250, 250), "thousand", size)


@pytest.mark.parametrize("coordinates", ["pixel", "unit", "thousand"])
def test_the_action_that_points_at_a_pixel_names_that_pixel(coordinates: Coordinates) -> None:
    size = (1280, 800)
    with closing(build(find("lmgym/Desktop-v0"), coordinates=coordinates).unwrapped) as task:
        for place in ((0, 0), (1279, 799), (641, 399), (1003, 17)):
            (click,) = parse(task.pointing(*place))
            assert pixel(click.points[0], coordinates, size) == place


@pytest.mark.parametrize("point", [(-1, 0), (0, 501), (1e9, 1), (float("nan"), 1)])
def test_points_outside_of_the_screen_are_refused(point: tuple[float, float]) -> None:
    with pytest.raises(InvalidAction, match="outside"):
        pixel(point, "pixel", (1001, 501))


@pytest.mark.parametrize(
    ("name", "symbol"),
    [("enter", 0xFF0D), ("ctrl", 0xFFE3), ("a", 0x61), ("F5", 0xFFC2), ("é", 0xE9), ("漢", 0x1006F22)],
)
def test_names_of_keys_are_translated(name: str, symbol: int) -> None:
    assert keysym(name) == symbol
    assert not keysym("no such key")


@pytest.mark.parametrize(
    ("coordinates", "last", "end"),
    [("pixel", (1280.0, 800.0), (1280, 800)), ("unit", (1.0, 1.0), (1279, 799)), ("thousand", (500, 500), (640, 400))],
)
def test_a_zoom_takes_a_region_up_to_the_edge_and_none_without_area(
    coordinates: Coordinates, last: tuple[float, float], end: tuple[int, int]
) -> None:
    assert corners(Input("zoom", ((0.0, 0.0), last)), coordinates, (1280, 800)) == ((0, 0), end)
    for region in (((5.0, 5.0), (5.0, 9.0)), ((9.0, 9.0), (1.0, 1.0)), ((-1.0, 0.0), last), ((0.0, 0.0), (0.0, 1e9))):
        with pytest.raises(InvalidAction):
            corners(Input("zoom", region), coordinates, (1280, 800))
