import pytest
from cronline.moment import Moment, days_before_year, days_in_month, is_leap


def test_leap_years():
    assert [year for year in (1900, 2000, 2023, 2024) if is_leap(year)] == [2000, 2024]


def test_month_lengths():
    assert [days_in_month(2023, month) for month in range(1, 13)] == [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
    assert days_in_month(2024, 2) == 29


def test_days_before_year():
    assert days_before_year(1) == 0
    assert days_before_year(5) == 4 * 365 + 1
    assert days_before_year(2001) == 730485


@pytest.mark.parametrize(
    "args", [(2024, 13, 1), (2023, 2, 29), (2024, 4, 31), (2024, 1, 0), (2024, 1, 1, 24), (2024, 1, 1, 0, 60)]
)
def test_impossible_moments(args):
    with pytest.raises(ValueError):
        Moment(*args)


def test_parse():
    assert Moment.parse("2024-05-06 07:08") == Moment(2024, 5, 6, 7, 8)
    assert Moment.parse("2024-05-06") == Moment(2024, 5, 6)


def test_ordinals_round_trip():
    for moment in (Moment(1, 1, 1), Moment(2024, 2, 29, 23, 59), Moment(2023, 12, 31, 12), Moment(2000, 3, 1)):
        assert Moment.from_ordinal(moment.ordinal()) == moment


def test_difference_is_in_minutes():
    assert Moment(2024, 3, 1) - Moment(2024, 2, 28, 23, 30) == 24 * 60 + 30


def test_plus_crosses_the_year():
    assert Moment(2023, 12, 31, 23, 59).plus(minutes=1) == Moment(2024, 1, 1)
    assert Moment(2024, 2, 28).plus(days=1, hours=25) == Moment(2024, 3, 1, 1)


def test_weekdays():
    assert Moment(2024, 5, 5).weekday() == 0
    assert Moment(2000, 1, 1).weekday() == 6
    assert Moment(2024, 2, 29).weekday() == 4


def test_order():
    assert Moment(2024, 1, 31) < Moment(2024, 2, 1)
    assert Moment(2024, 1, 1) <= Moment(2024, 1, 1)
    assert sorted([Moment(2024, 1, 2), Moment(2023, 5, 9)])[0].year == 2023
