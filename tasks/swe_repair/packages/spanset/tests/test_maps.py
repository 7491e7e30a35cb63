from spanset import Span, SpanMap, SpanSet
from spanset.maps import counted


def test_later_values_replace_earlier_ones():
    prices = SpanMap([(Span(0, 10), 1), (Span(3, 5), 2)])
    assert [prices.get(number) for number in (0, 3, 4, 5, 10)] == [1, 2, 2, 1, None]
    assert prices.items == [(Span(0, 3), 1), (Span(3, 5), 2), (Span(5, 10), 1)]


def test_equal_neighbours_are_joined():
    assert SpanMap([(Span(0, 2), "a"), (Span(2, 4), "a"), (Span(5, 6), "a")]).items == [
        (Span(0, 4), "a"),
        (Span(5, 6), "a"),
    ]


def test_clear():
    values = SpanMap([(Span(0, 10), "x")])
    values.clear(Span(4, 6))
    assert values.domain() == SpanSet([Span(0, 4), Span(6, 10)])
    assert values.get(5, "none") == "none"


def test_where():
    levels = SpanMap([(Span(0, 2), 1), (Span(2, 4), 5), (Span(6, 8), 7)])
    assert levels.where(lambda level: level > 4) == SpanSet([Span(2, 4), Span(6, 8)])


def test_integral():
    assert SpanMap([(Span(0, 2), 10), (Span(4, 6), 1)]).integral(Span(1, 5)) == 11


def test_combined():
    first, second = SpanMap([(Span(0, 5), 2)]), SpanMap([(Span(3, 9), 10)])
    assert first.combined(second, lambda mine, theirs: mine * theirs).items == [(Span(3, 5), 20)]


def test_steps():
    assert SpanMap([(Span(0, 2), "a"), (Span(2, 3), "b"), (Span(5, 6), "c")]).steps() == [
        (0, "a"),
        (2, "b"),
        (3, None),
        (5, "c"),
        (6, None),
    ]
    assert SpanMap().steps() == []


def test_counted():
    assert counted([Span(0, 4), Span(2, 6), Span(3, 3)]).items == [(Span(0, 2), 1), (Span(2, 4), 2), (Span(4, 6), 1)]
