"""Commands of a player who knows the bug, as a person would type them: read, change in place, run the tests."""

from __future__ import annotations

import re
import shlex
from difflib import SequenceMatcher

TESTS = "python3 -m pytest -q 2>&1 | tail -n 1"
DEFINITION = re.compile(r"\s*def (\w+)")
PIECE = re.compile(r"\w+|\s+|[^\w\s]")
MOST = 3  # lines that change
AROUND = 3  # lines that are shown behind the last one that changes


def commands(path: str, broken: str, good: str) -> list[str] | None:
    """Return the commands that repair a file; None where lines move or many change."""
    old, new = broken.splitlines(), good.splitlines()
    changed = [number for number, lines in enumerate(zip(old, new, strict=False)) if lines[0] != lines[1]]
    if len(old) != len(new) or len(changed) > MOST:
        return None
    edits = [f"sed -i {shlex.quote(substitution(number + 1, old[number], new[number]))} {path}" for number in changed]
    return [reading(path, old, changed), *edits, TESTS]


def reading(path: str, lines: list[str], changed: list[int]) -> str:
    """Return the command that shows the function around the first of the changed lines, counted from 0."""
    for number in range(changed[0], -1, -1):
        if match := DEFINITION.match(lines[number]):
            return f"grep -n -A {changed[-1] - number + AROUND} 'def {match[1]}(' {path}"
    return f"grep -n '' {path} | head -n {changed[-1] + 1 + AROUND}"


def substitution(number: int, old: str, new: str) -> str:
    """Return the command of sed that makes the line `number`, counted from 1, the `new` one."""
    before, after = PIECE.findall(old), PIECE.findall(new)
    spans = [span for span in SequenceMatcher(None, before, after, autojunk=False).get_opcodes() if span[0] != "equal"]
    start, kept = spans[0][1], len(before) - spans[-1][2]  # equal pieces before and after the change
    while start and (start + kept == len(before) or earlier(before, start, kept)):
        start -= 1
    kept -= start + kept == len(before)  # an insertion before all pieces
    texts = ["".join(pieces[start : len(pieces) - kept]) for pieces in (before, after)]
    return f"{number}s/{escaped(texts[0])}/{escaped(texts[1], replacement=True)}/"


def earlier(pieces: list[str], start: int, kept: int) -> bool:
    """Return True if the text of the pieces from `start` on, less the last `kept`, occurs before them in the line."""
    text = "".join(pieces[start : len(pieces) - kept])
    return "".join(pieces).find(text) < len("".join(pieces[:start]))


def escaped(text: str, *, replacement: bool = False) -> str:
    """Return a text as sed reads it in a pattern, or in a replacement."""
    return re.sub(r"[/\\&\n]" if replacement else r"[/\\.*^$\[\]]", r"\\\g<0>", text)
