"""GUIRecorded: recordings in AndroidControl's layout, UI-S1's comparison and its figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lmgym.env.golden import given, play
from lmgym.env.pictures import encode
from lmgym.env.registry import build
from lmgym.errors import InstanceError
from lmgym.tasks.phone.recorded import RECORDED, recording
from lmgym.tasks.phone.recorded_match import Match, compare, parse_action
from tests.components import chromium

SIZE = (1000, 2000)
TAP = {"action": "click", "coordinate": [100, 100]}
BACK = {"action": "system_button", "button": "Back"}
MAPS = {"action": "open", "text": "Maps"}
BOX = {"action": "click", "coordinate": [100, 100], "candidate_bbox": [[50, 50, 150, 150]]}


def click(x: float, y: float) -> dict[str, Any]:
    return {"action": "click", "coordinate": [x, y]}


@pytest.mark.parametrize(
    ("action", "check", "match"),
    [
        (click(160, 100), BOX, Match(True, True)),  # 60 from the centre of a box of half width 50, enlarged to 60
        (click(161, 100), BOX | {"coordinate": [500, 500]}, Match(True, False)),
        (click(140, 100), BOX | {"candidate_bbox": []}, Match(True, True)),  # 40 of 1,000 pixels
        (click(141, 100), BOX | {"candidate_bbox": []}, Match(True, False)),
        (click(100, 180), BOX | {"candidate_bbox": []}, Match(True, True)),  # 80 of 2,000 pixels
        ({"action": "long_press", "coordinate": [100, 100]}, BOX, Match(False, False)),
        ({"action": "type", "text": " ADA "}, {"action": "type", "text": "Ada Adler"}, Match(True, True)),
        ({"action": "type", "text": "Eve"}, {"action": "type", "text": "Ada Adler"}, Match(True, False)),
        ({"action": "type", "text": ""}, {"action": "type", "text": "Ada"}, Match(True, False)),
        ({"action": "open", "text": "maps"}, MAPS, Match(True, True)),
        (
            click(100, 100),
            MAPS | {"candidate_bbox": [[50, 50, 150, 150]]},
            Match(True, True),
        ),
        (click(100, 100), MAPS, Match(False, False)),
        (
            {"action": "swipe", "coordinate": [1, 2], "coordinate2": [3, 4]},
            {"action": "swipe", "direction": "down"},
            Match(True, True),
        ),
        (
            {"action": "system_button", "button": "back"},
            {"action": "system_button", "button": "Back"},
            Match(True, True),
        ),
        (
            {"action": "system_button", "button": "Home"},
            {"action": "system_button", "button": "Back"},
            Match(True, False),
        ),
        ({"action": "wait"}, {"action": "wait", "time": 2}, Match(True, True)),
        ({"action": "wait"}, BOX, Match(False, False)),
    ],
)
def test_actions_are_compared_as_ui_s1_does(action, check, match):
    assert compare(action, check, SIZE) == match


def test_actions_are_parsed_bare_and_as_tool_calls():
    assert parse_action(f"I tap it.\n{json.dumps(TAP)}") == TAP
    call = {"name": "mobile_use", "arguments": TAP}
    assert parse_action(f"<tool_call>{json.dumps(call)}</tool_call>") == TAP
    for text in (
        "",
        "tap",
        "{",
        '{"action": "fly"}',
        '{"action": ["click"]}',
        '{"action": "click"}',
        '{"action": "type"}',
    ):
        assert parse_action(text) is None
    for x in ("NaN", "true", '"1"', "1e400"):
        assert parse_action(f'{{"action": "click", "coordinate": [{x}, 1]}}') is None


@pytest.fixture(name="data")
def stored_episodes(tmp_path, monkeypatch) -> Path:
    """Store an episode in AndroidControl's layout; its pictures are 100 by 200 pixels."""
    (tmp_path / "images").mkdir()
    steps = []
    actions = [TAP | {"coordinate": [10, 10]}, {"action": "type", "text": "Flora"}, {"action": "wait", "time": 2}]
    for number, action in enumerate(actions):
        picture = np.full((200, 100, 3), 80 * number, np.uint8)
        (tmp_path / "images" / f"27_{number}.png").write_bytes(encode(picture)[1])
        check = action | ({"candidate_bbox": []} if action["action"] == "click" else {})
        path = f"/elsewhere/images/27_{number}.png"  # as the official file names the machine it was made on
        steps.append(
            {"action_content": action, "check_options": check, "screenshot": path, "step_instruction": f"step {number}"}
        )
    line = json.dumps({"goal": "Rename the folder.", "is_successful": True, "steps": steps, "episode_id": 27})
    path = tmp_path / "episodes.jsonl"
    path.write_text(f"{line}\n")
    monkeypatch.setenv("ANDROID_CONTROL_DATA", str(path))
    return path


@pytest.mark.parametrize(
    ("until", "right", "score", "figures"),
    [
        ("mismatch", 3, 1.0, {"progress": 1.0, "steps_matched": 1.0, "kinds_matched": 1.0}),
        ("mismatch", 1, 1 / 6, {"progress": 1 / 3, "steps_matched": 1 / 3, "kinds_matched": 2 / 3}),
        ("end", 1, 2 / 3, {"progress": 1 / 3, "steps_matched": 2 / 3, "kinds_matched": 1.0}),
    ],
)
def test_official_episodes_are_played_and_scored(data, until, right, score, figures):
    env = build("lmgym/GUIRecordedOfficial-v0", until=until)
    actions = [{"action": "click", "coordinate": [11, 12]}, {"action": "type", "text": "flora"}, {"action": "wait"}]
    if right == 1:
        actions[1] = {"action": "type", "text": "fauna"}
    trace = play(env, given([json.dumps(action) for action in actions]), index=0)
    assert trace.infos[-1]["score"] == pytest.approx(score)
    assert trace.infos[-1]["figures"] == pytest.approx(figures)
    assert trace.infos[-1]["success"] == (right == 3)
    assert sum(trace.rewards) == pytest.approx(figures["steps_matched"])
    assert env.unwrapped.index_of("27") == 0
    assert env.unwrapped.title(0) == "27"
    env.close()


def test_official_pictures_are_scaled_and_instructions_shown(data):
    env = build("lmgym/GUIRecordedOfficial-v0", instructions="low")
    observation, _ = env.reset(options={"index": 0})
    assert observation["images"].shape == (1, 640, 360, 3)
    assert "100 by 200 pixels" in observation["text"]
    assert observation["text"].rstrip().endswith("Step: step 0")
    observation, *_ = env.step(env.unwrapped.pointing(36, 32))  # 10, 10 of the recorded picture
    assert observation["text"] == "Step: step 1"
    assert observation["images"].max() == 80
    env.close()


def test_files_that_are_missing_or_broken_are_named(data, monkeypatch):
    (data.parent / "images" / "27_0.png").unlink()
    env = build("lmgym/GUIRecordedOfficial-v0")
    with pytest.raises(InstanceError, match="27_0.png of episode 27"):
        env.reset(options={"index": 0})
    other = data.with_name("other.jsonl")
    other.write_text("{}\n")
    monkeypatch.setenv("ANDROID_CONTROL_DATA", str(other))
    with pytest.raises(InstanceError, match="is no file of episodes"):
        env.unwrapped.size()
    env.close()


@pytest.mark.slow
def test_a_recording_is_made_once_and_then_needs_no_browser(tmp_path, monkeypatch):
    chromium()
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    made = recording("test", 0)
    monkeypatch.setenv("LMGYM_CHROMIUM", "/nowhere")
    assert recording("test", 0) == made
    env = build("lmgym/GUIRecorded-v0", split="test", pixels="screenshot")
    trace = play(env, lambda env: env.oracle(), index=0)
    env.close()
    assert trace.infos[-1]["success"]
    assert len(trace.actions) == len(made.steps)
    assert len({observation["images"].tobytes() for observation in trace.observations}) > 2
    assert made.steps[0].action_content == {"action": "open", "text": "Contacts"}
    assert len(made.steps[0].check_options["candidate_bbox"]) == 1


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("index", range(len(RECORDED)))
def test_every_recorded_template_is_won_by_its_own_actions(index, tmp_path, monkeypatch):
    chromium()
    monkeypatch.setenv("LMGYM_CACHE", str(tmp_path))
    env = build("lmgym/GUIRecorded-v0", split="test")
    trace = play(env, lambda env: env.oracle(), index=index)
    env.close()
    assert trace.infos[-1]["success"]
    assert len(trace.actions) <= 40
