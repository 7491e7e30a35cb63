"""Bugs by the procedural families of SWE-smith (arXiv 2504.21798): rewrites of one function or class of a source file.

A family is tried on a definition up to `TRIES` times, until the code changes. Each rewrite draws, node by node, with
the family's likelihood, so that a bug may touch several nodes.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import libcst as cst

from lmgym.tasks.swe_repair import bug_blocks as blocks
from lmgym.tasks.swe_repair import bug_operators as operators

TRIES = 5
SIMPLEST = 3  # complexity of a definition that gets a bug, at least
SHUFFLED = 10  # complexity of a function whose statements are shuffled, at most

Definition = cst.FunctionDef | cst.ClassDef
BRANCHES = (ast.If, ast.For, ast.While, ast.ExceptHandler, ast.With, ast.IfExp, ast.comprehension, ast.Assert)


@dataclass(frozen=True)
class Family:
    """One way to break code."""

    name: str
    level: str  # of the repair: "easy", "medium" or "hard"
    rewrite: Callable[[random.Random, Definition], cst.CSTNode]
    applies: Callable[[Definition], bool]
    most: int = 1_000_000  # complexity of a definition


FAMILIES = (
    Family("op_change", "easy", operators.change, operators.has_binary),
    Family("op_change_const", "easy", operators.change_constant, operators.has_constant),
    Family("op_swap", "easy", operators.swap, operators.has_operands),
    Family("op_break_chains", "easy", operators.break_chain, operators.has_chain),
    Family("ctrl_invert_if", "medium", blocks.invert_if, blocks.has_plain_else),
    Family("ctrl_shuffle", "medium", blocks.shuffle_statements, blocks.has_loop, SHUFFLED),
    Family("remove_assign", "medium", blocks.remove_assignments, blocks.has_assignment),
    Family("remove_cond", "medium", blocks.remove_conditions, blocks.has_condition),
    Family("remove_loop", "medium", blocks.remove_loops, blocks.has_loop),
    Family("remove_wrapper", "medium", blocks.remove_wrappers, blocks.has_wrapper),
    Family("class_rm_base", "hard", blocks.remove_bases, blocks.has_base),
    Family("class_rm_funcs", "hard", blocks.remove_methods, blocks.has_methods),
    Family("class_shuffle_funcs", "hard", blocks.shuffle_methods, blocks.has_methods),
)
BY_NAME = {family.name: family for family in FAMILIES}


@lru_cache(maxsize=256)
def _parsed(code: str) -> tuple[cst.Module, tuple[tuple[str, Definition, int], ...]]:
    """Return a module with its definitions: qualified names, nodes and complexities, in the order of the file."""
    module = cst.parse_module(code)
    return module, tuple((name, node, complexity(node)) for name, node in _within(module, ""))


def complexity(definition: Definition) -> int:
    """Return McCabe's number, comprehensions and boolean operands counted; of a class, of all its methods."""
    tree = ast.parse(cst.Module([definition]).code)
    branches = sum(isinstance(node, BRANCHES) for node in ast.walk(tree))
    operands = sum(len(node.values) - 1 for node in ast.walk(tree) if isinstance(node, ast.BoolOp))
    return 1 + branches + operands


def _within(node: cst.CSTNode, prefix: str) -> Iterator[tuple[str, Definition]]:
    for child in node.children:
        if isinstance(child, cst.FunctionDef | cst.ClassDef):
            name = f"{prefix}{child.name.value}"
            yield name, child
            if isinstance(child, cst.ClassDef):
                yield from _within(child.body, f"{name}.")
        elif isinstance(child, cst.BaseCompoundStatement | cst.BaseSuite):
            yield from _within(child, prefix)


def candidates(code: str, family: Family) -> list[str]:
    """Return the qualified names of the definitions of a file that a family applies to."""
    return [
        name
        for name, definition, size in _parsed(code)[1]
        if SIMPLEST <= size <= family.most and family.applies(definition)
    ]


def broken(code: str, name: str, family: Family, seed: str) -> str | None:
    """Return a file with a bug in the definition `name`; None if no try changes the code."""
    module, definitions = _parsed(code)
    target = next(definition for qualified, definition, _ in definitions if qualified == name)
    chance = random.Random(seed)
    for _ in range(TRIES):
        rewritten = module.deep_replace(target, family.rewrite(chance, target))
        assert isinstance(rewritten, cst.Module)
        changed = rewritten.code
        if changed != code and _compiles(changed):
            return changed
    return None


def _compiles(code: str) -> bool:
    try:
        compile(code, "bug", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True
