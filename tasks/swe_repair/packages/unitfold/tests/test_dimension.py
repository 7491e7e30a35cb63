import pytest
from unitfold import Dimension
from unitfold.dimension import powers


def test_products_add_exponents():
    assert Dimension(length=1) * Dimension(length=1, time=-1) == Dimension(length=2, time=-1)


def test_quotients_subtract_exponents():
    assert (Dimension(length=1) / Dimension(length=1)).none
    assert Dimension(mass=1) / Dimension(time=2) == Dimension(mass=1, time=-2)


def test_powers_and_roots():
    area = Dimension(length=1) ** 2
    assert area == Dimension(length=2)
    assert area.root(2) == Dimension(length=1)
    with pytest.raises(ValueError):
        Dimension(length=3).root(2)


def test_unknown_base():
    with pytest.raises(ValueError, match="colour"):
        Dimension(colour=1)


def test_text():
    assert str(Dimension(mass=1, length=1, time=-2)) == "m kg/s^2"
    assert str(Dimension(time=-1)) == "1/s"
    assert str(Dimension()) == "1"
    assert powers([("a", 2), ("b", -1), ("c", -3)]) == "a^2/b/c^3"


def test_dimensions_are_keys():
    assert {Dimension(time=1): "t"}[Dimension(length=1, time=1) / Dimension(length=1)] == "t"
