"""Families of bugs in statements and classes."""

from __future__ import annotations

import random
from collections.abc import Callable

import libcst as cst

LIKELIHOOD = 0.25  # of a change, for each node
METHOD_LIKELIHOOD = 0.15  # of the removal of a method
Test = Callable[[cst.CSTNode], bool]
Removed = cst.RemovalSentinel


def _is_assignment(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(
        node.body[0], cst.Assign | cst.AugAssign | cst.AnnAssign
    )


def _is_loop(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.For | cst.While)


def _is_condition(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.If)


def _is_wrapper(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.With | cst.Try)


class _Remover(cst.CSTTransformer):
    """Removes the statements of a kind, each with the likelihood of the family."""

    def __init__(self, chance: random.Random, kind: Test) -> None:
        super().__init__()
        self.chance, self.kind = chance, kind

    def on_leave(  # type: ignore[override]  # libcst wants the type of the node back
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | Removed:
        if isinstance(updated_node, cst.IndentedBlock) and not updated_node.body:
            return updated_node.with_changes(body=[cst.parse_statement("pass")])
        hit = self.kind(original_node) and self.chance.random() < LIKELIHOOD
        return cst.RemoveFromParent() if hit else updated_node


class _Invert(cst.CSTTransformer):
    """Exchanges the bodies of if and else."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__()
        self.chance = chance

    def leave_If(self, original_node: cst.If, updated_node: cst.If) -> cst.If:
        other = updated_node.orelse
        if not isinstance(other, cst.Else) or self.chance.random() >= LIKELIHOOD:
            return updated_node
        return updated_node.with_changes(body=other.body, orelse=other.with_changes(body=updated_node.body))


def invert_if(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Exchange the bodies of if and else where there is no elif."""
    return visited(node, _Invert(chance))


def shuffle_statements(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Shuffle the top-level statements of a function; its docstring stays in front."""
    assert isinstance(node, cst.FunctionDef)
    body = list(node.body.body)
    if chance.random() >= LIKELIHOOD or not isinstance(node.body, cst.IndentedBlock):
        return node
    docstring, rest = (body[:1], body[1:]) if node.get_docstring() is not None else ([], body)
    chance.shuffle(rest)
    return node.with_changes(body=node.body.with_changes(body=[*docstring, *rest]))


def remove_assignments(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Remove assignments."""
    return visited(node, _Remover(chance, _is_assignment))


def remove_conditions(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Remove if statements with all that is in them."""
    return visited(node, _Remover(chance, _is_condition))


def remove_loops(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Remove for and while loops with all that is in them."""
    return visited(node, _Remover(chance, _is_loop))


def remove_wrappers(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Remove with and try statements with all that is in them."""
    return visited(node, _Remover(chance, _is_wrapper))


def remove_bases(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Remove base classes."""
    assert isinstance(node, cst.ClassDef)
    kept = [base for base in node.bases if chance.random() >= LIKELIHOOD]
    if kept:
        kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    if len(kept) == len(node.bases):
        return node
    if kept or node.keywords:
        return node.with_changes(bases=kept)
    return node.with_changes(bases=[], lpar=cst.MaybeSentinel.DEFAULT, rpar=cst.MaybeSentinel.DEFAULT)


def remove_methods(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Remove methods, and the statements of the class that refer to them through `self`."""
    assert isinstance(node, cst.ClassDef)
    gone = {each.name.value for each in _methods(node) if chance.random() < METHOD_LIKELIHOOD}
    if not gone:
        return node
    body = [each for each in node.body.body if not (isinstance(each, cst.FunctionDef) and each.name.value in gone)]
    left = node.with_changes(body=node.body.with_changes(body=body or [cst.parse_statement("pass")]))
    return visited(left, _Unreferred(gone))


class _Unreferred(cst.CSTTransformer):
    """Removes plain statements that call a removed method of `self`."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self.names = names

    def on_leave(  # type: ignore[override]  # libcst wants the type of the node back
        self, original_node: cst.CSTNode, updated_node: cst.CSTNode
    ) -> cst.CSTNode | Removed:
        if isinstance(updated_node, cst.IndentedBlock) and not updated_node.body:
            return updated_node.with_changes(body=[cst.parse_statement("pass")])
        refers = isinstance(updated_node, cst.SimpleStatementLine) and contains(updated_node, self._refers)
        return cst.RemoveFromParent() if refers else updated_node

    def _refers(self, node: cst.CSTNode) -> bool:
        return (
            isinstance(node, cst.Attribute)
            and isinstance(node.value, cst.Name)
            and node.value.value == "self"
            and node.attr.value in self.names
        )


def shuffle_methods(chance: random.Random, node: cst.CSTNode) -> cst.CSTNode:
    """Change the order of the methods; what stands between them stays in its place."""
    assert isinstance(node, cst.ClassDef)
    if chance.random() >= LIKELIHOOD:
        return node
    order = _methods(node)
    chance.shuffle(order)
    following = iter(order)
    body = [next(following) if isinstance(each, cst.FunctionDef) else each for each in node.body.body]
    return node.with_changes(body=node.body.with_changes(body=body))


def _methods(node: cst.ClassDef) -> list[cst.FunctionDef]:
    return [each for each in node.body.body if isinstance(each, cst.FunctionDef)]


def visited(node: cst.CSTNode, transformer: cst.CSTTransformer) -> cst.CSTNode:
    """Return a node rewritten by a transformer."""
    changed = node.visit(transformer)
    return changed if isinstance(changed, cst.CSTNode) else node


def contains(node: cst.CSTNode, test: Test) -> bool:
    """Return True if a node, or one below it, passes a test."""
    return test(node) or any(contains(child, test) for child in node.children)


def in_function(test: Test) -> Test:
    """Return a test for functions that contain a node that passes another test."""
    return lambda node: isinstance(node, cst.FunctionDef) and contains(node, test)


has_plain_else = in_function(lambda node: isinstance(node, cst.If) and isinstance(node.orelse, cst.Else))
has_loop = in_function(_is_loop)
has_assignment = in_function(_is_assignment)
has_condition = in_function(_is_condition)
has_wrapper = in_function(_is_wrapper)


def has_base(node: cst.CSTNode) -> bool:
    """Return True for a class with a base class."""
    return isinstance(node, cst.ClassDef) and bool(node.bases)


def has_methods(node: cst.CSTNode) -> bool:
    """Return True for a class with at least two methods."""
    return isinstance(node, cst.ClassDef) and len(_methods(node)) > 1
