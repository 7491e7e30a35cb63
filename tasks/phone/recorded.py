"""Recorded trajectories in AndroidControl's layout: made by the oracle of Phone, or official ones.

The layout is that of UI-S1's release: a line of JSON per episode with `goal` and `steps`, each with `action_content`,
`check_options`, `step_instruction` and the path of its screenshot. Recordings of ours add the elements of each screen.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgym.cache import cache_folders
from lmgym.env.pictures import encode
from lmgym.errors import InstanceError
from lmgym.tasks.phone.actions import parse
from lmgym.tasks.phone.env import PhoneTask
from lmgym.tasks.phone.moves import PhoneElement
from lmgym.tasks.phone.pages import HEIGHT, WIDTH
from lmgym.tasks.phone.templates import TEMPLATES

VERSION = 1  # of recordings in the cache: raise it when the phone's screens or plans change
DATA = "ANDROID_CONTROL_DATA"  # environment variable: a file of episodes in this layout, beside its pictures
WITHOUT = ("like_message", "message_stranger", "route_nowhere", "cancel_shipped")  # AndroidControl has no such action
RECORDED = tuple(name for name in TEMPLATES if name not in WITHOUT)
Action = dict[str, Any]


@dataclass(frozen=True)
class RecordedStep:
    """A screen, the action that was taken there, and what counts as the same action."""

    action_content: Action
    check_options: Action
    screenshot: str  # path of the picture; relative to the file of episodes
    step_instruction: str = ""
    elements: str = ""  # the screen's elements in words; official episodes have none


@dataclass(frozen=True)
class RecordedTrajectory:
    """A trajectory; places are in pixels of its screenshots."""

    episode_id: str
    goal: str
    steps: tuple[RecordedStep, ...]
    folder: Path  # of the screenshots

    def picture(self, step: int) -> NDArray[np.uint8]:
        """Return a screenshot, (height, width, 3)."""
        from PIL import Image

        path = Path(self.steps[step].screenshot)
        places = (path, self.folder / path, self.folder / "images" / path.name)
        for place in places:
            if place.is_file():
                return np.asarray(Image.open(place).convert("RGB"), np.uint8)
        raise InstanceError(f"the screenshot {path} of episode {self.episode_id} is not below {self.folder}")


def episode(content: Mapping[str, Any], folder: Path) -> RecordedTrajectory:
    """Return the episode of one line of a file."""
    names = RecordedStep.__dataclass_fields__
    steps = tuple(RecordedStep(**{name: step[name] for name in names if name in step}) for step in content["steps"])
    return RecordedTrajectory(str(content["episode_id"]), str(content["goal"]), steps, folder)


# Official episodes -------------------------------------------------------------------------------------------


def official() -> tuple[RecordedTrajectory, ...]:
    """Return the episodes of $ANDROID_CONTROL_DATA; none if it is not set."""
    path = os.environ.get(DATA)
    return _official(path) if path else ()


@cache
def _official(path: str) -> tuple[RecordedTrajectory, ...]:
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        return tuple(episode(json.loads(line), Path(path).parent) for line in lines if line.strip())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InstanceError(f"${DATA}={path} is no file of episodes: {error!r}") from error


# Our recordings ----------------------------------------------------------------------------------------------


def recording(split: str, index: int) -> RecordedTrajectory:
    """Return an episode of Phone's oracle, from the cache or recorded anew, which takes a Chromium."""
    name = f"{split}-{index}.jsonl"
    folders = [folder / f"v{VERSION}" for folder in cache_folders("gui_recorded")]
    for folder in folders:
        if (folder / name).is_file():
            return episode(json.loads((folder / name).read_text(encoding="utf-8")), folder)
    env = PhoneTask(split=split, places=True)
    env.templates = list(RECORDED)
    try:
        return record(env, index, folders[-1], name)
    finally:
        env.close()


def record(env: PhoneTask, index: int, folder: Path, name: str) -> RecordedTrajectory:
    """Play the oracle on an instance of Phone and write the episode to a file, with its pictures in `images`."""
    (folder / "images").mkdir(parents=True, exist_ok=True)
    env.reset(options={"index": index})
    steps = []
    for number, (action, check, instruction) in enumerate(_played(env)):
        path = f"images/{Path(name).stem}_{number}.png"
        _written(folder / path, encode(env.screenshot())[1])
        steps.append(RecordedStep(action, check, path, instruction, env.screen_text()))
    content = {
        "episode_id": Path(name).stem,
        "goal": env.goal.text,
        "is_successful": True,
        "steps": [asdict(step) for step in steps],
    }
    _written(folder / name, json.dumps(content, ensure_ascii=False).encode())
    return episode(content, folder)


def _written(path: Path, content: bytes) -> None:
    """Write a file at once, as other processes may record the same episode."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def _played(env: PhoneTask) -> Iterator[tuple[Action, Action, str]]:
    """Play the oracle; yield each action on the screen before it, as AndroidControl writes it.

    Typing into a field is a tap and a text there, so the tap is played and recorded first. The status is left out.
    """
    for line in env.oracle():
        action = parse(line)
        element = None if action.index is None else env.view.elements[action.index]
        if action.kind in ("click", "long_press", "input_text"):
            assert element is not None
            kind = "long_press" if action.kind == "long_press" else "click"
            x, y = element.centre
            place = {"action": kind, "coordinate": [round(x), round(y)]}
            yield place, place | {"candidate_bbox": [list(element.box)]}, f"{_verb(kind)} {_name(element)}"
        if action.kind == "input_text":
            env.step(json.dumps({"action_type": "click", "index": action.index}))
            typed = {"action": "type", "text": action.text}
            yield typed, typed, f"Type {action.text}"
        elif action.kind == "open_app":
            opened = {"action": "open", "text": action.text}
            icons = [list(each.box) for each in env.view.elements[1:] if each.named(action.text)]
            yield opened, opened | ({"candidate_bbox": icons} if icons else {}), f"Open the app {action.text}"
        elif action.kind == "scroll":
            swipe = {"action": "swipe", "coordinate": [WIDTH // 2, HEIGHT * 3 // 4]}
            swipe["coordinate2"] = [WIDTH // 2, HEIGHT // 4]
            yield swipe, {"action": "swipe", "direction": action.text}, "Swipe up to see more"
        elif action.kind == "answer":
            answer = {"action": "answer", "text": action.text}
            yield answer, answer, "Answer the question"
        elif action.kind == "wait":
            wait = {"action": "wait", "time": 1}
            yield wait, wait, "Wait"
        _, _, over, _, info = env.step(line)
        if over and not info["success"]:
            raise InstanceError(f"the oracle did not meet the request {env.goal.text!r}")


def _verb(kind: str) -> str:
    return "Press and hold" if kind == "long_press" else "Tap"


def _name(element: PhoneElement) -> str:
    return element.description or element.text.partition(" | ")[0]
