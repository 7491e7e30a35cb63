"""The calculator of the retail and airline domains."""

from __future__ import annotations

import ast
import operator
from typing import Any

from lmgym.backends.user.tools import ToolError

ALLOWED = frozenset("0123456789+-*/(). ")
LONGEST = 1_000  # characters
OPERATORS: dict[type[Any], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: lambda base, exponent: float(base) ** float(exponent),  # floats stay small
}


def calculated(expression: str) -> str:
    """Return the value of an expression as tau2-bench writes it."""
    if not set(expression) <= ALLOWED or len(expression) > LONGEST:
        raise ToolError("Invalid characters in expression")
    try:
        return str(round(float(_value(ast.parse(expression.strip(), mode="eval").body)), 2))
    except (SyntaxError, TypeError, ValueError, ArithmeticError, RecursionError, MemoryError) as error:
        raise ToolError(f"cannot calculate {expression!r}: {error}") from error


def _value(node: ast.AST) -> float:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        value = _value(node.operand)
        return -value if isinstance(node.op, ast.USub) else value
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        result: float = OPERATORS[type(node.op)](_value(node.left), _value(node.right))
        return result
    raise ValueError("no arithmetic")
