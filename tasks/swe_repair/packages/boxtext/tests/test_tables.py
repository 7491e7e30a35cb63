import pytest
from boxtext import Outline, Table, columns, tree_lines
from boxtext.outline import letters, roman


def menu(**options):
    table = Table(["item", "price"], align="lr", **options)
    table.add("tea", "2.50")
    table.add("cake and cream", "12")
    return table


def test_render():
    assert menu().render().splitlines() == [
        "item           | price",
        "----------------------",
        "tea            |  2.50",
        "cake and cream |    12",
    ]


def test_cells_above_the_limit_are_wrapped():
    assert menu(limit=8).render().splitlines()[3:] == ["cake and |    12", "cream    |"]


def test_rules():
    table = menu()
    table.rule()
    table.add("sum", "14.50")
    assert table.render().splitlines()[4] == "-" * 22


def test_sort_by_number_and_word():
    table = Table(["n"])
    for cell in ("10", "x", "9", "1,000", "a"):
        table.add(cell)
    table.rule()
    table.sort(0)
    assert [row[0] for row in table.rows] == ["9", "10", "1,000", "a", "x"]
    table.sort(0, reverse=True)
    assert table.rows[0] == ["x"]


def test_wrong_numbers_of_cells():
    with pytest.raises(ValueError):
        menu().add("one")
    with pytest.raises(ValueError):
        Table(["a", "b"], align="l")


def test_columns():
    assert columns(["a", "bb", "ccc", "d", "e"], 8) == "a    d\nbb   e\nccc"
    assert columns(["a", "b"], 80) == "a  b"
    assert columns(["aaaa", "bbbb"], 3) == "aaaa\nbbbb"
    assert columns([], 10) == ""


def test_roman_and_letters():
    assert [roman(number) for number in (1, 4, 9, 14, 39)] == ["i", "iv", "ix", "xiv", "xxxix"]
    assert [letters(number) for number in (1, 26, 27, 52, 703)] == ["a", "z", "aa", "az", "aaa"]
    with pytest.raises(ValueError):
        roman(40)


def test_outline():
    outline = Outline()
    for text, level in (("one", 0), ("sub", 1), ("sub", 1), ("deep", 2), ("two", 0), ("sub", 1)):
        outline.add(text, level)
    assert outline.render().splitlines() == ["1. one", "  a. sub", "  b. sub", "    i. deep", "2. two", "  a. sub"]
    with pytest.raises(ValueError):
        outline.add("x", 3)


def test_tree_lines():
    assert tree_lines({"a": {"b": None, "c": {"d": None}}, "e": None}) == [
        ".",
        "|-- a",
        "|   |-- b",
        "|   `-- c",
        "|       `-- d",
        "`-- e",
    ]
