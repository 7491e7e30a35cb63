"""Run the code blocks of a Markdown page as a reader would: in order, in one folder.

A block is marked by its language: `sh` holds commands, one a line; `python` a program; `text` the exact output of the
Python block before it. A title (`title="player.py"` after the language) saves the block under that name instead of
running it. A comment on the line before a block changes that: `<!-- slow -->` leaves the block to the slow tests,
`<!-- output -->` marks a sample of output that differs from run to run, `<!-- not run: REASON -->` says why a block
cannot run here.
"""

from __future__ import annotations

import configparser
import io
import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command import command

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(
    r"(?:^<!-- (?P<note>[^\n]*?) -->\n+)?^```(?P<language>\w*)(?P<info>[^\n]*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str  # path from the root of the repository
    line: int
    language: str
    title: str  # name of the file that holds the text, or empty
    note: str  # "slow", "output", "not run: REASON" or empty
    text: str

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: str) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
    text = (ROOT / page).read_text()
    return [
        Block(
            page=page,
            line=text.count("\n", 0, match.start("language")) + 1,
            language=match["language"],
            title=("".join(re.findall(r'title="([^"]+)"', match["info"]))),
            note=match["note"] or "",
            text=match["text"],
        )
        for match in FENCE.finditer(text)
    ]


class PageRunner:
    """The state of a page's reader: environment variables, files, and the names that programs have bound.

    `replace` maps text of the page, such as the address of an endpoint, to its counterpart in the test. `commands` maps
    the first words of a command to a function of its words, for commands that this test runs in a way of its own.
    """

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        *,
        replace: Mapping[str, str] | None = None,
        commands: Mapping[str, Callable[[list[str]], None]] | None = None,
    ) -> None:
        self.monkeypatch = monkeypatch
        monkeypatch.syspath_prepend(str(Path.cwd()))  # where `python` and `lmgym` look for the page's modules
        self.replace = dict(replace or {})
        self.commands = dict(commands or {})
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.output = ""

    def run(self, block: Block) -> None:
        """Run a block, save it, or compare it with the output of the block before."""
        text = block.text
        for there, here in self.replace.items():
            text = text.replace(there, here)
        if block.title:
            Path(block.title).parent.mkdir(parents=True, exist_ok=True)
            Path(block.title).write_text(text)
        elif block.language == "sh":
            for line in text.replace("\\\n", " ").splitlines():
                self.command(line, block.place)
        elif block.language == "python":
            with redirect_stdout(io.StringIO()) as output:
                exec(compile(text, block.place, "exec"), self.names)
            self.output = output.getvalue()
        elif block.language == "text":
            assert text == self.output, f"{block.place}: the output of the block before is\n{self.output}"
        else:
            raise AssertionError(f"{block.place}: nothing runs a block of {block.language!r}")

    def command(self, line: str, place: str) -> None:
        """Run a line of a shell block."""
        words = shlex.split(re.sub(r"(^|\s)#\s.*", "", line))
        if not words:
            return
        special = [
            function for start, function in self.commands.items() if words[: len(start.split())] == start.split()
        ]
        if special:
            special[0](words)
        elif words[0] == "lmgym":
            assert command(*words[1:]) == 0, f"{place}: {line}"
        elif words[0] == "export":
            self.monkeypatch.setenv(*words[1].split("=", 1))
        elif words[0] == "make":
            subprocess.run(["make", "--dry-run", *words[1:]], cwd=ROOT, check=True, capture_output=True)
        elif words[:2] == ["pip", "install"]:
            if words[2:] == ["-e", "."]:
                self.install_here()
            check_install(words[2:], place)
        elif words[0] in ("mkdir", "touch"):
            subprocess.run(words, check=True)
        elif words[0] in ("python", "curl"):
            words = [os.path.expandvars(word) for word in words]
            words[0] = sys.executable if words[0] == "python" else words[0]
            self.output = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        else:
            raise AssertionError(f"{place}: no rule for the command {line!r}")

    def install_here(self) -> None:
        """Make the entry points of ./pyproject.toml visible, as an editable installation does."""
        project = tomllib.loads(Path("pyproject.toml").read_text())["project"]
        info = Path(f"{project['name']}-{project['version']}.dist-info")
        info.mkdir()
        (info / "METADATA").write_text(
            f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
        )
        groups = project.get("entry-points", {}).items()
        lines = [line for group, names in groups for line in (f"[{group}]", *(f"{a} = {b}" for a, b in names.items()))]
        (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def in_new_process(words: list[str]) -> None:
    """Run `lmgym ...` in a process of its own, which imports what the page has written."""
    command = [sys.executable, "-c", "from lmgym.cli import main; main()", *words[1:]]
    result = subprocess.run(command, env=os.environ | {"PYTHONPATH": "."}, capture_output=True, text=True)
    assert result.returncode == 0, f"{shlex.join(words)}\n{result.stdout}{result.stderr}"


def check_install(arguments: list[str], place: str) -> None:
    """Check that every extra of `pip install 'lmgym[...]'` exists."""
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    for argument in arguments:
        for extra in re.findall(r"\[([\w,]+)\]", argument):
            missing = set(extra.split(",")) - set(setup["options.extras_require"])
            assert not missing, f"{place}: setup.cfg has no extra {missing}"
