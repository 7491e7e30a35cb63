"""OSWorld's task files: which can be played here, and why the others cannot."""

from __future__ import annotations

import json
import logging
import os
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from lmgym.backends.desktop.calls import inputs_of_code
from lmgym.backends.desktop.inputs import InvalidAction
from lmgym.backends.desktop.keys import keysym
from lmgym.errors import InstanceError
from lmgym.tasks.desktop.moves import HOME
from lmgym.tasks.desktop.osworld.metrics import METRICS

LOG = logging.getLogger(__name__)
DATA = "OSWORLD_DATA"  # environment variable: an OSWorld checkout, or its folder evaluation_examples
LIST = "test_all.json"
APPLICATIONS = frozenset(
    {
        *("libreoffice", "libreoffice calc", "libreoffice writer", "libreoffice impress", "calc", "writer", "impress"),
        *("os", "terminal", "text editor", "file manager", "files", "nautilus", "gedit", "pdf", "evince"),
    }
)
PROGRAMS = {  # the program of a task's command: what stands in for it
    **dict.fromkeys(("libreoffice", "soffice", "localc", "lowriter", "loimpress"), "soffice"),
    **dict.fromkeys(("gnome-terminal", "xterm", "lxterminal"), "lxterminal"),
    **dict.fromkeys(("nautilus", "thunar"), "thunar"),
    **dict.fromkeys(("gedit", "mousepad"), "mousepad"),
    "evince": "evince",
}
OFFICE = ("csv", "doc", "docx", "odp", "ods", "odt", "ppt", "pptx", "rtf", "xls", "xlsm", "xlsx")
OPENERS = {  # the ending of a file: the program that opens it
    **dict.fromkeys(OFFICE, "soffice"),
    **dict.fromkeys(("jpeg", "jpg", "png"), "ristretto"),
    **dict.fromkeys(("log", "md", "py", "txt"), "mousepad"),
    "pdf": "evince",
    "": "thunar",
}
STEPS = ("download", "open", "launch", "execute", "command", "sleep", "activate_window", "close_window")
GETTERS = (
    *("vm_file", "cloud_file", "cache_file", "rule", "vm_command_line", "vm_command_error", "vm_terminal_output"),
    *("accessibility_tree", "content_from_vm_file", "list_directory", "vm_screen_size"),
)
ROOT = ("sudo", "CLIENT_PASSWORD", "systemctl", "apt ", "apt-get")  # in a command: it needs rights that nobody has


@dataclass(frozen=True)
class OSWorldFile:
    """One task file, and the folder of what it downloads."""

    domain: str
    content: Mapping[str, Any]
    cache: Path

    @property
    def id(self) -> str:
        """The task's id."""
        return str(self.content["id"])

    @property
    def evaluator(self) -> Mapping[str, Any]:
        """The part that says how the task is judged."""
        evaluator: Mapping[str, Any] = self.content["evaluator"]
        return evaluator

    @property
    def metrics(self) -> list[str]:
        """The names of the metrics."""
        func = self.evaluator["func"]
        return [func] if isinstance(func, str) else list(func)

    @property
    def steps(self) -> list[Mapping[str, Any]]:
        """All steps, before and after the episode."""
        return [*self.content.get("config", ()), *self.evaluator.get("postconfig", ())]

    def parts(self, name: str) -> list[Any]:
        """Return the entries of "result", "expected" or "options", one per metric; None where there is none."""
        value = self.evaluator.get(name) or None
        if isinstance(value, list):
            return [each or None for each in value]
        return [value] if isinstance(self.evaluator["func"], str) else [None] * len(self.metrics)

    def downloaded(self, url: str, name: str) -> Path | None:
        """Return a downloaded file: named as OSWorld's cache names it, or by its own name; None if it is missing."""
        base = PurePosixPath(name).name
        names = (f"{uuid5(NAMESPACE_URL, url)}_{base}", base, name.lstrip("/"))
        return next((path for each in names if (path := self.cache / each).is_file()), None)


@dataclass(frozen=True)
class OSWorldTasks:
    """The playable tasks, and the reasons of the others by id."""

    tasks: tuple[OSWorldFile, ...] = ()
    left_out: Mapping[str, str] | None = None

    def __str__(self) -> str:
        """Return a line with the number of playable tasks, and one for each reason."""
        counts = Counter((self.left_out or {}).values())
        return "\n".join(
            [f"{len(self.tasks)} tasks", *(f"{count} left out: {reason}" for reason, count in counts.items())]
        )


def available() -> OSWorldTasks:
    """Return the tasks of $OSWORLD_DATA; none if it is not set."""
    path = os.environ.get(DATA)
    return _available(path) if path else OSWorldTasks()


@cache
def _available(path: str) -> OSWorldTasks:
    tasks, left_out = [], {}
    for task in read(Path(path)):
        if reason := reason_to_leave_out(task):
            left_out[task.id] = reason
        else:
            tasks.append(task)
    chosen = OSWorldTasks(tuple(tasks), left_out)
    LOG.info("%s: %s", path, chosen)
    return chosen


def read(folder: Path) -> Iterator[OSWorldFile]:
    """Yield the task files that test_all.json lists, in its order."""
    inner = folder / "evaluation_examples"
    root = inner if inner.is_dir() else folder
    try:
        listed: Mapping[str, list[str]] = json.loads((root / LIST).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InstanceError(f"${DATA}={folder} has no readable {LIST}: {error}") from error
    for domain, ids in listed.items():
        for name in ids:
            path = root / "examples" / domain / f"{name}.json"
            try:
                content = json.loads(path.read_text(encoding="utf-8"))
                task = OSWorldFile(domain, content, root.parent / "cache" / name)
                assert content["instruction"]
                assert task.metrics
            except (OSError, ValueError, KeyError, AssertionError) as error:
                raise InstanceError(f"{path} is no task file of OSWorld: {error!r}") from error
            yield task


def reason_to_leave_out(task: OSWorldFile) -> str:
    """Return the first reason why a task cannot be played here; "" if it can."""
    for name in task.content.get("related_apps", ()):
        if (plain := name.lower().replace("_", " ")) not in APPLICATIONS:
            return f"no application {plain}"
    for step in task.steps:
        if reason := _step_reason(task, step["type"], step.get("parameters", {})):
            return reason
    if task.metrics == ["infeasible"]:
        return ""
    for name in task.metrics:
        if name not in METRICS:
            return f"no metric {name}"
    for getter in (each for part in ("result", "expected") for each in task.parts(part) if each):
        if reason := _getter_reason(task, getter):
            return reason
    return ""


def _step_reason(task: OSWorldFile, kind: str, parameters: Mapping[str, Any]) -> str:
    if kind not in STEPS:
        return f"no step {kind}"
    if kind == "download":
        files = parameters["files"]
        if any(task.downloaded(each["url"], each["path"]) is None for each in files):
            return "a download is missing"
        return "" if all(inside_home(each["path"]) for each in files) else "a path is outside of the home folder"
    if kind == "open":
        ending = PurePosixPath(parameters["path"]).suffix.lstrip(".").lower()
        return "" if ending in OPENERS else f"no application for .{ending} files"
    if kind in ("launch", "execute", "command"):
        return _command_reason(kind, parameters["command"])
    return ""


def _command_reason(kind: str, command: str | list[str]) -> str:
    words = command if isinstance(command, str) else shlex.join(command)
    if any(each in words for each in ROOT):
        return "a command needs root"
    if kind == "launch":
        program = PurePosixPath((shlex.split(words) or [""])[0]).name
        return "" if program in PROGRAMS else f"no program {program}"
    if (code := pyautogui_code(command)) is not None:
        try:
            inputs = inputs_of_code(code)
        except InvalidAction:
            return "a step runs pyautogui code that is more than calls"
        if not all(keysym(key) for each in inputs for key in each.keys):
            return "a step presses a key that no keyboard has"
    return ""


def _getter_reason(task: OSWorldFile, getter: Mapping[str, Any]) -> str:
    kind = getter["type"]
    if kind not in GETTERS:
        return f"no getter {kind}"
    if kind in ("vm_file", "content_from_vm_file"):
        if getter.get("time_suffix"):
            return "a file is named by the time"
        return "" if all(map(inside_home, listed(getter["path"]))) else "a path is outside of the home folder"
    if kind == "cloud_file":
        pairs = zip(listed(getter["path"]), listed(getter["dest"]), strict=False)
        return "" if all(task.downloaded(url, name) for url, name in pairs) else "a download is missing"
    return ""


def inside_home(path: str) -> bool:
    """Return True if a path of a task is in the home folder."""
    pure = PurePosixPath(path)
    return pure.is_relative_to(HOME) and ".." not in pure.parts


def listed(value: Any) -> list[Any]:
    """Return a list, or the only item as one."""
    return list(value) if isinstance(value, list) else [value]


def pyautogui_code(command: str | list[str]) -> str | None:
    """Return the code of a command that runs Python with pyautogui; None for any other command."""
    words = shlex.split(command) if isinstance(command, str) else list(command)
    if len(words) == 3 and PurePosixPath(words[0]).name.startswith("python") and words[1] == "-c":
        return words[2] if "pyautogui" in words[2] else None
    return None
