import pytest
from spanset import Span, SpanSet, first_free, most_at_once, parse_spans, rooms, utilisation
from spanset.planning import minutes, render


def test_minutes():
    assert minutes("9:05") == 545
    assert minutes(" 24:00 ") == 1440


@pytest.mark.parametrize("text", ["", "9:60", "25", "x", "9:"])
def test_bad_times(text):
    with pytest.raises(ValueError):
        minutes(text)


def test_parse_spans():
    assert parse_spans("9-12:30, 13:15-17,") == SpanSet([Span(540, 750), Span(795, 1020)])
    with pytest.raises(ValueError):
        parse_spans("9")


def test_render_is_read_back():
    text = "9:00-12:30, 13:05-17:00"
    assert render(parse_spans(text)) == text


def test_most_at_once():
    assert most_at_once([Span(0, 5), Span(4, 8), Span(4, 5), Span(5, 9)]) == 3
    assert most_at_once([]) == 0


def test_rooms_are_used_again():
    assert rooms([Span(0, 3), Span(1, 2), Span(2, 5), Span(3, 4)]) == [0, 1, 1, 0]


def test_rooms_follow_the_order_of_the_input():
    assert rooms([Span(5, 6), Span(0, 9)]) == [1, 0]


def test_first_free():
    busy = parse_spans("9-10, 10:30-12")
    assert first_free(busy, 30, Span(540, 1080)) == Span(600, 630)
    assert first_free(busy, 30, Span(540, 1080), margin=5) == Span(725, 755)
    assert first_free(busy, 600, Span(540, 1080)) is None


def test_utilisation():
    assert utilisation(parse_spans("9-10, 17-19"), Span(540, 1080)) == pytest.approx(2 / 9)
    assert utilisation(SpanSet(), Span(5, 5)) == 0.0
