import pytest
from exprkit import EvaluationError, Name, Number, differentiate, evaluate, parse, show, simplify, substitute


def simple(text):
    return show(simplify(parse(text)))


def slope(text):
    return show(simplify(differentiate(parse(text), "x")))


def test_show_keeps_needed_parentheses():
    for text in ("(a + b) * c", "a - (b - c)", "(a^b)^c", "a^b^c", "-(a + b)", "-a^b", "a / (b * c)", "(-a)^b"):
        assert show(parse(text)) == text


def test_show_drops_the_others():
    assert show(parse("((a) + (b * c)) + (d)")) == "a + b * c + d"
    assert show(parse("f((a), (b + c))")) == "f(a, b + c)"


def test_constants_are_folded():
    assert simple("2 * 3 + x") == "6 + x"
    assert simple("x * (1 - 3)") == "x * -2"
    assert simple("1 / 0 + x") == "1 / 0 + x"


def test_neutral_elements_are_dropped():
    assert [simple(text) for text in ("x + 0", "0 + x", "x - 0", "1 * x", "x * 1", "x / 1", "x ^ 1")] == ["x"] * 7
    assert [simple(text) for text in ("0 * x", "x - x", "x ^ 0")] == ["0", "0", "1"]


def test_factors_are_collected():
    assert simple("x + x") == "2 * x"
    assert simple("3 * (x * 2)") == "6 * x"
    assert simple("--x") == "x"


def test_derivatives():
    assert slope("3 * x^2 + 2 * x - 1") == "6 * x + 2"
    assert slope("x * y") == "y"
    assert slope("-x^3") == "-(3 * x^2)"
    assert slope("sqrt(x)") == "1 / (2 * sqrt(x))"


def test_quotient_rule():
    tree = differentiate(parse("x / (x + 1)"), "x")
    assert evaluate(tree, {"x": 1}) == 0.25


def test_no_derivative():
    for text in ("2 ^ x", "abs(x)", "x % 2"):
        with pytest.raises(EvaluationError):
            slope(text)


def test_substitute():
    tree = substitute(parse("x + f(x, y)"), {"x": Number(2), "y": Name("z")})
    assert show(tree) == "2 + f(2, z)"
