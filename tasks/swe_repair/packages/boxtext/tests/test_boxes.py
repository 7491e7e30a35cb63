import pytest
from boxtext import Box, beside, stacked


def test_lines_have_one_width():
    assert Box("a\nbbb").lines() == ["a  ", "bbb"]
    assert Box("a\nbbb", align="r").lines() == ["  a", "bbb"]
    assert Box("a\nbbbb", align="c").lines() == [" a  ", "bbbb"]


def test_minimal_width():
    assert Box("ab", width=4).lines() == ["ab  "]
    assert Box("ab", width=1).width == 2


def test_str_has_no_trailing_blanks():
    assert str(Box("a\nbbb")) == "a\nbbb"


def test_padded():
    assert Box("x").padded(2, 1).lines() == ["     ", "  x  ", "     "]


def test_framed():
    assert Box("ab").framed().lines() == ["+--+", "|ab|", "+--+"]
    assert Box("ab").framed("round").lines() == ["╭──╮", "│ab│", "╰──╯"]


def test_framed_with_a_title():
    assert Box("abcdef").framed(title="t").lines()[0] == "+ t ---+"
    assert Box("ab").framed(title="long").lines()[0] == "+ l+"


def test_unknown_style():
    with pytest.raises(ValueError, match="plain, round, double"):
        Box("a").framed("dotted")


def test_rotated():
    assert Box("abc\nde").rotated().lines() == ["da", "eb", " c"]


def test_beside():
    tall, low = Box("1\n2\n3"), Box("x")
    assert beside([tall, low]).lines() == ["1 x", "2  ", "3  "]
    assert beside([tall, low], gap=0, align="bottom").lines() == ["1 ", "2 ", "3x"]
    assert beside([low, tall], align="middle").lines() == ["  1", "x 2", "  3"]


def test_stacked():
    assert stacked([Box("abc"), Box("d")], align="r", gap=1).lines() == ["abc", "   ", "  d"]
    assert stacked([]).height == 0
