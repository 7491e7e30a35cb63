"""Matrices with names."""

from .matrix import Matrix


def identity(size):
    """Return the matrix that changes nothing."""
    return Matrix([[int(row == column) for column in range(size)] for row in range(size)])


def vandermonde(points, size):
    """Return the matrix of powers 0 to size - 1 of each point."""
    return Matrix([[point**power for power in range(size)] for point in points])


def pascal(size):
    """Return the first rows of Pascal's triangle, filled up with zeros."""
    rows = [[1] + [0] * (size - 1)]
    for _ in range(size - 1):
        last = rows[-1]
        rows.append([1] + [last[index - 1] + last[index] for index in range(1, size)])
    return Matrix(rows)


def magic_square(size):
    """Return a magic square of odd size by the Siamese method."""
    if size % 2 == 0 or size < 1:
        raise ValueError(f"size must be odd, not {size}")
    rows = [[0] * size for _ in range(size)]
    row, column = 0, size // 2
    for number in range(1, size * size + 1):
        rows[row][column] = number
        up, right = (row - 1) % size, (column + 1) % size
        if rows[up][right]:
            row = (row + 1) % size
        else:
            row, column = up, right
    return Matrix(rows)


def fit_polynomial(points):
    """Return the coefficients, lowest first, of the polynomial through points with different x."""
    xs = [x for x, _ in points]
    if len(set(xs)) < len(xs):
        raise ValueError("two points have the same x")
    return vandermonde(xs, len(xs)).solve([y for _, y in points])


def evaluate(coefficients, x):
    """Return the value of a polynomial (Horner's rule)."""
    value = 0
    for coefficient in reversed(coefficients):
        value = value * x + coefficient
    return value
