from fractions import Fraction

import pytest
from matgrid import Matrix, ShapeError, identity


def test_shapes():
    assert Matrix([[1, 2, 3], [4, 5, 6]]).shape == (2, 3)
    assert Matrix([[1]]).square
    for rows in ([], [[]], [[1], [1, 2]]):
        with pytest.raises(ShapeError):
            Matrix(rows)


def test_sum_and_difference():
    a, b = Matrix([[1, 2], [3, 4]]), Matrix([[5, 6], [7, 8]])
    assert a + b == Matrix([[6, 8], [10, 12]])
    assert b - a == Matrix([[4, 4], [4, 4]])
    with pytest.raises(ShapeError):
        a + Matrix([[1]])


def test_product():
    assert Matrix([[1, 2], [3, 4]]) @ Matrix([[0, 1], [1, 1]]) == Matrix([[2, 3], [4, 7]])
    assert (Matrix([[1, 2, 3]]) @ Matrix([[1], [2], [3]]))[0, 0] == 14
    with pytest.raises(ShapeError):
        Matrix([[1, 2]]) @ Matrix([[1, 2]])


def test_powers():
    fibonacci = Matrix([[1, 1], [1, 0]])
    assert (fibonacci**10)[0, 1] == 55
    assert fibonacci**0 == identity(2)
    assert fibonacci**-1 == Matrix([[0, 1], [1, -1]])
    with pytest.raises(ShapeError):
        Matrix([[1, 2]]) ** 2


def test_transposed_and_trace():
    assert Matrix([[1, 2, 3]]).transposed() == Matrix([[1], [2], [3]])
    assert Matrix([[1, 9], [9, 5]]).trace() == 6


def test_minor_and_cofactor():
    m = Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 10]])
    assert m.minor(0, 1) == Matrix([[4, 6], [7, 10]])
    assert m.cofactor(0, 1) == 2
    assert m.cofactor(1, 1) == -11


def test_determinant():
    assert Matrix([[2, 1], [1, 3]]).determinant() == 5
    assert Matrix([[0, 1], [1, 0]]).determinant() == -1
    assert Matrix([[1, 2, 3], [4, 5, 6], [7, 8, 9]]).determinant() == 0
    assert Matrix([[0, 2, 1], [3, 0, 1], [1, 1, 0]]).determinant() == 5


def test_rank():
    assert Matrix([[1, 2], [2, 4]]).rank() == 1
    assert Matrix([[0, 0], [0, 0]]).rank() == 0
    assert Matrix([[1, 0, 2], [0, 1, 1]]).rank() == 2


def test_inverse():
    m = Matrix([[2, 1], [1, 3]])
    assert m.inverse() == Matrix([[Fraction(3, 5), Fraction(-1, 5)], [Fraction(-1, 5), Fraction(2, 5)]])
    assert m @ m.inverse() == identity(2)
    with pytest.raises(ShapeError):
        Matrix([[1, 2], [2, 4]]).inverse()


def test_solve():
    assert Matrix([[2, 1], [1, 3]]).solve([3, 5]) == [Fraction(4, 5), Fraction(7, 5)]
    assert Matrix([[1, 1], [2, 2]]).solve([1, 3]) is None
    assert Matrix([[1, 1], [2, 2]]).solve([1, 2]) == [1, 0]
    assert Matrix([[1, 2]]).solve([4]) == [4, 0]


def test_null_space():
    m = Matrix([[1, 2, 3], [2, 4, 6]])
    vectors = m.null_space()
    assert vectors == [[-2, 1, 0], [-3, 0, 1]]
    assert [m.apply(vector) for vector in vectors] == [[0, 0], [0, 0]]
    assert identity(2).null_space() == []


def test_apply():
    assert Matrix([[1, 2], [3, 4]]).apply([1, -1]) == [-1, -1]
    with pytest.raises(ShapeError):
        Matrix([[1, 2]]).apply([1])


def test_text():
    assert str(Matrix([[1, 10], [Fraction(1, 2), 3]])) == "  1 10\n1/2  3"
