import pytest
from spanset import EmptySpan, Span, SpanSet


def spans(*pairs):
    return SpanSet([Span(*pair) for pair in pairs])


def test_touching_spans_are_joined():
    assert spans((5, 6), (0, 2), (2, 3), (9, 9)).spans == [Span(0, 3), Span(5, 6)]


def test_a_span_within_another_disappears():
    assert spans((0, 10), (2, 3)).spans == [Span(0, 10)]


def test_membership():
    numbers = spans((0, 2), (5, 7))
    assert [number for number in range(-1, 9) if number in numbers] == [0, 1, 5, 6]
    assert 3 not in spans()


def test_union_and_intersection():
    first, second = spans((0, 4), (6, 9)), spans((3, 7), (8, 12))
    assert first | second == spans((0, 12))
    assert first & second == spans((3, 4), (6, 7), (8, 9))
    assert first & spans() == spans()


def test_difference():
    assert spans((0, 10)) - spans((2, 3), (5, 6), (9, 20)) == spans((0, 2), (3, 5), (6, 9))
    assert spans((0, 2)) - spans((0, 2)) == spans()


def test_symmetric_difference():
    assert spans((0, 5)) ^ spans((3, 8)) == spans((0, 3), (5, 8))


def test_gaps():
    busy = spans((9, 10), (12, 14))
    assert busy.gaps(Span(8, 18)) == spans((8, 9), (10, 12), (14, 18))
    assert busy.gaps() == spans((10, 12))
    assert spans().gaps() == spans()


def test_grown_joins_neighbours():
    assert spans((0, 2), (4, 6)).grown(1) == spans((-1, 7))
    assert spans((0, 2), (4, 9)).grown(-1) == spans((5, 8))


def test_length_hull_longest():
    numbers = spans((0, 2), (4, 7), (10, 13))
    assert numbers.length == 8
    assert numbers.hull() == Span(0, 13)
    assert numbers.longest() == Span(4, 7)
    with pytest.raises(EmptySpan):
        spans().hull()
    with pytest.raises(EmptySpan):
        spans().longest()


def test_covers():
    assert spans((0, 5), (6, 9)).covers(spans((1, 2), (6, 9)))
    assert not spans((0, 5), (6, 9)).covers(spans((4, 7)))


def test_text():
    assert repr(spans((0, 1), (3, 4))) == "[0, 1) [3, 4)"
    assert repr(spans()) == "empty"
