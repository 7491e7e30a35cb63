"""Hidden tests: a third of a repository's tests, which the judge runs and the agent never sees."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from hashlib import blake2b

SHARE = 3  # one test in so many is hidden, by a digest of its path and name


def hidden(path: str, name: str) -> bool:
    """Return True if a test is hidden; `name` is a function's, or "Class::method"."""
    return blake2b(f"{path}::{name}".encode(), digest_size=2).digest()[0] % SHARE == 0


def visible(files: Mapping[str, str]) -> dict[str, str]:
    """Return a repository's files, with the hidden tests taken out of its test files."""
    return {path: _without(path, text) if path.startswith("tests/") else text for path, text in files.items()}


def _without(path: str, text: str) -> str:
    if not path.endswith(".py"):
        return text
    lines = text.splitlines(True)
    tree = ast.parse(text)
    for body, prefix in _bodies(tree):
        gone = [node for node in _tests(body) if hidden(path, f"{prefix}{node.name}")]
        for node in gone:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)]) - 1
            last = node.end_lineno or node.lineno
            while last < len(lines) and not lines[last].strip():
                last += 1
            rest = f"{' ' * node.col_offset}pass\n" if len(gone) == len(body) and node is gone[0] else ""
            lines[first:last] = [rest] + [""] * (last - first - 1)
    return "".join(lines)


def _bodies(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], str]]:
    """Yield the statements of a module and of its classes, with what goes before the names of their tests."""
    yield tree.body, ""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.body, f"{node.name}::"


def _tests(body: list[ast.stmt]) -> Iterator[ast.FunctionDef]:
    """Yield the tests among statements."""
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node
