"""Families of bugs in operators and their operands."""

from __future__ import annotations

import random
from collections.abc import Callable

import libcst as cst

from lmgym.tasks.swe_repair.bug_blocks import in_function, visited

LIKELIHOOD = 0.4  # of a change, for each node
KINDS: tuple[tuple[type[cst.BaseBinaryOp], ...], ...] = (
    (cst.Add, cst.Subtract),
    (cst.Multiply, cst.Divide, cst.FloorDivide, cst.Modulo),
    (cst.BitAnd, cst.BitOr, cst.BitXor),
    (cst.LeftShift, cst.RightShift),
)
Change = Callable[[cst.BinaryOperation], cst.BaseExpression]


class _Binary(cst.CSTTransformer):
    """Applies a change to binary operations, each with the likelihood of the family."""

    def __init__(self, chance: random.Random, change: Change) -> None:
        super().__init__()
        self.chance, self.change = chance, change

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        return self.change(updated_node) if self.chance.random() < LIKELIHOOD else updated_node


class _Swap(cst.CSTTransformer):
    """Exchanges the operands of binary and boolean operations."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance

    def leave_BinaryOperation(
        self, original_node: cst.BinaryOperation, updated_node: cst.BinaryOperation
    ) -> cst.BaseExpression:
        return _swapped(updated_node) if self.chance.random() < LIKELIHOOD else updated_node

    def leave_BooleanOperation(
        self, original_node: cst.BooleanOperation, updated_node: cst.BooleanOperation
    ) -> cst.BaseExpression:
        return _swapped(updated_node) if self.chance.random() < LIKELIHOOD else updated_node


def _swapped(node: cst.BinaryOperation | cst.BooleanOperation) -> cst.BaseExpression:
    return node.with_changes(left=_grouped(node.right), right=_grouped(node.left))


def _grouped(node: cst.BaseExpression) -> cst.BaseExpression:
    """Return an operand in parentheses where another place might tear it apart."""
    loose = isinstance(
        node, cst.BinaryOperation | cst.BooleanOperation | cst.Comparison | cst.IfExp | cst.UnaryOperation
    )
    if not loose or node.lpar:
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


def change(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Exchange operators for others of their kind, possibly the same ones."""

    def other(operation: cst.BinaryOperation) -> cst.BaseExpression:
        for kind in KINDS:
            if isinstance(operation.operator, kind):
                return operation.with_changes(operator=chance.choice(kind)())
        return operation

    return visited(node, _Binary(chance, other))


def change_constant(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Add 1 to integer operands of binary operations, or subtract it."""

    def moved(operand: cst.BaseExpression) -> cst.BaseExpression:
        if not isinstance(operand, cst.Integer):
            return operand
        value = operand.evaluated_value + chance.choice((-1, 1))
        return cst.Integer(str(value)) if value >= 0 else cst.parse_expression(f"({value})")

    def change_operands(operation: cst.BinaryOperation) -> cst.BaseExpression:
        return operation.with_changes(left=moved(operation.left), right=moved(operation.right))

    return visited(node, _Binary(chance, change_operands))


def break_chain(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Drop one operand of chains such as a + b + c."""

    def shortened(operation: cst.BinaryOperation) -> cst.BaseExpression:
        if isinstance(operation.left, cst.BinaryOperation):
            inner = operation.left
            return chance.choice((inner, operation.with_changes(left=_grouped(inner.left))))
        if isinstance(operation.right, cst.BinaryOperation):
            inner = operation.right
            return chance.choice((inner, operation.with_changes(right=_grouped(inner.right))))
        return operation

    return visited(node, _Binary(chance, shortened))


def swap(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Exchange the operands of binary and boolean operations."""
    return visited(node, _Swap(chance))


def _is_chain(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BinaryOperation) and (
        isinstance(node.left, cst.BinaryOperation) or isinstance(node.right, cst.BinaryOperation)
    )


def _has_integer(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.BinaryOperation) and (
        isinstance(node.left, cst.Integer) or isinstance(node.right, cst.Integer)
    )


has_binary = in_function(lambda node: isinstance(node, cst.BinaryOperation))
has_operands = in_function(lambda node: isinstance(node, cst.BinaryOperation | cst.BooleanOperation))
has_constant = in_function(_has_integer)
has_chain = in_function(_is_chain)
