from fractions import Fraction

import pytest
from matgrid import Matrix, fit_polynomial, identity, magic_square, pascal, vandermonde
from matgrid.special import evaluate


def test_identity():
    assert identity(2) == Matrix([[1, 0], [0, 1]])


def test_vandermonde():
    assert vandermonde([2, 3], 3) == Matrix([[1, 2, 4], [1, 3, 9]])


def test_pascal():
    assert pascal(4) == Matrix([[1, 0, 0, 0], [1, 1, 0, 0], [1, 2, 1, 0], [1, 3, 3, 1]])


def test_magic_square():
    assert magic_square(3) == Matrix([[8, 1, 6], [3, 5, 7], [4, 9, 2]])
    five = magic_square(5)
    assert {sum(row) for row in five.rows + five.transposed().rows} == {65}
    assert five.trace() == 65
    for size in (2, -1):
        with pytest.raises(ValueError):
            magic_square(size)


def test_fit_polynomial():
    assert fit_polynomial([(0, 1), (1, 2), (2, 5)]) == [1, 0, 1]
    assert fit_polynomial([(1, 1), (3, 2)]) == [Fraction(1, 2), Fraction(1, 2)]
    with pytest.raises(ValueError):
        fit_polynomial([(1, 1), (1, 2)])


def test_evaluate():
    assert evaluate([1, 0, 2], 3) == 19
    assert evaluate([], 3) == 0
