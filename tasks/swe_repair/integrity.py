"""Limits of a repair of a pure Python library: no ways to reach the tests, the log or the process.

Names that the repository uses itself are allowed. A library that opens files may therefore still open files.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from lmgym.tasks.swe_repair.repositories import Repository

PURE = {  # modules that a repair may import anew
    *("abc", "bisect", "collections", "copy", "dataclasses", "decimal", "enum", "fractions", "functools", "heapq"),
    *("itertools", "math", "numbers", "operator", "re", "statistics", "string", "textwrap", "types", "typing"),
}
NAMES = {  # builtins that reach beyond the library
    *("__builtins__", "__import__", "__loader__", "__spec__", "breakpoint", "compile", "delattr", "eval", "exec"),
    *("exit", "getattr", "globals", "input", "locals", "memoryview", "open", "print", "quit", "setattr", "vars"),
}
PLAIN = {
    "__init__",
    "__name__",
    "__class__",
    "__new__",
    "__eq__",
    "__lt__",
    "__le__",
    "__hash__",
    "__repr__",
    "__str__",
}


def violations(repository: Repository, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return what a patched source contains that neither the broken nor the good repository does."""
    allowed: set[str] = set()
    for files in (repository.files, before):
        for path, text in files.items():
            if path.startswith(f"{repository.source}/") and path.endswith(".py"):
                allowed |= set(_reaches(ast.parse(text), repository.source))
    problems = []
    for path, text in sorted(after.items()):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return [f"{path} does not parse: {type(error).__name__}"]
        problems += [f"{path} uses {each}" for each in _reaches(tree, repository.source) if each not in allowed]
    return problems


def _reaches(tree: ast.AST, own: str) -> Iterator[str]:
    """Yield the uses of names that reach beyond a pure library."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] not in {*PURE, own}:
                    yield f"import {alias.name}"
        elif isinstance(node, ast.ImportFrom) and not node.level:
            if (node.module or "").partition(".")[0] not in {*PURE, own}:
                yield f"import {node.module}"
        elif (
            isinstance(node, ast.Name)
            and node.id in NAMES
            or isinstance(node, ast.Name)
            and isinstance(node.ctx, ast.Load)
            and node.id in ("SystemExit", "KeyboardInterrupt")
        ):
            yield node.id
        elif isinstance(node, ast.Attribute) and node.attr.startswith("__") and node.attr not in PLAIN:
            yield f".{node.attr}"
        elif isinstance(node, ast.Attribute) and node.attr == "modules":
            yield ".modules"
