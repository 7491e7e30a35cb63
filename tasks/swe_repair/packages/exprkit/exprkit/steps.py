"""Rewriting in small steps that can be explained."""

from .algebra import ONE, ZERO, rebuilt
from .evaluator import is_constant
from .nodes import Binary, Number, Unary


class RuleBook:
    """Rules are the methods whose names begin with "rule_", tried in the order in which they are defined."""

    def rules(self):
        """Return the names of the rules without their prefix."""
        return [name[len("rule_") :] for name in vars(type(self)) if name.startswith("rule_")]

    def step(self, tree):
        """Return (name of the first rule that changes the tree at its top, changed tree); (None, tree) if none does."""
        for name in self.rules():
            changed = getattr(self, "rule_" + name)(tree)
            if changed is not None and changed != tree:
                return name, changed
        return None, tree

    def rewrite(self, tree, most=100):
        """Return (tree, names of the rules used) after rewriting from the leaves up, at most `most` steps a node."""
        log = []

        def change(node):
            node = rebuilt(node, change)
            for _ in range(most):
                name, after = self.step(node)
                if name is None:
                    break
                log.append(name)
                node = rebuilt(after, change)
            return node

        return change(tree), log


class Expansion(RuleBook):
    """Multiply out: products of sums become sums of products, small powers become products."""

    def rule_minus(self, tree):
        """Write a difference as a sum."""
        if isinstance(tree, Binary) and tree.operator == "-" and not is_constant(tree):
            return Binary("+", tree.left, Unary("-", tree.right))
        return None

    def rule_square(self, tree):
        """Write a power with a small whole exponent as a product."""
        if isinstance(tree, Binary) and tree.operator == "^" and isinstance(tree.right, Number):
            exponent = tree.right.value
            if isinstance(exponent, int) and 2 <= exponent <= 4 and not is_constant(tree.left):
                return Binary("*", tree.left, Binary("^", tree.left, Number(exponent - 1)))
        return None

    def rule_distribute(self, tree):
        """Multiply a sum term by term."""
        if isinstance(tree, Binary) and tree.operator == "*":
            left, right = tree.left, tree.right
            if isinstance(left, Binary) and left.operator == "+":
                return Binary("+", Binary("*", left.left, right), Binary("*", left.right, right))
            if isinstance(right, Binary) and right.operator == "+":
                return Binary("+", Binary("*", left, right.left), Binary("*", left, right.right))
        return None

    def rule_one(self, tree):
        """Drop factors and exponents of 1."""
        if isinstance(tree, Binary) and tree.operator in ("*", "^") and tree.right == ONE:
            return tree.left
        if isinstance(tree, Binary) and tree.operator == "*" and tree.left == ONE:
            return tree.right
        return None

    def rule_sign(self, tree):
        """Move signs out of products."""
        if isinstance(tree, Binary) and tree.operator == "*":
            for part, other in ((tree.left, tree.right), (tree.right, tree.left)):
                if isinstance(part, Unary):
                    return Unary("-", Binary("*", part.operand, other))
        return None

    def rule_zero(self, tree):
        """Drop products with 0."""
        if isinstance(tree, Binary) and tree.operator == "*" and ZERO in (tree.left, tree.right):
            return ZERO
        return None
