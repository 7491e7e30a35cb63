"""Hidden tests: a third of a repository's tests, which the judge runs and the agent never sees."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from hashlib import blake2b

SHARE = 3  # one test in so many is hidden, by a digest of its path and name


def hidden(path: str, name: str) -> bool:
    """Return True if a test function is hidden."""
    return blake2b(f"{path}::{name}".encode(), digest_size=2).digest()[0] % SHARE == 0


def visible(files: Mapping[str, str]) -> dict[str, str]:
    """Return a repository's files, with the hidden test functions taken out of its test files."""
    return {path: _without(path, text) if path.startswith("tests/") else text for path, text in files.items()}


def _without(path: str, text: str) -> str:
    if not path.endswith(".py"):
        return text
    lines = text.splitlines(True)
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    for node in reversed(functions):
        if node.name.startswith("test_") and hidden(path, node.name):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            last = node.end_lineno or node.lineno
            while last < len(lines) and not lines[last].strip():
                last += 1
            del lines[first:last]
    return "".join(lines)
