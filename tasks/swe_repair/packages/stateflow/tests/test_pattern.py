import pytest
from stateflow import PatternError, compile_pattern, minimised


def words(pattern, letters="ab", longest=4):
    return compile_pattern(pattern, letters).language(letters, longest)


def test_letters_follow_each_other():
    assert words("ab") == ["ab"]


def test_alternatives():
    assert words("a|bb|") == ["", "a", "bb"]


def test_star_plus_and_question_mark():
    assert words("a*", longest=3) == ["", "a", "aa", "aaa"]
    assert words("ab+") == ["ab", "abb", "abbb"]
    assert words("ab?") == ["a", "ab"]


def test_groups():
    assert words("(ab)*") == ["", "ab", "abab"]
    assert words("a(a|b)b") == ["aab", "abb"]


def test_dot_and_classes():
    assert words(".", "abc", 1) == ["a", "b", "c"]
    assert words("[a-c]", "abcd", 2) == ["a", "b", "c"]
    assert words("[^ab]", "abcd", 2) == ["c", "d"]
    assert words("[a-]", "ab-", 1) == ["a", "-"]


def test_bounds():
    assert words("a{2}") == ["aa"]
    assert words("a{1,3}") == ["a", "aa", "aaa"]
    assert words("(ab){0,1}") == ["", "ab"]
    assert words("a{2,}") == ["aa", "aaa", "aaaa"]


def test_escapes():
    assert compile_pattern("a\\*b").accepts("a*b")
    assert not compile_pattern("a\\*b").accepts("ab")


def test_minimal_size():
    assert len(minimised(compile_pattern("(a|b)*abb", "ab"))) == 4


@pytest.mark.parametrize("pattern", ["*a", "a|*", "(a", "a)", "[ab", "a{", "a{x}", "a{3,2}", "\\q", "a]", "\\"])
def test_bad_patterns(pattern):
    with pytest.raises(PatternError):
        compile_pattern(pattern)
