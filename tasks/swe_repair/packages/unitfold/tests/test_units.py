from fractions import Fraction

import pytest
from unitfold import Dimension, Registry, UnknownUnit, parse_unit
from unitfold.units import STANDARD


def test_prefixes():
    assert STANDARD.get("km").factor == 1000
    assert STANDARD.get("mg").factor == Fraction(1, 10**6)
    assert STANDARD.get("uV").factor == Fraction(1, 10**6)


def test_names_win_over_prefixes():
    assert STANDARD.get("min").factor == 60


def test_unknown_units():
    for name in ("parsec", "kmin", "kdegC", ""):
        with pytest.raises(UnknownUnit):
            STANDARD.get(name)


def test_unknown_unit_is_named():
    with pytest.raises(UnknownUnit, match="unknown unit 'parsec'"):
        STANDARD.get("parsec")


def test_define_twice():
    registry = Registry()
    registry.define("x", 1, Dimension())
    with pytest.raises(ValueError):
        registry.define("x", 2, Dimension())


def test_derived_units_are_equal():
    assert parse_unit("J") == parse_unit("N m") == parse_unit("W s")
    assert parse_unit("V A") == parse_unit("W")
    assert parse_unit("J") != parse_unit("W")


def test_parse_slashes():
    assert parse_unit("kg m/s^2") == parse_unit("N")
    assert parse_unit("m/s/s") == parse_unit("m s^-2")
    assert parse_unit("1/s") == parse_unit("Hz")
    assert parse_unit("kg*m^2") == parse_unit("kg m m")


def test_unit_text():
    assert str(parse_unit("m m/s")) == "m^2/s"
    assert str(parse_unit("m/m")) == "1"


@pytest.mark.parametrize("text", ["m/", "m^x", "m^2^2", "/s", "m-1"])
def test_bad_units(text):
    with pytest.raises(ValueError):
        parse_unit(text)


def test_offsets_do_not_multiply():
    with pytest.raises(ValueError, match="offset"):
        parse_unit("degC m")
