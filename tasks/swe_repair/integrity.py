"""Limits of a repair of a pure Python library: no ways to reach the tests, the log or the process.

Names that the repository uses itself are allowed. A library that opens files may therefore still open files. No list of
names can be complete in Python, where objects lead to their frames, modules and classes: it holds off what is known,
and `observing` does not depend on it.
"""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from types import ModuleType

from lmgym.tasks.swe_repair.repositories import Repository

PURE = {  # modules that a repair may import anew
    *("abc", "bisect", "collections", "copy", "dataclasses", "decimal", "enum", "fractions", "functools", "heapq"),
    *("itertools", "math", "numbers", "operator", "re", "statistics", "string", "textwrap", "types", "typing"),
}
HARMLESS = {"collections.abc", "keyword"}  # modules that modules of PURE hold, beside those of PURE
INTROSPECTION = re.compile(r"(gi|cr|ag|tb|f|co)_[a-z]+")  # of generators, tracebacks, frames and code: f_builtins
FRAMES = {"f_back", "f_builtins", "f_code", "f_globals", "f_locals", "f_trace"}
BY_TEXT = {  # what takes attributes or evaluates code by a string, or makes code
    *("attrgetter", "methodcaller", "Formatter", "get_type_hints", "get_annotations", "ForwardRef"),
    *("_eval_type", "evaluate_forward_ref", "make_dataclass", "CodeType", "FunctionType"),
}
WORDS = re.compile(r"(?:^|(?<=[.\[]))[A-Za-z_]\w*")  # of a text that may name attributes, as "{0.gi_frame}" does
NAMES = {  # builtins that reach beyond the library
    *("__builtins__", "__import__", "__loader__", "__match_args__", "__spec__", "breakpoint", "compile", "delattr"),
    *("eval", "exec", "exit", "getattr", "globals", "input", "locals", "memoryview", "open", "print", "quit"),
    *("setattr", "vars"),
}
PLAIN = {
    *("__init__", "__name__", "__class__", "__new__", "__eq__", "__lt__", "__le__", "__hash__", "__repr__", "__str__"),
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
            if (encoding := _encoding(text)) not in ("utf-8", "utf-8-sig"):
                return [f"{path} declares the encoding {encoding}"]
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            return [f"{path} does not parse: {type(error).__name__}"]
        problems += [f"{path} uses {each}" for each in _reaches(tree, repository.source) if each not in allowed]
    return problems


def _encoding(text: str) -> str:
    """Return the encoding in which Python reads a file; the guard must not read another text than Python does."""
    return tokenize.detect_encoding(io.BytesIO(text.encode("utf-8", "surrogatepass")).readline)[0]


@cache
def _modules() -> frozenset[str]:
    """Return the names by which pure modules hold modules that are not, such as `dataclasses.sys`."""
    names: set[str] = set()
    for pure in PURE:
        for name, value in vars(importlib.import_module(pure)).items():
            if isinstance(value, ModuleType) and value.__name__ not in PURE | HARMLESS:
                names.add(name)
    return frozenset(names)


def _refused(attribute: str) -> bool:
    """Return True for an attribute that leads out of a pure library."""
    if attribute.startswith("__"):
        return attribute not in PLAIN
    if attribute.startswith("f_"):
        return attribute in FRAMES
    return (
        attribute in BY_TEXT or attribute in {"modules", *_modules()} or INTROSPECTION.fullmatch(attribute) is not None
    )


def _reaches(tree: ast.AST, own: str) -> Iterator[str]:
    """Yield the uses of names that reach beyond a pure library."""
    documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.partition(".")[0] not in {*PURE, own}:
                    yield f"import {alias.name}"
                yield from (f".{name}" for name in alias.name.split(".")[1:] if _refused(name))
        elif isinstance(node, ast.ImportFrom):
            if not node.level and (node.module or "").partition(".")[0] not in {*PURE, own}:
                yield f"import {node.module}"
            yield from (f".{alias.name}" for alias in node.names if _refused(alias.name))
        elif isinstance(node, ast.Name):
            stops = isinstance(node.ctx, ast.Load) and node.id in ("SystemExit", "KeyboardInterrupt")
            if node.id in NAMES or node.id in BY_TEXT or stops:
                yield node.id
        elif isinstance(node, ast.Attribute) and _refused(node.attr):
            yield f".{node.attr}"
        elif isinstance(node, ast.MatchClass):
            yield from (f".{name}" for name in node.kwd_attrs if _refused(name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documentation:
            for match in WORDS.finditer(node.value):
                if _refused(match[0]) and (match.start() or match[0].startswith("__") or "_" in match[0]):
                    yield f"{match[0]!r}"
