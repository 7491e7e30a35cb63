import pytest
from exprkit import Binary, Call, Name, Number, SyntaxProblem, Unary, parse


def test_precedence():
    assert parse("1 + 2 * 3") == Binary("+", Number(1), Binary("*", Number(2), Number(3)))


def test_left_associative():
    assert parse("9 - 4 - 3") == Binary("-", Binary("-", Number(9), Number(4)), Number(3))


def test_powers_are_right_associative():
    assert parse("2 ^ 3 ** 2") == Binary("^", Number(2), Binary("^", Number(3), Number(2)))


def test_a_sign_binds_less_than_a_power():
    assert parse("-x^2") == Unary("-", Binary("^", Name("x"), Number(2)))
    assert parse("-x * 2") == Binary("*", Unary("-", Name("x")), Number(2))
    assert parse("2^-1") == Binary("^", Number(2), Unary("-", Number(1)))
    assert parse("+x") == Name("x")


def test_comparisons_bind_least():
    assert parse("a + 1 < b == 1") == Binary("==", Binary("<", Binary("+", Name("a"), Number(1)), Name("b")), Number(1))


def test_calls():
    assert parse("max(1, x)") == Call("max", [Number(1), Name("x")])
    assert parse("f()") == Call("f", [])


def test_parentheses():
    assert parse("(1 + 2) * 3") == Binary("*", Binary("+", Number(1), Number(2)), Number(3))


@pytest.mark.parametrize(
    ("text", "column"), [("", 1), ("1 +", 4), ("(1", 3), ("1 2", 3), ("f(1,", 5), ("f(1 2)", 5), (")", 1)]
)
def test_problems_name_the_column(text, column):
    with pytest.raises(SyntaxProblem) as caught:
        parse(text)
    assert caught.value.column == column


def test_repr_and_size():
    tree = parse("f(-x)")
    assert repr(tree) == "Call('f', (Unary('-', Name('x')),))"
    assert tree.size() == 3
    assert len({parse("1+x"), parse("1 + x"), parse("x+1")}) == 2
