"""Gaussian elimination on lists of rows."""

from fractions import Fraction


def reduced(rows, limit=None):
    """Return the row-reduced form and its pivot columns; pivots are sought in the first `limit` columns."""
    rows = [[Fraction(cell) for cell in row] for row in rows]
    width = len(rows[0]) if limit is None else limit
    pivots = []
    for column in range(width):
        top = len(pivots)
        found = None
        for index in range(top, len(rows)):
            if rows[index][column] != 0:
                found = index
                break
        if found is None:
            continue
        rows[top], rows[found] = rows[found], rows[top]
        pivot = rows[top][column]
        rows[top] = [cell / pivot for cell in rows[top]]
        for index, row in enumerate(rows):
            if index != top and row[column] != 0:
                factor = row[column]
                rows[index] = [cell - factor * above for cell, above in zip(row, rows[top])]
        pivots.append(column)
        if len(pivots) == len(rows):
            break
    return rows, pivots


def determinant(rows):
    """Return the determinant: the product of the pivots, negative after an odd number of exchanges."""
    rows = [[Fraction(cell) for cell in row] for row in rows]
    size = len(rows)
    product = Fraction(1)
    for column in range(size):
        candidates = [index for index in range(column, size) if rows[index][column] != 0]
        if not candidates:
            return Fraction(0)
        chosen = candidates[0]
        if chosen != column:
            rows[column], rows[chosen] = rows[chosen], rows[column]
            product = -product
        pivot = rows[column][column]
        product *= pivot
        for index in range(column + 1, size):
            factor = rows[index][column] / pivot
            rows[index] = [cell - factor * above for cell, above in zip(rows[index], rows[column])]
    return product


def solution(rows, right):
    """Return a solution of the equations, free unknowns 0; None if they contradict each other."""
    width = len(rows[0])
    wide = [list(row) + [value] for row, value in zip(rows, right)]
    lines, pivots = reduced(wide, width)
    for line in lines[len(pivots) :]:
        if line[width] != 0:
            return None
    values = [Fraction(0)] * width
    for line, column in zip(lines, pivots):
        values[column] = line[width]
    return values


def null_space(rows):
    """Return one vector for each free unknown."""
    lines, pivots = reduced(rows)
    width = len(rows[0])
    vectors = []
    for free in range(width):
        if free in pivots:
            continue
        vector = [Fraction(0)] * width
        vector[free] = Fraction(1)
        for line, column in zip(lines, pivots):
            vector[column] = -line[free]
        vectors.append(vector)
    return vectors
