import pytest
from boxtext import hyphenate, justified, minimal_raggedness, wrap


def test_wrap_fills_lines():
    assert wrap("the quick brown fox jumps", 10) == ["the quick", "brown fox", "jumps"]


def test_wrap_uses_the_whole_width():
    assert wrap("aa bb cc", 5) == ["aa bb", "cc"]


def test_wrap_indents_all_but_the_first_line():
    assert wrap("aa bb cc dd", 5, indent=" ") == ["aa bb", " cc", " dd"]


def test_wrap_breaks_long_words():
    assert wrap("a representation", 8) == ["a repre-", "senta-", "tion"]
    assert wrap("xxxxxxxx", 5) == ["xxxx-", "xxxx"]


def test_wrap_needs_room():
    with pytest.raises(ValueError):
        wrap("x", 3, indent="  ")


def test_wrap_of_nothing():
    assert wrap("  \n ", 10) == []


def test_justify():
    assert wrap("aa bb cc dd ee", 10, justify=True) == ["aa  bb  cc", "dd ee"]
    assert wrap("a b c d e f", 6, indent=" ", justify=True) == ["a  b c", " d e f"]


def test_justified_puts_extra_blanks_first():
    assert justified("a b c", 8) == "a   b  c"
    assert justified("word", 9) == "word"


def test_hyphenate():
    assert hyphenate("paragraph") == ["pa", "ragraph"]
    assert hyphenate("tomato") == ["to", "mato"]
    assert hyphenate("banana") == ["ba", "nana"]
    assert hyphenate("the") == ["the"]


def test_minimal_raggedness():
    words = "aaa bb cc ddddd".split()
    assert wrap(" ".join(words), 6) == ["aaa bb", "cc", "ddddd"]
    assert minimal_raggedness(words, 6) == ["aaa", "bb cc", "ddddd"]
    assert minimal_raggedness([], 6) == []
    assert minimal_raggedness(["toolongword", "x"], 4) == ["toolongword", "x"]
