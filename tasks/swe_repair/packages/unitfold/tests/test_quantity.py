from fractions import Fraction

import pytest
from unitfold import DimensionError, Quantity, best_prefix, parse_quantity, parse_unit


def q(text):
    return parse_quantity(text)


def test_conversion():
    assert q("90 km/h").to("m/s").value == 25
    assert q("1 mile").to("ft").value == 5280


def test_conversion_of_other_dimensions():
    with pytest.raises(DimensionError):
        q("1 m").to("s")


def test_temperatures():
    assert q("100 degC").to("K").value == Fraction(37315, 100)
    assert q("212 degF").to("degC").value == 100
    assert q("-40 degC").to("degF").value == -40


def test_temperatures_do_not_add():
    with pytest.raises(ValueError):
        q("1 degC") + q("1 degC")


def test_sums_keep_the_left_unit():
    total = q("1 km") + q("500 m")
    assert total.value == Fraction(3, 2)
    assert str(total.unit) == "km"
    assert (q("1 h") - q("15 min")).value == Fraction(3, 4)


def test_sums_of_other_dimensions():
    with pytest.raises(DimensionError):
        q("1 m") + q("1 s")


def test_products():
    assert q("2 N") * q("3 m") == q("6 J")
    assert q("6 J") / q("2 s") == q("3 W")
    assert q("3 m") ** 2 == q("9 m^2")
    assert q("3 m") * 2 == q("6 m")


def test_comparison_across_units():
    assert q("1 km") == q("1000 m")
    assert q("1 ft") < q("1 m") <= q("100 cm")
    assert q("1 m") != q("1 s")
    assert len({q("1 h"), q("60 min"), q("3600 s")}) == 1


def test_close_to():
    assert Quantity(0.1 + 0.2, parse_unit("m")).close_to(Quantity(30.0, parse_unit("cm")))
    assert not q("1 m").close_to(q("1.001 m"))


def test_simplified():
    simple = q("1 kW h").simplified()
    assert simple.value == 3600000
    assert str(simple.unit) == "m^2 kg/s^2"


def test_numbers():
    assert q("1/3 m").value == Fraction(1, 3)
    assert q("-2.5e3 Pa") == q("-2.5 kPa")
    assert q("7").unit == parse_unit("1")
    with pytest.raises(ValueError):
        q("m")


def test_best_prefix():
    assert best_prefix(12000, "m") == (12, "km")
    assert best_prefix(Fraction(1, 500), "V") == (2, "mV")
    assert best_prefix(999, "m") == (999, "m")
    assert best_prefix(5000, "ft") == (5000, "ft")
    assert best_prefix(0, "m") == (0, "m")


def test_text():
    assert repr(q("9 m/s^2")) == "9 m/s^2"
