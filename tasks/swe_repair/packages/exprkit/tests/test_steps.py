from exprkit import evaluate, parse, show
from exprkit.steps import Expansion


def expanded(text):
    tree, log = Expansion().rewrite(parse(text))
    return show(tree), log


def test_rules_are_listed_in_order():
    assert Expansion().rules() == ["minus", "square", "distribute", "one", "sign", "zero"]


def test_distribute():
    assert expanded("(a + b) * c") == ("a * c + b * c", ["distribute"])
    assert expanded("c * (a + b)")[0] == "c * a + c * b"


def test_differences_become_sums():
    assert expanded("a - b") == ("a + -b", ["minus"])
    assert expanded("a * (b - c)")[0] == "a * b + -(c * a)"


def test_small_powers():
    text, log = expanded("x ^ 2")
    assert text == "x * x"
    assert log == ["square", "one"]
    assert expanded("x ^ 5") == ("x^5", [])


def test_zero_comes_last():
    assert expanded("0 * (a + b)") == ("0 + 0", ["distribute", "zero", "zero"])
    assert expanded("-a * 0") == ("-0", ["sign", "zero"])


def test_values_stay_the_same():
    tree = parse("(a + b) ^ 3 - (a - b) * (2 * a + 1)")
    values = {"a": 3, "b": 5}
    assert evaluate(Expansion().rewrite(tree)[0], values) == evaluate(tree, values)
