"""OSWorld's own tasks, from its files, on a desktop."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

from lmgym.backends.desktop.inputs import Input, InvalidAction
from lmgym.backends.desktop.session import Desktop
from lmgym.env.env import Reply
from lmgym.errors import BackendError
from lmgym.tasks.desktop import OFFICIAL
from lmgym.tasks.desktop.base import DesktopEnv
from lmgym.tasks.desktop.osworld.files import DATA, OSWorldTasks, available
from lmgym.tasks.desktop.osworld.session import OSWorldSession

SCREEN = (1920, 1080)  # pixels of OSWorld's screen
SPACES = {"any": "", "pyautogui": "pyautogui.", "computer_13": '"action_type"'}  # and what every action of it has
PROMPTS = {"any": "prompt.md", "pyautogui": "osworld/pyautogui.md", "computer_13": "osworld/computer.md"}
WORDS = ("WAIT", "DONE", "FAIL")  # are actions of every space


class OSWorldTask(DesktopEnv):
    """A task of OSWorld; the score is that of its metrics."""

    SPEC = OFFICIAL

    def __init__(self, *, actions: str = "any", screen: tuple[int, int] = SCREEN, **common: Any) -> None:
        """Choose the actions.

        Args:
            actions: OSWorld's space "pyautogui" or "computer_13"; "any" accepts both and Desktop's other formats.
            screen: width and height of the screen, in pixels.
            common: options of every desktop task: observe, pixels, coordinates, split.
        """
        super().__init__(screen=screen, **common)
        self.check_choices(actions=(actions, SPACES))
        self.actions, self.prompt = actions, PROMPTS[actions]
        self._folder: Path | None = None

    @property
    def files(self) -> OSWorldTasks:
        """The task files that can be played here."""
        return available()

    def size(self) -> int:
        """Return the number of tasks that can be played here."""
        return len(self.files.tasks)

    def title(self, index: int) -> str:
        """Return the id of a task."""
        return self.files.tasks[index].id

    def index_of(self, title: str) -> int | None:
        """Return the index of a task; None if it cannot be played here."""
        return next((i for i, task in enumerate(self.files.tasks) if task.id == title), None)

    def begin(self, index: int) -> Reply:
        """Restore the desktop and perform the task's first steps."""
        task = self.files.tasks[index]

        def furnish(desktop: Desktop) -> None:
            self._forget()
            self._folder = Path(tempfile.mkdtemp(prefix="lmgym-osworld-"))
            desktop.reset(lambda home: None, ())
            self.session = OSWorldSession(task, desktop, self._folder)
            self.session.run(task.content.get("config", ()))

        return self.begin_with(furnish, task.content["instruction"])

    def parsed(self, action: str) -> list[Input]:
        """Return the inputs of an action of the chosen space."""
        if SPACES[self.actions] not in action and action.strip().strip("`").strip() not in WORDS:
            raise InvalidAction(f"actions are those of {self.actions}, or {', '.join(WORDS)}")
        return super().parsed(action)

    def ended(self, how: str) -> float:
        """Return the score of the present state, or of a report that the task is infeasible."""
        return self._scored(failed=how == "fail")

    def score_if_cut(self) -> float:
        """Return the score of the present state."""
        return self._scored(failed=False)

    def close(self) -> None:
        """Give the desktop back and remove the files."""
        super().close()
        self._forget()

    def _scored(self, *, failed: bool) -> float:
        try:
            return self.session.score(failed=failed)
        except BackendError:
            self.discard()
            raise

    def _forget(self) -> None:
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)


def tasks_here() -> str:
    """Return the number of tasks that can be played here, and the reasons why others cannot."""
    return str(available()) if available().left_out is not None else f"${DATA} is not set"
