"""Goals in the text editor: lines, words, copies, and its settings."""

from __future__ import annotations

import numpy as np

from lmgym.backends.desktop.session import Launch
from lmgym.tasks.desktop.goals import KEYFILE, Builder, DesktopGoal, content, editor, note, numbers, words
from lmgym.tasks.desktop.moves import HOME, SAVE, Move, key, menu, rewrite, typed

Rng = np.random.Generator


def _edit(text: str, file: str, before: str, after: str, *plan: Move) -> DesktopGoal:
    """Return the goal to turn an open text into another; the plan rewrites it if none is given."""
    return DesktopGoal(
        text=text,
        files={file: before},
        launches=editor(file),
        plan=plan or rewrite(after),
        reached=lambda home: (content(home / file) or "").rstrip("\n") == after.rstrip("\n"),
        changes=frozenset({file}),
    )


def append_line(rng: Rng) -> DesktopGoal:
    """Add a line to the end of a text."""
    name, *line = words(rng, 4)
    before, added, file = note(rng, 3), " ".join(line), f"{name}.txt"
    text = f'Add the line "{added}" at the end of {file}, which is open, and save it.'
    return _edit(text, file, before, before + added, key("ctrl+end"), typed(added + "\n"), SAVE)


def add_title(rng: Rng) -> DesktopGoal:
    """Put a title before a text."""
    name, *title = words(rng, 3)
    before, heading, file = note(rng, 4), " ".join(title).title(), f"{name}.txt"
    text = f'Put the title "{heading}" on a line of its own at the top of {file} and save it.'
    return _edit(text, file, before, f"{heading}\n{before}", key("ctrl+home"), typed(heading + "\n"), SAVE)


def replace_word(rng: Rng) -> DesktopGoal:
    """Replace a word wherever it stands in a text."""
    name, old, new, *rest = words(rng, 8)
    lines = [f"{old} {rest[0]}", f"{rest[1]} {old} {rest[2]}", f"{rest[3]} {rest[4]} {old}"]
    before, file = "\n".join(lines) + "\n", f"{name}.txt"
    text = f'Replace every "{old}" in {file} by "{new}" and save the file.'
    return _edit(text, file, before, before.replace(old, new))


def delete_line(rng: Rng) -> DesktopGoal:
    """Delete a line of a text."""
    file, lines = f"{words(rng, 1)[0]}.txt", note(rng, 5).splitlines(keepends=True)
    place = int(rng.integers(1, 4))
    plan = (key("ctrl+home"), key("down", place), key("shift+down"), key("delete"), SAVE)
    after = "".join(lines[:place] + lines[place + 1 :])
    return _edit(f"Delete line {place + 1} of {file} and save the file.", file, "".join(lines), after, *plan)


def sort_lines(rng: Rng) -> DesktopGoal:
    """Sort the lines of a text."""
    name, *lines = words(rng, 6)
    file = f"{name}.txt"
    text = f"Sort the lines of {file} by the alphabet and save it."
    return _edit(text, file, "\n".join(lines) + "\n", "\n".join(sorted(lines)) + "\n")


def number_lines(rng: Rng) -> DesktopGoal:
    """Put numbers before the lines of a text."""
    name, *lines = words(rng, 6)
    file, after = f"{name}.txt", "".join(f"{place}. {line}\n" for place, line in enumerate(lines, 1))
    text = f'Number the lines of {file}: the first becomes "1. {lines[0]}", and so on. Save the file.'
    plan: list[Move] = [key("ctrl+home")]
    for place in range(1, 6):
        plan += [typed(f"{place}. "), key("down"), key("home")]
    return _edit(text, file, "\n".join(lines) + "\n", after, *plan, SAVE)


def capital_line(rng: Rng) -> DesktopGoal:
    """Write a line in capital letters."""
    file, lines = f"{words(rng, 1)[0]}.txt", note(rng, 4).splitlines()
    place = int(rng.integers(1, 4))
    after = [line.upper() if i == place else line for i, line in enumerate(lines)]
    plan = (key("ctrl+home"), key("down", place), key("shift+end"), typed(after[place]), SAVE)
    text = f"Turn line {place + 1} of {file} into capital letters and save the file."
    return _edit(text, file, "\n".join(lines) + "\n", "\n".join(after), *plan)


def move_last_line(rng: Rng) -> DesktopGoal:
    """Move the last line of a text to its top."""
    file, lines = f"{words(rng, 1)[0]}.txt", note(rng, 5).splitlines()
    keys = ("ctrl+end", "shift+home", "ctrl+x", "backspace", "ctrl+home", "ctrl+v", "enter")
    plan = (*map(key, keys), SAVE)
    text = f"Move the last line of {file} to the top and save the file."
    return _edit(text, file, "\n".join(lines), "\n".join([lines[-1], *lines[:-1]]), *plan)


def answer_questions(rng: Rng) -> DesktopGoal:
    """Fill a form line by line."""
    labels = ("Name", "Town", "Colour", "Number", "Street")
    values = [*(word.title() for word in words(rng, 4)), str(numbers(rng, 1)[0])]
    file = "form.txt"
    given = ", ".join(f"{label} {value}" for label, value in zip(labels, values, strict=True))
    plan: list[Move] = [key("ctrl+home")]
    for value in values:
        plan += [key("end"), typed(value), key("down")]
    after = "".join(f"{label}: {value}\n" for label, value in zip(labels, values, strict=True))
    text = f"Fill in form.txt, one value after each colon, and save it: {given}."
    return _edit(text, file, "".join(f"{label}: \n" for label in labels), after, *plan, SAVE)


def write_new_text(rng: Rng) -> DesktopGoal:
    """Write a new text and save it in a folder."""
    name, *line = words(rng, 5)
    file, text = f"Documents/{name}.txt", " ".join(line)
    return DesktopGoal(
        text=f'Write a text with the one line "{text}" and save it as {name}.txt in the folder Documents.',
        files={},
        launches=(Launch("mousepad", (), "Untitled"),),
        plan=(typed(text), SAVE, typed(f"{HOME}/{file}"), key("enter")),
        reached=lambda home: (content(home / file) or "").strip() == text,
        changes=frozenset({file}),
    )


def save_copy(rng: Rng) -> DesktopGoal:
    """Save a text under another name."""
    old, new = (f"{word}.txt" for word in words(rng, 2))
    text = note(rng, 3)
    return DesktopGoal(
        text=f"Save the open text {old} under the name {new} in the folder Documents as well.",
        files={old: text},
        launches=editor(old),
        plan=(key("ctrl+shift+s"), key("ctrl+a"), typed(f"{HOME}/Documents/{new}"), key("enter")),
        reached=lambda home: content(home / "Documents" / new) == text,
        changes=frozenset({f"Documents/{new}"}),
    )


def combine_texts(rng: Rng) -> DesktopGoal:
    """Append one text to another."""
    first, second = (f"{name}.txt" for name in words(rng, 2))
    top, bottom = note(rng, 3), note(rng, 3)
    return DesktopGoal(
        text=f"Both {first} and {second} are open. Add the text of {second} at the end of {first} and save {first}.",
        files={first: top, second: bottom},
        launches=editor(first, second),
        plan=tuple(map(key, ("ctrl+a", "ctrl+c", "alt+tab", "ctrl+end", "ctrl+v", "ctrl+s"))),
        reached=lambda home: content(home / first) == top + bottom,
        changes=frozenset({first}),
    )


def exchange_texts(rng: Rng) -> DesktopGoal:
    """Exchange the contents of two texts."""
    first, second = (f"{name}.txt" for name in words(rng, 2))
    one, two = note(rng, 2), note(rng, 3)
    keys = ("ctrl+a", "ctrl+x", "alt+tab", "ctrl+end", "ctrl+v", "ctrl+home")
    plan = (*map(key, keys), key("shift+down", 1), key("shift+down", 1), key("ctrl+x"), SAVE)
    plan += (key("alt+tab"), key("ctrl+v"), SAVE)
    return DesktopGoal(
        text=f"Exchange the texts of {first} and {second}, which are open, and save both.",
        files={first: one, second: two},
        launches=editor(first, second),
        plan=plan,
        reached=lambda home: content(home / first) == two and content(home / second) == one,
        changes=frozenset({first, second}),
    )


def _setting(family: str, wish: str, line: str, *path: str) -> Builder:
    """Return a family that changes one setting of the editor by its menus."""

    def build(rng: Rng) -> DesktopGoal:
        file = f"{words(rng, 1)[0]}.txt"
        return DesktopGoal(
            text=f"Let the text editor, in which {file} is open, {wish}.",
            files={file: note(rng, 6)},
            launches=editor(file),
            plan=menu(*path),
            reached=lambda home: line in (content(home / KEYFILE) or ""),
        )

    build.__name__ = family
    return build


FAMILIES: dict[Builder, int] = {
    **dict.fromkeys((append_line, add_title, replace_word, sort_lines), 1),
    **dict.fromkeys((delete_line, capital_line, move_last_line, write_new_text, save_copy, combine_texts), 2),
    **dict.fromkeys((number_lines, answer_questions, exchange_texts), 3),
    _setting("show_line_numbers", "show line numbers", "show-line-numbers=true", "v", "Line Numbers"): 1,
    _setting("wrap_lines", "wrap long lines", "word-wrap=true", "d", "Word Wrap"): 1,
    _setting("show_toolbar", "show its toolbar", "toolbar-visible=true", "v", "Toolbar"): 1,
    _setting("indent_by_itself", "indent new lines by itself", "auto-indent=true", "d", "Auto Indent"): 1,
}
