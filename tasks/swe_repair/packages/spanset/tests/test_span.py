import pytest
from spanset import EmptySpan, Span


def test_start_is_in_and_end_is_not():
    assert 3 in Span(3, 5)
    assert 5 not in Span(3, 5)


def test_empty_spans_are_equal():
    assert Span(5, 3) == Span(7, 7)
    assert len({Span(5, 3), Span(7, 7), Span(1, 2)}) == 2
    assert Span(5, 3).length == 0


def test_spans_sort():
    assert sorted([Span(3, 4), Span(1, 9), Span(1, 2)]) == [Span(1, 2), Span(1, 9), Span(3, 4)]


def test_middle():
    assert Span(2, 5).middle == 3.5
    with pytest.raises(EmptySpan):
        _ = Span(2, 2).middle


def test_covers():
    assert Span(0, 10).covers(Span(0, 10))
    assert Span(0, 10).covers(Span(99, 1))
    assert not Span(0, 10).covers(Span(5, 11))


def test_touching_is_not_overlapping():
    assert Span(0, 5).touches(Span(5, 8))
    assert not Span(0, 5).overlaps(Span(5, 8))
    assert Span(0, 6).overlaps(Span(5, 8))
    assert not Span(0, 4).touches(Span(5, 8))


def test_intersection_and_hull():
    assert Span(0, 6) & Span(4, 9) == Span(4, 6)
    assert Span(0, 2).hull(Span(5, 6)) == Span(0, 6)
    assert Span(3, 3).hull(Span(5, 6)) == Span(5, 6)


def test_pieces():
    assert Span(0, 7).pieces(3) == [Span(0, 3), Span(3, 6), Span(6, 7)]
    assert Span(4, 4).pieces(3) == []
    with pytest.raises(ValueError):
        Span(0, 1).pieces(0)


def test_distance():
    assert Span(0, 2).distance(Span(5, 6)) == 3
    assert Span(5, 6).distance(Span(0, 2)) == 3
    assert Span(0, 5).distance(Span(5, 6)) == 0


def test_shifted():
    assert Span(1, 4).shifted(-2) == Span(-1, 2)
