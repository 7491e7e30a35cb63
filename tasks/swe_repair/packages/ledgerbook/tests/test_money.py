import pytest
from ledgerbook.money import AmountError, allocate, format_amount, parse_amount


def test_plain_amount():
    assert parse_amount("12.50") == 1250


def test_one_decimal_means_ten_cents():
    assert parse_amount("0.5") == 50


def test_signs_and_parentheses():
    assert parse_amount("-3") == -300
    assert parse_amount("(3.25)") == -325
    assert parse_amount("(-1.00)") == 100


def test_thousands():
    assert parse_amount("1,250,000.01") == 125000001


@pytest.mark.parametrize("text", ["", "x", "1.2.3", "1.", "1.234", "--1"])
def test_bad_amounts(text):
    with pytest.raises(AmountError):
        parse_amount(text)


def test_format_groups_thousands():
    assert format_amount(123456789) == "1,234,567.89"
    assert format_amount(-5, symbol="$") == "-$0.05"
    assert format_amount(123456, grouped=False) == "1234.56"


def test_allocate_keeps_every_cent():
    assert allocate(100, [1, 1, 1]) == [34, 33, 33]
    assert allocate(-100, [1, 1, 1]) == [-34, -33, -33]


def test_allocate_skips_zero_weights():
    assert allocate(5, [0, 1, 1]) == [0, 3, 2]


def test_allocate_needs_weights():
    with pytest.raises(AmountError):
        allocate(5, [0, 0])
