"""Families of goals: texts, files, settings, a terminal, and what cannot be done."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.goals import Builder, DesktopGoal, content, words

Rng = np.random.Generator
KEYFILE = ".config/glib-2.0/settings/keyfile"
HOME = "/home/user"


def call(name: str, *arguments: Any) -> str:
    """Return an action."""
    return f"{name}({', '.join(map(repr, arguments))})"


def _note(rng: Rng, lines: int) -> str:
    return "".join(" ".join(words(rng, 4)) + "\n" for _ in range(lines))


def _editor(*names: str) -> tuple[Launch, ...]:
    return tuple(Launch("mousepad", (name,), name) for name in names)


def append_line(rng: Rng) -> DesktopGoal:
    """Add a line to the end of a text."""
    name, *line = words(rng, 4)
    note, added = _note(rng, 3), " ".join(line)
    file = f"{name}.txt"
    return DesktopGoal(
        text=f'Add the line "{added}" at the end of {file}, which is open, and save it.',
        files={file: note},
        launches=_editor(file),
        plan=lambda: iter([call("hotkey", "ctrl+end"), call("type", added + "\n"), call("hotkey", "ctrl+s")]),
        reached=lambda home: (content(home / file) or "").rstrip("\n") == note + added,
        changes=frozenset({file}),
    )


def add_title(rng: Rng) -> DesktopGoal:
    """Put a title before a text."""
    name, *title = words(rng, 3)
    note, heading = _note(rng, 4), " ".join(title).title()
    file = f"{name}.txt"
    return DesktopGoal(
        text=f'Put the title "{heading}" on a line of its own at the top of {file} and save it.',
        files={file: note},
        launches=_editor(file),
        plan=lambda: iter([call("hotkey", "ctrl+home"), call("type", heading + "\n"), call("hotkey", "ctrl+s")]),
        reached=lambda home: content(home / file) == f"{heading}\n{note}",
        changes=frozenset({file}),
    )


def replace_word(rng: Rng) -> DesktopGoal:
    """Replace a word wherever it stands in a text."""
    name, old, new, *rest = words(rng, 8)
    lines = [f"{old} {rest[0]}", f"{rest[1]} {old} {rest[2]}", f"{rest[3]} {rest[4]} {old}"]
    note = "\n".join(lines) + "\n"
    wanted, file = note.replace(old, new), f"{name}.txt"
    return DesktopGoal(
        text=f'Replace every "{old}" in {file} by "{new}" and save the file.',
        files={file: note},
        launches=_editor(file),
        plan=lambda: iter([call("hotkey", "ctrl+a"), call("type", wanted), call("hotkey", "ctrl+s")]),
        reached=lambda home: content(home / file) == wanted,
        changes=frozenset({file}),
    )


def delete_line(rng: Rng) -> DesktopGoal:
    """Delete a line of a text."""
    name, *_ = words(rng, 1)
    file, lines = f"{name}.txt", _note(rng, 5).splitlines()
    place = int(rng.integers(1, 4))
    wanted = "".join(f"{line}\n" for i, line in enumerate(lines) if i != place)

    def plan() -> Iterator[str]:
        yield call("hotkey", "ctrl+home")
        yield call("press", "down", place)
        yield call("hotkey", "shift+down")
        yield call("press", "delete")
        yield call("hotkey", "ctrl+s")

    return DesktopGoal(
        text=f"Delete line {place + 1} of {file} and save the file.",
        files={file: "".join(f"{line}\n" for line in lines)},
        launches=_editor(file),
        plan=plan,
        reached=lambda home: content(home / file) == wanted,
        changes=frozenset({file}),
    )


def write_new_text(rng: Rng) -> DesktopGoal:
    """Write a new text and save it in a folder."""
    name, *line = words(rng, 5)
    file, text = f"Documents/{name}.txt", " ".join(line)

    def plan() -> Iterator[str]:
        yield call("type", text)
        yield call("hotkey", "ctrl+s")
        yield call("type", f"{HOME}/{file}")
        yield call("press", "enter")

    return DesktopGoal(
        text=f'Write a text with the one line "{text}" and save it as {name}.txt in the folder Documents.',
        files={},
        launches=(Launch("mousepad", (), "Untitled"),),
        plan=plan,
        reached=lambda home: (content(home / file) or "").strip() == text,
        changes=frozenset({file}),
    )


def combine_texts(rng: Rng) -> DesktopGoal:
    """Append one text to another."""
    first, second = (f"{name}.txt" for name in words(rng, 2))
    top, bottom = _note(rng, 3), _note(rng, 3)

    def plan() -> Iterator[str]:
        yield call("hotkey", "ctrl+a")
        yield call("hotkey", "ctrl+c")
        yield call("hotkey", "alt+tab")
        yield call("hotkey", "ctrl+end")
        yield call("hotkey", "ctrl+v")
        yield call("hotkey", "ctrl+s")

    return DesktopGoal(
        text=f"Both {first} and {second} are open. Add the text of {second} at the end of {first} and save {first}.",
        files={first: top, second: bottom},
        launches=_editor(first, second),
        plan=plan,
        reached=lambda home: content(home / first) == top + bottom,
        changes=frozenset({first}),
    )


def show_line_numbers(rng: Rng) -> DesktopGoal:
    """Let the text editor show line numbers."""
    name, *_ = words(rng, 1)
    file = f"{name}.txt"

    def plan() -> Iterator[str]:
        yield call("hotkey", "alt+v")
        yield call("press", "down", 2)
        yield call("press", "enter")

    return DesktopGoal(
        text=f"Let the text editor, in which {file} is open, show line numbers.",
        files={file: _note(rng, 6)},
        launches=_editor(file),
        plan=plan,
        reached=lambda home: "show-line-numbers=true" in (content(home / KEYFILE) or ""),
    )


def _shell(command: str) -> Iterator[str]:
    yield call("type", command + "\n")


TERMINAL = (Launch("lxterminal"),)


def make_folders(rng: Rng) -> DesktopGoal:
    """Make nested folders in a terminal."""
    outer, inner, *_ = words(rng, 2)
    return DesktopGoal(
        text=f"In the terminal, make a folder {outer} in the home folder and in it a folder {inner}.",
        files={},
        launches=TERMINAL,
        plan=lambda: _shell(f"mkdir -p {outer}/{inner}"),
        reached=lambda home: (home / outer / inner).is_dir(),
        changes=frozenset({outer, f"{outer}/{inner}"}),
    )


def count_lines(rng: Rng) -> DesktopGoal:
    """Write the number of a file's lines into another."""
    name, *_ = words(rng, 1)
    count = int(rng.integers(7, 90))
    file, result = f"{name}.log", "count.txt"
    return DesktopGoal(
        text=f"Write the number of lines of {file}, and nothing else, into {result} in the home folder.",
        files={file: _note(rng, count)},
        launches=TERMINAL,
        plan=lambda: _shell(f"wc -l <{file} >{result}"),
        reached=lambda home: (content(home / result) or "").strip() == str(count),
        changes=frozenset({result}),
    )


def move_by_ending(rng: Rng) -> DesktopGoal:
    """Move all files of one kind into a folder."""
    names = words(rng, 7)
    target = names.pop()
    ending = ("log", "csv", "md")[int(rng.integers(3))]
    moved, kept = [f"{name}.{ending}" for name in names[:3]], [f"{name}.txt" for name in names[3:]]
    return DesktopGoal(
        text=f"Move all files of the home folder that end in .{ending} into the folder {target}, which is there.",
        files={f"{target}/": "", **{name: f"{name}\n" for name in (*moved, *kept)}},
        launches=TERMINAL,
        plan=lambda: _shell(f"mv *.{ending} {target}/"),
        reached=lambda home: all(
            content(home / target / name) == f"{name}\n" and not (home / name).exists() for name in moved
        ),
        changes=frozenset({*moved, *(f"{target}/{name}" for name in moved)}),
    )


def make_executable(rng: Rng) -> DesktopGoal:
    """Let the owner execute a script."""
    name, *_ = words(rng, 1)
    file = f"{name}.sh"

    def reached(home: Path) -> bool:
        path = home / file
        return path.is_file() and not path.is_symlink() and bool(path.stat().st_mode & 0o100)

    return DesktopGoal(
        text=f"Make the script {file} in the home folder executable for its owner.",
        files={file: "#!/bin/sh\necho hello\n"},
        launches=TERMINAL,
        plan=lambda: _shell(f"chmod u+x {file}"),
        reached=reached,
    )


def rename_file(rng: Rng) -> DesktopGoal:
    """Rename a file in the file manager."""
    old, new, other = (f"{word}.txt" for word in words(rng, 3))
    text = _note(rng, 2)

    def plan() -> Iterator[str]:
        yield call("type", old.partition(".")[0])
        yield call("press", "escape")
        yield call("press", "f2")
        yield call("hotkey", "ctrl+a")
        yield call("type", new)
        yield call("press", "enter")

    return DesktopGoal(
        text=f"Rename the file {old} in the home folder to {new}.",
        files={old: text, other: _note(rng, 1)},
        launches=(Launch("thunar"),),
        plan=plan,
        reached=lambda home: content(home / new) == text and not (home / old).exists(),
        changes=frozenset({old, new}),
    )


def create_folder(rng: Rng) -> DesktopGoal:
    """Make a folder in the file manager."""
    name, *_ = words(rng, 1)

    def plan() -> Iterator[str]:
        yield call("hotkey", "ctrl+shift+n")
        yield call("hotkey", "ctrl+a")
        yield call("type", name.title())
        yield call("press", "enter")

    return DesktopGoal(
        text=f"Make a folder named {name.title()} in the home folder.",
        files={},
        launches=(Launch("thunar"),),
        plan=plan,
        reached=lambda home: (home / name.title()).is_dir(),
        changes=frozenset({name.title()}),
    )


def edit_missing_file(rng: Rng) -> DesktopGoal:
    """Ask for a file that does not exist."""
    name, missing, *line = words(rng, 4)
    return DesktopGoal(
        text=f'The home folder has a file {missing}.txt. Change its second line to "{" ".join(line)}".',
        files={f"{name}.txt": _note(rng, 3)},
        launches=TERMINAL,
        plan=lambda: _shell("ls"),
        feasible=False,
    )


FAMILIES: dict[str, Builder] = {
    family.__name__: family
    for family in (
        *(
            append_line,
            combine_texts,
            rename_file,
            make_folders,
            add_title,
            count_lines,
            replace_word,
            show_line_numbers,
        ),
        *(show_line_numbers, move_by_ending, delete_line, create_folder, write_new_text, make_executable),
        edit_missing_file,
    )
}
