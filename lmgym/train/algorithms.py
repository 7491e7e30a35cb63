"""Algorithms by name: the files of baselines/ and baselines/recipes/, plug-ins, and any file by its path.

Nothing here imports an algorithm before it is loaded, so that listing them does not import torch.
"""

from __future__ import annotations

import ast
import sys
from dataclasses import fields
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from lmgym.errors import MissingExtra, RecipeError

PLUGINS = "lmgym.recipes"  # entry-point group; a value names a module with Args and recipe
FOLDERS = ("lmgym.baselines", "lmgym.baselines.recipes")
SETTINGS = frozenset({  # recorded in run.json beside the algorithm's own options
    *("task", "options", "policy", "seed", "algorithm", "dtype", "threads", "lora", "max_tokens", "tokens", "context"),
    *("concurrency", "evaluate_split", "train_instances", "lockstep"),
})  # fmt: skip


def algorithms() -> dict[str, str]:
    """Return the module of each algorithm by its name; a plug-in cannot replace a file of ours."""
    names = {point.name: point.value for point in entry_points(group=PLUGINS)}
    for folder in FOLDERS:
        modules = iter_modules(import_module(folder).__path__)
        names |= {each.name: f"{folder}.{each.name}" for each in modules if not each.ispkg}
    return dict(sorted(names.items()))


def summary(name: str) -> str:
    """Return the first line of an algorithm's docstring, without importing it."""
    spec = find_spec(algorithms()[name])
    if spec is None or spec.origin is None:
        raise RecipeError(f"the plug-in {name} names a module that does not exist: {algorithms()[name]}")
    docstring = ast.get_docstring(ast.parse(Path(spec.origin).read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0]


def check(name: str) -> None:
    """Raise RecipeError unless `name` is an algorithm or the path of an existing file."""
    if Path(name).suffix == ".py":
        if not Path(name).is_file():
            raise RecipeError(f"recipe file {name} does not exist")
    elif name not in algorithms():
        raise RecipeError(f"unknown algorithm {name!r}; choose {', '.join(algorithms())} or the path of a .py file")


def load(name: str) -> Any:
    """Import the module of an algorithm, which has Args and recipe; `name` may be the path of a .py file."""
    check(name)
    try:
        module = _from_file(Path(name)) if Path(name).suffix == ".py" else import_module(algorithms()[name])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "lmgym":
            raise
        raise MissingExtra(f"training needs {error.name}: pip install 'lmgym[train]'") from error
    if missing := [part for part in ("Args", "recipe") if not hasattr(module, part)]:
        raise RecipeError(f"{name} is not a recipe: it has no {missing[0]}")
    if taken := sorted(SETTINGS & {option.name for option in fields(module.Args)}):
        raise RecipeError(f"{name} has an option {taken[0]!r}, which is a setting of every run: rename it")
    return module


def _from_file(path: Path) -> Any:
    spec = spec_from_file_location(f"lmgym_recipe_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = module_from_spec(spec)  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
