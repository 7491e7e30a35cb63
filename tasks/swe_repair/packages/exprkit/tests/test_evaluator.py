import pytest
from exprkit import EvaluationError, evaluate, names, parse


def value(text, **values):
    return evaluate(parse(text), values)


def test_arithmetic():
    assert value("1 + 2 * 3 - 4 / 2") == 5
    assert value("2 ^ 10") == 1024
    assert value("-3 ^ 2") == -9


def test_quotients_stay_whole_where_they_can():
    assert value("6 / 3") == 2
    assert isinstance(value("6 / 3"), int)
    assert value("7 / 2") == 3.5


def test_remainders_take_the_sign_of_the_divisor():
    assert value("7 % 3") == 1
    assert value("-7 % 3") == 2
    assert value("7 % -3") == -2


def test_comparisons_are_numbers():
    assert value("(1 < 2) + (2 >= 2) + (1 != 1)") == 2


def test_variables():
    assert value("a * x + b", a=2, x=5, b=1) == 11
    with pytest.raises(EvaluationError, match="'y'"):
        value("y")


def test_functions():
    assert value("max(1, 5, 3) + min(4, 2) + abs(-1)") == 8
    assert value("sqrt(16)") == 4
    assert value("mean(1, 2, 6)") == 3
    assert [value("clamp(x, 0, 10)", x=x) for x in (-5, 5, 15)] == [0, 5, 10]


def test_if_evaluates_one_branch():
    assert value("if(x > 0, 10 / x, 0)", x=0) == 0
    assert value("if(x > 0, 10 / x, 0)", x=5) == 2


@pytest.mark.parametrize("text", ["1 / 0", "1 % 0", "0 ^ -1", "(-8) ^ 0.5", "sqrt(-1)", "f(1)", "abs(1, 2)", "min()"])
def test_expressions_without_a_value(text):
    with pytest.raises(EvaluationError):
        value(text)


def test_names():
    assert names(parse("b + a * f(b, c)")) == ["b", "a", "c"]
