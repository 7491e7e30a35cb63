"""Unified diffs of text files."""

from __future__ import annotations

import difflib
import re

from lmgym.errors import InstanceError

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@")
OLD, NEW = re.compile(r"^--- a/(.+)$", re.M), re.compile(r"^\+\+\+ b/(.+)$", re.M)


def unified(path: str, before: str, after: str) -> str:
    """Return the diff of one file in git's form."""
    lines = difflib.unified_diff(before.splitlines(True), after.splitlines(True), f"a/{path}", f"b/{path}")
    body = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return f"diff --git a/{path} b/{path}\n{body}" if body else ""


def reverse(patch: str) -> str:
    """Return the patch of one file that takes a patch back."""
    lines = []
    removed: list[str] = []
    for line in patch.splitlines(True):
        if line.startswith(("--- a/", "+++ b/", "diff --git")):
            lines.append(line)
        elif match := re.match(r"@@ -(\S+) \+(\S+) @@(.*)", line, re.S):
            lines += [*removed, f"@@ -{match[2]} +{match[1]} @@{match[3]}"]
            removed = []
        elif line.startswith("-"):
            removed.append("+" + line[1:])  # below the lines that take its place
        elif line.startswith("+"):
            lines.append("-" + line[1:])
        else:
            lines += [*removed, line]
            removed = []
    return "".join([*lines, *removed])


def applied(patch: str, files: dict[str, str]) -> dict[str, str]:
    """Return the files after a patch of one of them, whose context must fit exactly."""
    path = patched_path(patch)
    old = files[path].splitlines(True)
    new: list[str] = []
    position = 0
    for line in patch[patch.index("@@") :].splitlines(True):
        if match := HUNK.match(line):
            start = int(match[1]) - 1
            new += old[position:start]
            position = start
        elif line[0] == "+":
            new.append(line[1:])
        elif line[0] in " -":
            if position >= len(old) or old[position] != line[1:]:
                raise InstanceError(f"the patch of {path} does not fit at line {position + 1}")
            if line[0] == " ":
                new.append(line[1:])
            position += 1
    return {**files, path: "".join(new + old[position:])}


def patched_path(patch: str) -> str:
    """Return the path of the file that a patch changes."""
    if (match := NEW.search(patch)) is None:
        raise InstanceError(f"not a patch of one file: {patch[:60]!r}")
    return match[1]


def changed_lines(patch: str) -> list[str]:
    """Return the lines that a patch adds or removes, stripped, without blank ones."""
    lines = [line[1:].strip() for line in patch.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    return [line for line in lines if line]
