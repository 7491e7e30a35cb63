import pytest
from cronline.field import DAY, HOUR, MINUTE, MONTH, WEEKDAY, WEEKDAYS, FieldError, describe, parse_field


def test_star_is_everything():
    assert parse_field("*", HOUR) == list(range(24))


def test_numbers_and_lists():
    assert parse_field("5,1,1", MINUTE) == [1, 5]


def test_ranges_with_steps():
    assert parse_field("10-20/5", MINUTE) == [10, 15, 20]
    assert parse_field("*/20", MINUTE) == [0, 20, 40]


def test_step_from_a_number_runs_to_the_end():
    assert parse_field("50/4", MINUTE) == [50, 54, 58]


def test_ranges_wrap_around():
    assert parse_field("22-1", HOUR) == [0, 1, 22, 23]
    assert parse_field("nov-feb", MONTH) == [1, 2, 11, 12]


def test_names_are_case_insensitive():
    assert parse_field("Mon-FRI", WEEKDAY) == [1, 2, 3, 4, 5]


def test_seven_is_sunday():
    assert parse_field("7", WEEKDAY) == [0]
    assert parse_field("5-7", WEEKDAY) == [0, 5, 6]


@pytest.mark.parametrize(
    ("text", "field"),
    [("", MINUTE), ("60", MINUTE), ("0", DAY), ("a", HOUR), ("1-", HOUR), ("*/0", HOUR), ("*/x", HOUR), ("13", MONTH)],
)
def test_bad_fields(text, field):
    with pytest.raises(FieldError):
        parse_field(text, field)


def test_describe_joins_runs():
    assert describe([1, 2, 3, 7]) == "1-3, 7"
    assert describe([1, 2]) == "1, 2"
    assert describe([0, 1, 2, 5], WEEKDAYS) == "sun-tue, fri"
