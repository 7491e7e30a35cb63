"""Trees to trees."""

from .evaluator import EvaluationError, evaluate, is_constant
from .nodes import Binary, Call, Name, Number, Unary
from .parser import PRECEDENCE, SIGN

ZERO, ONE = Number(0), Number(1)


def rebuilt(tree, change):
    """Return a tree whose children went through `change`."""
    if isinstance(tree, Unary):
        return Unary(tree.operator, change(tree.operand))
    if isinstance(tree, Binary):
        return Binary(tree.operator, change(tree.left), change(tree.right))
    if isinstance(tree, Call):
        return Call(tree.function, [change(argument) for argument in tree.arguments])
    return tree


def substitute(tree, replacements):
    """Return a tree with variables replaced by trees."""
    if isinstance(tree, Name):
        return replacements.get(tree.name, tree)
    return rebuilt(tree, lambda child: substitute(child, replacements))


def simplify(tree):
    """Return a smaller tree with the same value: constants are folded, neutral elements are dropped."""
    tree = rebuilt(tree, simplify)
    if is_constant(tree):
        try:
            value = evaluate(tree)
        except EvaluationError:
            return tree
        return Number(value) if value >= 0 else Unary("-", Number(-value))
    if isinstance(tree, Unary) and isinstance(tree.operand, Unary):
        return tree.operand.operand
    if not isinstance(tree, Binary):
        return tree
    operator, left, right = tree.operator, tree.left, tree.right
    if operator == "+":
        if left == ZERO or right == ZERO:
            return right if left == ZERO else left
        if left == right:
            return simplify(Binary("*", Number(2), left))
    if operator == "-":
        if right == ZERO:
            return left
        if left == right:
            return ZERO
    if operator == "*":
        if left == ZERO or right == ZERO:
            return ZERO
        if left == ONE or right == ONE:
            return right if left == ONE else left
        if (
            isinstance(left, Number)
            and isinstance(right, Binary)
            and right.operator == "*"
            and isinstance(right.left, Number)
        ):
            return simplify(Binary("*", Number(left.value * right.left.value), right.right))
        if isinstance(right, Number):
            return simplify(Binary("*", right, left))
    if operator == "/" and right == ONE:
        return left
    if operator == "^" and right == ONE:
        return left
    if operator == "^" and right == ZERO:
        return ONE
    return tree


def differentiate(tree, name):
    """Return the derivative with respect to a variable; exponents must be constant."""
    if isinstance(tree, Number):
        return ZERO
    if isinstance(tree, Name):
        return ONE if tree.name == name else ZERO
    if isinstance(tree, Unary):
        return Unary("-", differentiate(tree.operand, name))
    if isinstance(tree, Call):
        if tree.function != "sqrt":
            raise EvaluationError(f"no derivative of {tree.function!r}")
        (inside,) = tree.arguments
        return Binary("/", differentiate(inside, name), Binary("*", Number(2), tree))
    left, right = tree.left, tree.right
    if tree.operator in ("+", "-"):
        return Binary(tree.operator, differentiate(left, name), differentiate(right, name))
    if tree.operator == "*":
        first = Binary("*", differentiate(left, name), right)
        second = Binary("*", left, differentiate(right, name))
        return Binary("+", first, second)
    if tree.operator == "/":
        upper = Binary(
            "-", Binary("*", differentiate(left, name), right), Binary("*", left, differentiate(right, name))
        )
        return Binary("/", upper, Binary("^", right, Number(2)))
    if tree.operator == "^" and is_constant(right):
        lowered = Binary("^", left, simplify(Binary("-", right, ONE)))
        return Binary("*", Binary("*", right, lowered), differentiate(left, name))
    raise EvaluationError(f"no derivative of {tree.operator!r}")


def strength(tree):
    """Return how tightly the outermost operator of a tree binds; numbers, names and calls most."""
    if isinstance(tree, Binary):
        return PRECEDENCE[tree.operator]
    return SIGN if isinstance(tree, Unary) else 9


def show(tree):
    """Return a tree as text with as few parentheses as possible."""
    if isinstance(tree, Number):
        return str(tree.value)
    if isinstance(tree, Name):
        return tree.name
    if isinstance(tree, Call):
        return f"{tree.function}({', '.join(show(argument) for argument in tree.arguments)})"
    if isinstance(tree, Unary):
        inside = show(tree.operand)
        return f"-({inside})" if strength(tree.operand) < SIGN else f"-{inside}"
    own = strength(tree)
    left, right = show(tree.left), show(tree.right)
    tight_left = own + 1 if tree.operator == "^" else own
    tight_right = own if tree.operator in ("^", "+", "*") else own + 1
    if strength(tree.left) < tight_left:
        left = f"({left})"
    if strength(tree.right) < tight_right:
        right = f"({right})"
    blank = "" if tree.operator == "^" else " "
    return f"{left}{blank}{tree.operator}{blank}{right}"
