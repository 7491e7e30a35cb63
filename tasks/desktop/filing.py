"""Goals in the file manager: names, folders, copies, and moves."""

from __future__ import annotations

import numpy as np

from lmgym.tasks.desktop.goals import FILES, Builder, DesktopGoal, content, note, words
from lmgym.tasks.desktop.moves import Move, key, typed

Rng = np.random.Generator


def _select(name: str) -> tuple[Move, ...]:
    """Return moves that select an entry by the first letters of its name."""
    return (typed(name), key("escape"))


def _rename(old: str, new: str) -> tuple[Move, ...]:
    return (*_select(old.partition(".")[0]), key("f2"), key("ctrl+a"), typed(new), key("enter"))


def _new_folder(name: str) -> tuple[Move, ...]:
    return (key("ctrl+shift+n"), key("ctrl+a"), typed(name), key("enter"))


def _go(folder: str) -> tuple[Move, ...]:
    """Return moves that open a folder by its path."""
    return (key("ctrl+l"), key("ctrl+a"), typed(folder), key("enter"))


def rename_file(rng: Rng) -> DesktopGoal:
    """Rename a file."""
    old, new, other = (f"{word}.txt" for word in words(rng, 3))
    text = note(rng, 2)
    return DesktopGoal(
        text=f"Rename the file {old} in the home folder to {new}.",
        files={old: text, other: note(rng, 1)},
        launches=FILES,
        plan=_rename(old, new),
        reached=lambda home: content(home / new) == text and not (home / old).exists(),
        changes=frozenset({old, new}),
    )


def rename_folder(rng: Rng) -> DesktopGoal:
    """Rename a folder with what is in it."""
    old, new, inner = words(rng, 3)
    return DesktopGoal(
        text=f"Rename the folder {old} in the home folder to {new}.",
        files={f"{old}/{inner}.txt": inner},
        launches=FILES,
        plan=_rename(old, new),
        reached=lambda home: content(home / new / f"{inner}.txt") == inner and not (home / old).exists(),
        changes=frozenset({old, new, f"{old}/{inner}.txt", f"{new}/{inner}.txt"}),
    )


def create_folder(rng: Rng) -> DesktopGoal:
    """Make a folder."""
    name = words(rng, 1)[0].title()
    return DesktopGoal(
        text=f"Make a folder named {name} in the home folder.",
        files={},
        launches=FILES,
        plan=_new_folder(name),
        reached=lambda home: (home / name).is_dir(),
        changes=frozenset({name}),
    )


def _carried(rng: Rng, verb: str, keys: str, folder: str, *, kept: bool) -> DesktopGoal:
    """Return the goal that a file of the home folder is in another folder, and is still where it was if `kept`."""
    name, other = (f"{word}.txt" for word in words(rng, 2))
    text = note(rng, 2)
    return DesktopGoal(
        text=f"{verb} the file {name} of the home folder into the folder {folder}.",
        files={name: text, other: note(rng, 1)},
        launches=FILES,
        plan=(*_select(name.partition(".")[0]), key(keys), *_go(f"/home/user/{folder}"), key("ctrl+v")),
        reached=lambda home: (
            content(home / folder / name) == text
            and (content(home / name) == text if kept else not (home / name).exists())
        ),
        changes=frozenset([f"{folder}/{name}"] if kept else [name, f"{folder}/{name}"]),
    )


def copy_file(rng: Rng) -> DesktopGoal:
    """Copy a file into another folder."""
    return _carried(rng, "Copy", "ctrl+c", "Documents", kept=True)


def move_file(rng: Rng) -> DesktopGoal:
    """Move a file into another folder."""
    return _carried(rng, "Move", "ctrl+x", "Downloads", kept=False)


def delete_file(rng: Rng) -> DesktopGoal:
    """Delete a file for good."""
    name, *others = (f"{word}.txt" for word in words(rng, 3))
    return DesktopGoal(
        text=f"Delete the file {name} of the home folder for good, not into the trash.",
        files={name: note(rng, 1), **{other: note(rng, 1) for other in others}},
        launches=FILES,
        plan=(*_select(name.partition(".")[0]), key("shift+delete"), key("enter")),
        reached=lambda home: not (home / name).exists(),
        changes=frozenset({name}),
    )


def three_folders(rng: Rng) -> DesktopGoal:
    """Make three folders beside each other."""
    names = [word.title() for word in words(rng, 3)]
    return DesktopGoal(
        text=f"Make three folders in the home folder: {', '.join(names)}.",
        files={},
        launches=FILES,
        plan=tuple(move for name in names for move in _new_folder(name)),
        reached=lambda home: all((home / name).is_dir() for name in names),
        changes=frozenset(names),
    )


def file_away(rng: Rng) -> DesktopGoal:
    """Make a folder and move two files into it."""
    folder, *names = words(rng, 3)
    first, second = (f"{name}.txt" for name in names)
    plan: list[Move] = [*_new_folder(folder.title())]
    for name in names:
        plan += [*_select(name), key("ctrl+x"), *_go(f"/home/user/{folder.title()}"), key("ctrl+v"), key("alt+up")]
    target = folder.title()
    return DesktopGoal(
        text=f"Make a folder {target} in the home folder and move {first} and {second} into it.",
        files={first: first, second: second},
        launches=FILES,
        plan=tuple(plan),
        reached=lambda home: all(
            content(home / target / name) == name and not (home / name).exists() for name in (first, second)
        ),
        changes=frozenset({target, first, second, f"{target}/{first}", f"{target}/{second}"}),
    )


FAMILIES: dict[Builder, int] = {
    **dict.fromkeys((rename_file, rename_folder, create_folder, copy_file, move_file, delete_file), 2),
    **dict.fromkeys((three_folders, file_away), 3),
}
