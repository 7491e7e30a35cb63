"""The oracles know nothing of what they judge: they import numpy and the standard library alone."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ORACLES = sorted(HERE.glob("oracles*.py"))
KNOWN = {"numpy", *sys.stdlib_module_names}
OWN = {f"tests.{path.stem}" for path in ORACLES}  # they may stand on each other
LOADERS = {"import_module", "__import__", "exec", "eval", "run_module", "run_path"}


def imported(tree: ast.AST) -> set[str]:
    """All modules that a file names in imports, wherever these stand."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            name = "." * node.level + (node.module or "")
            found |= {f"{name}.{alias.name}" for alias in node.names} if name == "tests" else {name}
    return found


def foreign(source: str) -> set[str]:
    """Return the imports of a file beyond numpy, the standard library and other oracles."""
    tree = ast.parse(source)
    names = {name for name in imported(tree) if name not in OWN and name.partition(".")[0] not in KNOWN}
    called = {getattr(node.func, "attr", getattr(node.func, "id", "")) for node in ast.walk(tree)
              if isinstance(node, ast.Call)}  # fmt: skip
    return names | (called & LOADERS)


@pytest.mark.parametrize("path", ORACLES, ids=lambda path: path.name)
def test_an_oracle_imports_numpy_only(path):
    assert foreign(path.read_text()) == set()


def test_there_are_oracles():
    assert {"oracles.py", "oracles_values.py"} <= {path.name for path in ORACLES}


@pytest.mark.parametrize(
    "line",
    ["import torch", "from lmgym.train import math", "from .train import toys", "def f():\n    import lmgym.types",
     "from tests import batches", "importlib.import_module('lmgym')"],
)  # fmt: skip
def test_anything_else_is_found(line):
    assert foreign(line)
