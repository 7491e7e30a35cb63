"""Recorded trajectories as an environment: the right action leads to the next recorded screen."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmgym.env.env import Reply, TextEnv
from lmgym.env.spaces import Images
from lmgym.errors import InstanceError
from lmgym.tasks.phone import RECORDED, RECORDED_OFFICIAL
from lmgym.tasks.phone.env import OBSERVE, PIXELS
from lmgym.tasks.phone.pages import HEIGHT, WIDTH
from lmgym.tasks.phone.recorded import RecordedStep, RecordedTrajectory, official, recording
from lmgym.tasks.phone.recorded_match import Match, compare, parse_action


class GUIRecorded(TextEnv):
    """A trajectory of Phone's oracle; the score is UI-S1's semi-online performance."""

    SPEC = RECORDED

    def __init__(
        self,
        *,
        observe: str = "elements",
        pixels: str = "none",
        instructions: str = "high",
        until: str = "mismatch",
        **common: Any,
    ) -> None:
        """Choose observations and the end of an episode.

        Args:
            observe: "elements" lists the elements of each screen, "none" does not.
            pixels: "screenshot" adds the picture of the screen, "none" nothing.
            instructions: "high" gives the goal alone, "low" the instruction of each step too.
            until: "mismatch" ends an episode at the first action that differs; "end" goes on with the recorded one.
            common: options of every task: split, others, render_mode.
        """
        if pixels != "none":
            self.PICTURES = Images(HEIGHT, WIDTH)  # type: ignore[misc]  # of this environment
        super().__init__(**common)
        self.check_choices(observe=(observe, OBSERVE), pixels=(pixels, PIXELS))
        self.check_choices(instructions=(instructions, ("high", "low")), until=(until, ("mismatch", "end")))
        self.observe, self.pixels, self.instructions, self.until = observe, pixels, instructions, until
        self.episode: RecordedTrajectory | None = None
        self.matches: list[Match] = []

    def opened(self, index: int) -> RecordedTrajectory:
        """Return the trajectory of an instance."""
        return recording(self.split, index)

    def begin(self, index: int) -> Reply:
        """Open a trajectory and show its first screen."""
        self.episode, self.matches = self.opened(index), []
        prompt = Template(resources.files(__package__).joinpath("recorded.md").read_text(encoding="utf-8"))
        screen = self._screen()
        width, height = self._size()
        words = prompt.substitute(goal=self.episode.goal, width=width, height=height, screen=screen.text)
        return Reply(words, images=screen.images)

    def act(self, action: str) -> Reply:
        """Compare an action with the recorded one."""
        parsed = parse_action(action)
        match = compare(parsed, self._step().check_options, self._size()) if parsed else Match(False, False)
        self.matches.append(match)
        reward = float(match.exact) / len(self._playing().steps)
        if len(self.matches) == len(self._playing().steps) or (self.until == "mismatch" and not match.exact):
            figures = self.figures_if_cut()
            return Reply(
                "The trajectory is over.",
                done=True,
                score=self.score_if_cut(),
                reward=reward,
                valid=parsed is not None,
                images=self._pictures(len(self.matches) - 1),
                figures=figures,
            )
        screen = self._screen()
        return Reply(screen.text, images=screen.images, reward=reward, valid=parsed is not None)

    def score_if_cut(self) -> float:
        """Return the mean of progress and success, or with `until="end"` the share of steps that match."""
        figures = self.figures_if_cut()
        if self.until == "end":
            return figures["steps_matched"]
        return (figures["progress"] + float(figures["progress"] == 1.0)) / 2

    def figures_if_cut(self) -> Mapping[str, float]:
        """Return shares of the trajectory's steps: before the first mismatch, matched, and of the right kind."""
        count = len(self._playing().steps)
        first = next((i for i, match in enumerate(self.matches) if not match.exact), len(self.matches))
        return {
            "progress": first / count,
            "steps_matched": sum(match.exact for match in self.matches) / count,
            "kinds_matched": sum(match.kind for match in self.matches) / count,
        }

    def oracle(self) -> Iterator[str]:
        """Yield the recorded actions."""
        while len(self.matches) < len(self._playing().steps):
            yield json.dumps(self._step().action_content, ensure_ascii=False)

    def fingerprint(self) -> str:
        """Return the goal and the actions."""
        playing = self._playing()
        return repr((playing.goal, [step.action_content for step in playing.steps]))

    def pointing(self, x: float, y: float) -> str:
        """Return the action that taps a pixel of the recorded screen."""
        width, height = self._size()
        return json.dumps({"action": "click", "coordinate": [round(x * width / WIDTH), round(y * height / HEIGHT)]})

    def _playing(self) -> RecordedTrajectory:
        if self.episode is None:
            raise InstanceError("no trajectory is open; call reset() first")
        return self.episode

    def _step(self) -> RecordedStep:
        return self._playing().steps[len(self.matches)]

    def _size(self) -> tuple[int, int]:
        """Return width and height of the screen, in the pixels that actions name."""
        return WIDTH, HEIGHT

    def _screen(self) -> Reply:
        step = self._step()
        lines = [f"Step: {step.step_instruction}"] if self.instructions == "low" else []
        lines += [step.elements] if self.observe == "elements" and step.elements else []
        return Reply("\n".join(lines), images=self._pictures(len(self.matches)))

    def _pictures(self, number: int) -> tuple[NDArray[np.uint8], ...]:
        return () if self.pixels == "none" else (self._playing().picture(number),)


class GUIRecordedOfficial(GUIRecorded):
    """A trajectory of $ANDROID_CONTROL_DATA; its pictures are shown in the size of Phone's screen."""

    SPEC = RECORDED_OFFICIAL

    def size(self) -> int:
        """Return the number of episodes in the file."""
        return len(official())

    def title(self, index: int) -> str:
        """Return the id of an episode."""
        return official()[index].episode_id

    def index_of(self, title: str) -> int | None:
        """Return the index of an episode; None if it is not in the file."""
        return next((i for i, each in enumerate(official()) if each.episode_id == title), None)

    def opened(self, index: int) -> RecordedTrajectory:
        """Return an episode of the file."""
        return official()[index]

    def _size(self) -> tuple[int, int]:
        height, width, _ = self._playing().picture(min(len(self.matches), len(self._playing().steps) - 1)).shape
        return width, height

    def _pictures(self, number: int) -> tuple[NDArray[np.uint8], ...]:
        from PIL import Image

        return tuple(
            np.asarray(Image.fromarray(picture).resize((WIDTH, HEIGHT)), np.uint8)
            for picture in super()._pictures(number)
        )
