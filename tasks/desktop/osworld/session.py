"""An OSWorld task on a desktop: its steps, what its getters read, and its score."""

from __future__ import annotations

import os
import secrets
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from lmgym.backends.desktop.calls import inputs_of_code
from lmgym.backends.desktop.inputs import Input, check_possible, perform
from lmgym.backends.desktop.session import LONGEST, Desktop, Launch
from lmgym.backends.desktop.tree import TreeNode
from lmgym.backends.desktop.view import TERMINAL
from lmgym.tasks.desktop.moves import HOME
from lmgym.tasks.desktop.osworld.files import OPENERS, PROGRAMS, OSWorldFile, listed, pyautogui_code
from lmgym.tasks.desktop.osworld.metrics import METRICS
from lmgym.tasks.desktop.osworld.metrics.rules import opened
from lmgym.tasks.desktop.reading import read_plain

SECONDS = 60  # that a command may take
LARGEST = 50 << 20  # bytes of a file that is judged
LEVELS = 40  # of folders that are listed
STATE = "{https://accessibility.ubuntu.example.org/ns/state}"


class OSWorldSession:
    """One task on one desktop; `folder` is where files lie while they are judged."""

    def __init__(self, task: OSWorldFile, desktop: Desktop, folder: Path) -> None:
        self.task, self.desktop, self.folder = task, desktop, folder

    # Steps ---------------------------------------------------------------------------------------------------

    def run(self, steps: Sequence[Mapping[str, Any]]) -> None:
        """Perform steps."""
        for step in steps:
            getattr(self, f"_{step['type']}")(**step.get("parameters", {}))

    def _download(self, files: Sequence[Mapping[str, str]]) -> None:
        for each in files:
            source, target = self.task.downloaded(each["url"], each["path"]), self.outside(each["path"])
            assert source is not None  # tasks without it are left out when they are read
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def _open(self, path: str) -> None:
        pure = PurePosixPath(path)
        self.desktop.launch(Launch(OPENERS[pure.suffix.lstrip(".").lower()], (path,), pure.name))

    def _launch(self, command: str | list[str], **_: Any) -> None:
        program, *arguments = shlex.split(command) if isinstance(command, str) else command
        files = [PurePosixPath(each).name for each in arguments if "." in each and not each.startswith("-")]
        name = PROGRAMS[PurePosixPath(program).name]
        if name not in ("soffice", PurePosixPath(program).name):  # a stand-in has other options
            arguments = [each for each in arguments if not each.startswith("-")]
        self.desktop.launch(Launch(name, tuple(arguments), files[-1] if files else ""))

    def _execute(
        self, command: str | list[str], stdout: str = "", stderr: str = "", shell: bool = False, **_: Any
    ) -> None:
        if (code := pyautogui_code(command)) is not None:
            inputs = inputs_of_code(code)
            check_possible(inputs, self.desktop)  # the limits are the policy's
            for each in inputs:
                perform(each, self.desktop)
            return
        results = self.output(command)
        for name, text in ((stdout, results[0]), (stderr, results[1])):
            if name:
                (self.folder / PurePosixPath(name).name).write_text(text, encoding="utf-8")

    _command = _execute

    def _sleep(self, seconds: float) -> None:
        self.desktop.rest(longest=max(float(seconds), LONGEST))

    def _activate_window(self, window_name: str, **_: Any) -> None:
        self.desktop.display.activate(window_name)
        self.desktop.rest()

    def _close_window(self, window_name: str, **_: Any) -> None:
        if self.desktop.display.activate(window_name):
            perform(Input("hotkey", keys=("alt", "f4")), self.desktop)

    def output(self, command: str | list[str]) -> tuple[str, str]:
        """Run a command in the sandbox of the applications; return what it wrote and its errors."""
        words = command if isinstance(command, str) else shlex.join(command)
        home, number = self.desktop.home, secrets.token_hex(8)  # a name that the policy cannot have taken
        names = [f".osworld-{number}-{kind}" for kind in ("command", "output", "errors")]
        try:
            script = os.open(home / names[0], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        except OSError:  # the policy may take the right to write from its home folder
            return "", ""
        with open(script, "w", encoding="utf-8") as file:
            file.write(f'python() {{ python3 "$@"; }}\n{words}\n')
        line = f"bash {HOME}/{names[0]} >{HOME}/{names[1]} 2>{HOME}/{names[2]}"
        self.desktop.run("timeout", [str(SECONDS - 5), "bash", "-c", line], seconds=SECONDS)
        texts = [(content_inside(home, home / name) or b"").decode(errors="replace") for name in names[1:]]
        for name in names:
            (home / name).unlink(missing_ok=True)
        return texts[0], texts[1]

    def outside(self, path: str) -> Path:
        """Return the place of a path of the home folder."""
        return self.desktop.home / PurePosixPath(path).relative_to(HOME)

    # Getters -------------------------------------------------------------------------------------------------

    def read(self, getter: Mapping[str, Any]) -> Any:
        """Return what a getter reads."""
        return getattr(self, f"_get_{getter['type']}")(getter)

    def _get_rule(self, getter: Mapping[str, Any]) -> Any:
        return getter["rules"]

    def _get_vm_file(self, getter: Mapping[str, Any]) -> Any:
        copies = []
        for path, name in zip(listed(getter["path"]), listed(getter["dest"]), strict=True):
            target, source = self.folder / PurePosixPath(name).name, self.outside(path)
            content = content_inside(self.desktop.home, source)
            if content is not None:
                target.write_bytes(content)
            copies.append(None if content is None else str(target))
        return _given(copies, getter)

    def _get_cloud_file(self, getter: Mapping[str, Any]) -> Any:
        copies = []
        for url, name in zip(listed(getter["path"]), listed(getter["dest"]), strict=True):
            source, target = self.task.downloaded(url, name), self.folder / f"gold-{PurePosixPath(name).name}"
            assert source is not None
            shutil.copyfile(source, target)
            copies.append(str(target))
        return _given(copies, getter)

    def _get_cache_file(self, getter: Mapping[str, Any]) -> str | None:
        path = self.folder / PurePosixPath(getter["path"]).name
        return str(path) if path.exists() else None

    def _get_vm_command_line(self, getter: Mapping[str, Any]) -> str:
        return self.output(getter["command"])[0]

    def _get_vm_command_error(self, getter: Mapping[str, Any]) -> str:
        return self.output(getter["command"])[1]

    def _get_vm_terminal_output(self, getter: Mapping[str, Any]) -> str | None:
        nodes = (node for root in self.desktop.tree() for node in root.walk() if node.kind == TERMINAL)
        return next((node.text.rstrip() for node in nodes if node.text), None)

    def _get_accessibility_tree(self, getter: Mapping[str, Any]) -> str:
        return tree_as_xml(self.desktop.tree())

    def _get_content_from_vm_file(self, getter: Mapping[str, Any]) -> list[str] | None:
        """Return the last row of a sheet, as texts, which is all that OSWorld's tasks read."""
        from openpyxl import load_workbook

        copy = self.read({"type": "vm_file", "path": getter["path"], "dest": "content.xlsx"})
        book = opened(lambda path: load_workbook(path, data_only=True), copy)
        rows = [] if book is None else list(book.active.iter_rows(values_only=True))
        return [str(value) for value in rows[-1]] if rows else None

    def _get_list_directory(self, getter: Mapping[str, Any]) -> dict[str, Any] | None:
        folder = self.outside(getter["path"])
        inside = folder.resolve().is_relative_to(self.desktop.home.resolve())
        return _tree(folder) if inside and folder.is_dir() else None

    def _get_vm_screen_size(self, getter: Mapping[str, Any]) -> dict[str, int]:
        return {"width": self.desktop.size[0], "height": self.desktop.size[1]}

    # Score ---------------------------------------------------------------------------------------------------

    def score(self, *, failed: bool) -> float:
        """Return the score of the present state, after the steps that OSWorld performs first.

        `failed` says that the policy called the task infeasible. With "and", a metric of 0 makes the score 0 and the
        mean counts else; with "or", the largest counts.
        """
        if self.task.metrics == ["infeasible"]:
            return float(failed)
        if failed:
            return 0.0
        self.run(self.task.evaluator.get("postconfig", ()))
        scores = []
        either = self.task.evaluator.get("conj", "and") == "or"
        for score in self._scores():
            if score == 0.0 and not either:
                return 0.0
            scores.append(score)
        return max(0.0, min(1.0, max(scores) if either else sum(scores) / len(scores)))

    def _scores(self) -> Iterator[float]:
        parts = (self.task.metrics, *(self.task.parts(name) for name in ("result", "expected", "options")))
        for name, result, expected, options in zip(*parts, strict=True):
            values = [self.read(result) if result else None]
            if expected:
                values.append(self.read(expected))
            yield float(METRICS[name](*values, **(options or {})))


def content_inside(home: Path, path: Path) -> bytes | None:
    """Return the content of a plain file of the home folder; None for any other, or one that is too large.

    Links are followed by the system, so the file that was opened is asked where it is.
    """
    return read_plain(path, LARGEST, inside=lambda opened: opened.is_relative_to(home.resolve()))


def _given(copies: Sequence[str | None], getter: Mapping[str, Any]) -> Any:
    """Return the files that a getter gives to the metric: one, or a list."""
    chosen = [copies[i] for i in getter.get("gives", [0])]
    return chosen[0] if len(chosen) == 1 else chosen


def _tree(folder: Path, levels: int = LEVELS) -> dict[str, Any]:
    """Return a folder in OSWorld's form; what cannot be read, or is deeper than so many levels, is left out."""
    children = []
    with suppress(OSError):
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if not entry.is_dir(follow_symlinks=False):
                children.append({"type": "file", "name": entry.name})
            elif levels:
                children.append(_tree(Path(entry.path), levels - 1))
    return {"type": "directory", "name": folder.name, "children": children}


def tree_as_xml(roots: Sequence[TreeNode]) -> str:
    """Return accessibility trees in OSWorld's form: an element per node, named by its role."""
    from lxml import etree

    desktop = etree.Element("desktop-frame", nsmap={"st": STATE[1:-1]})
    todo = [(desktop, root) for root in roots]
    while todo:
        parent, node = todo.pop(0)
        element = etree.SubElement(parent, node.role or "unknown", name=_plain(node.name))
        element.text = _plain(node.text or "")
        for state in node.state_names:
            element.set(f"{STATE}{state}", "true")
        todo += [(element, child) for child in node.children]
    return str(etree.tostring(desktop, encoding="unicode"))


def _plain(text: str) -> str:
    """Return a text without the characters that XML has not."""
    return "".join(letter for letter in text if letter in "\t\n\r" or " " <= letter <= "\ud7ff" or letter >= "\ue000")
