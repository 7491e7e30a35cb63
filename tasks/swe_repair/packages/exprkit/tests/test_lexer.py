import pytest
from exprkit import SyntaxProblem, Token, tokenize


def texts(text):
    return [token.text for token in tokenize(text)[:-1]]


def test_kinds():
    assert [token.kind for token in tokenize("x1 + 2")] == ["name", "operator", "number", "end"]


def test_numbers():
    assert texts("1 2.5 .5 3. 1e3 2E-4 1.5e+2") == ["1", "2.5", ".5", "3.", "1e3", "2E-4", "1.5e+2"]


def test_exponents_need_digits():
    assert texts("2e") == ["2", "e"]
    assert texts("2e+x") == ["2", "e", "+", "x"]


def test_longest_operator_wins():
    assert texts("a<=b**c==d") == ["a", "<=", "b", "**", "c", "==", "d"]


def test_columns():
    assert [token.column for token in tokenize("ab  + c")] == [1, 5, 7, 8]


def test_foreign_characters():
    with pytest.raises(SyntaxProblem) as caught:
        tokenize("1 + $")
    assert caught.value.column == 5


def test_tokens_compare_without_their_column():
    assert Token("name", "x", 1) == Token("name", "x", 9)
    assert Token("name", "x", 1) != Token("number", "x", 1)
