"""Values of expressions."""

import math

from .nodes import Binary, Call, Name, Number, Unary


class EvaluationError(ArithmeticError):
    """An expression without a value."""


def mean(*values):
    """Return the mean of at least one value."""
    return sum(values) / len(values)


def clamp(value, low, high):
    """Return the value between two bounds that is nearest to a value."""
    return max(low, min(value, high))


FUNCTIONS = {
    "abs": (abs, 1, 1),
    "sqrt": (math.sqrt, 1, 1),
    "min": (min, 1, None),
    "max": (max, 1, None),
    "mean": (mean, 1, None),
    "clamp": (clamp, 3, 3),
    "if": (None, 3, 3),
}


def power(base, exponent):
    """Return a power; whole exponents of whole numbers stay whole."""
    if isinstance(exponent, int) and exponent < 0 and base == 0:
        raise EvaluationError("0 has no negative powers")
    if base < 0 and not float(exponent).is_integer():
        raise EvaluationError("a negative number has no broken powers")
    return base**exponent


def divide(left, right):
    """Return a quotient; whole where it comes out even."""
    if right == 0:
        raise EvaluationError("division by zero")
    if isinstance(left, int) and isinstance(right, int) and left % right == 0:
        return left // right
    return left / right


def remainder(left, right):
    """Return a remainder with the sign of the divisor."""
    if right == 0:
        raise EvaluationError("division by zero")
    return left - right * math.floor(left / right)


OPERATIONS = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": divide,
    "%": remainder,
    "^": power,
    "<": lambda left, right: int(left < right),
    ">": lambda left, right: int(left > right),
    "<=": lambda left, right: int(left <= right),
    ">=": lambda left, right: int(left >= right),
    "==": lambda left, right: int(left == right),
    "!=": lambda left, right: int(left != right),
}


def call(tree, values):
    """Return the value of a call; `if` evaluates the branch that is taken only."""
    if tree.function not in FUNCTIONS:
        raise EvaluationError(f"unknown function {tree.function!r}")
    function, fewest, most = FUNCTIONS[tree.function]
    count = len(tree.arguments)
    if count < fewest or (most is not None and count > most):
        raise EvaluationError(f"{tree.function} does not take {count} arguments")
    if tree.function == "if":
        condition, positive, negative = tree.arguments
        if evaluate(condition, values):
            return evaluate(positive, values)
        else:
            return evaluate(negative, values)
    arguments = [evaluate(argument, values) for argument in tree.arguments]
    try:
        return function(*arguments)
    except ValueError as error:
        raise EvaluationError(f"{tree.function}: {error}") from error


def evaluate(tree, values=None):
    """Return the value of a tree, with variables from a dictionary."""
    values = values or {}
    if isinstance(tree, Number):
        return tree.value
    if isinstance(tree, Name):
        if tree.name not in values:
            raise EvaluationError(f"no value for {tree.name!r}")
        return values[tree.name]
    if isinstance(tree, Unary):
        return -evaluate(tree.operand, values)
    if isinstance(tree, Call):
        return call(tree, values)
    return OPERATIONS[tree.operator](evaluate(tree.left, values), evaluate(tree.right, values))


def names(tree):
    """Return the variables of a tree in the order in which they first appear."""
    listed = [tree.name] if isinstance(tree, Name) else []
    for child in tree.children():
        for name in names(child):
            if name not in listed:
                listed.append(name)
    return listed


def is_constant(tree):
    """Return True if a tree has no variables."""
    return isinstance(tree, (Number, Unary, Binary, Call)) and not names(tree)
