"""Matrices of fractions."""

from fractions import Fraction

from . import elimination


class ShapeError(ValueError):
    """Operands whose shapes do not fit."""


class Matrix:
    """A rectangle of fractions. Matrices are never changed once made."""

    def __init__(self, rows):
        self.rows = [[Fraction(cell) for cell in row] for row in rows]
        if not self.rows or len({len(row) for row in self.rows}) != 1 or not self.rows[0]:
            raise ShapeError("a matrix has at least one row, and rows of one length")

    @property
    def shape(self):
        """Numbers of rows and columns."""
        return len(self.rows), len(self.rows[0])

    @property
    def square(self):
        """True if there are as many rows as columns."""
        return self.shape[0] == self.shape[1]

    def __getitem__(self, place):
        row, column = place
        return self.rows[row][column]

    def __eq__(self, other):
        return isinstance(other, Matrix) and self.rows == other.rows

    def __add__(self, other):
        if self.shape != other.shape:
            raise ShapeError(f"cannot add {self.shape} and {other.shape}")
        return Matrix([[a + b for a, b in zip(mine, theirs)] for mine, theirs in zip(self.rows, other.rows)])

    def __sub__(self, other):
        return self + other * -1

    def __mul__(self, factor):
        return Matrix([[cell * factor for cell in row] for row in self.rows])

    def __matmul__(self, other):
        if self.shape[1] != other.shape[0]:
            raise ShapeError(f"cannot multiply {self.shape} by {other.shape}")
        columns = other.transposed().rows
        return Matrix([[sum(a * b for a, b in zip(row, column)) for column in columns] for row in self.rows])

    def __pow__(self, power):
        self._must_be_square()
        if power < 0:
            return self.inverse() ** -power
        size = self.shape[0]
        result = Matrix([[int(row == column) for column in range(size)] for row in range(size)])
        base = self
        while power:
            if power % 2 == 1:
                result = result @ base
            base = base @ base
            power //= 2
        return result

    def _must_be_square(self):
        if not self.square:
            raise ShapeError(f"needs a square matrix, not {self.shape}")

    def transposed(self):
        """Return the matrix with rows and columns exchanged."""
        return Matrix(list(zip(*self.rows)))

    def trace(self):
        """Return the sum of the diagonal."""
        self._must_be_square()
        return sum(self.rows[index][index] for index in range(len(self.rows)))

    def minor(self, row, column):
        """Return the matrix without a row and a column."""
        rows = [line for index, line in enumerate(self.rows) if index != row]
        return Matrix([line[:column] + line[column + 1 :] for line in rows])

    def cofactor(self, row, column):
        """Return the signed determinant of a minor."""
        sign = -1 if (row + column) % 2 else 1
        return sign * self.minor(row, column).determinant()

    def determinant(self):
        """Return the determinant of a square matrix."""
        self._must_be_square()
        return elimination.determinant(self.rows)

    def rank(self):
        """Return the number of independent rows."""
        return len(elimination.reduced(self.rows)[1])

    def inverse(self):
        """Return the inverse. Raises ShapeError if there is none."""
        self._must_be_square()
        size = len(self.rows)
        wide = [row + [int(index == column) for column in range(size)] for index, row in enumerate(self.rows)]
        rows, pivots = elimination.reduced(wide, size)
        if len(pivots) < size:
            raise ShapeError("a singular matrix has no inverse")
        return Matrix([row[size:] for row in rows])

    def solve(self, right):
        """Return x with self @ x = right, free unknowns 0; None if there is none."""
        return elimination.solution(self.rows, right)

    def null_space(self):
        """Return a list of vectors that span the solutions of self @ x = 0."""
        return elimination.null_space(self.rows)

    def apply(self, vector):
        """Return the product with a vector, as a list."""
        if len(vector) != self.shape[1]:
            raise ShapeError(f"{self.shape} cannot be applied to {len(vector)} numbers")
        return [sum(a * b for a, b in zip(row, vector)) for row in self.rows]

    def __str__(self):
        texts = [[str(cell) for cell in row] for row in self.rows]
        widths = [max(len(row[index]) for row in texts) for index in range(self.shape[1])]
        return "\n".join(" ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in texts)
