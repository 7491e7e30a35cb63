from stateflow import DFA, NFA, combined, determinised, equivalent, minimised, shortest_word


def ends_in_ab():
    nfa = NFA()
    middle, end = nfa.new_state(), nfa.new_state()
    nfa.connect(0, "a", 0)
    nfa.connect(0, "b", 0)
    nfa.connect(0, "a", middle)
    nfa.connect(middle, "b", end)
    nfa.final.add(end)
    return nfa


EVEN = DFA([{"a": 1, "b": 0}, {"a": 0, "b": 1}], 0, {0})
SOME_B = DFA([{"a": 0, "b": 1}, {"a": 1, "b": 1}], 0, {1})


def test_nfa_accepts():
    nfa = ends_in_ab()
    assert [word for word in ("ab", "aab", "aba", "", "b") if nfa.accepts(word)] == ["ab", "aab"]


def test_free_moves():
    nfa = NFA()
    one, two = nfa.new_state(), nfa.new_state()
    nfa.connect(0, None, one)
    nfa.connect(one, None, two)
    nfa.connect(two, "x", two)
    nfa.final.add(two)
    assert nfa.closure([0]) == {0, 1, 2}
    assert nfa.accepts("")
    assert nfa.accepts("xx")
    assert nfa.alphabet() == ["x"]


def test_determinised_accepts_the_same():
    nfa = ends_in_ab()
    dfa = determinised(nfa)
    assert len(dfa) == 3
    assert dfa.language("ab", 4) == nfa.language("ab", 4)


def test_language_is_sorted_by_length():
    assert EVEN.language("ab", 2) == ["", "b", "aa", "bb"]


def test_missing_letters_lead_nowhere():
    assert EVEN.run("c") is None
    assert not EVEN.accepts("c")
    assert not EVEN.accepts("a")


def test_completed():
    full = DFA([{"a": 0}], 0, {0}).completed("ab")
    assert full.table == [{"a": 0, "b": 1}, {"a": 1, "b": 1}]
    assert len(EVEN.completed("ab")) == 2


def test_complement():
    other = EVEN.complement("ab")
    assert other.language("ab", 2) == ["a", "ab", "ba"]
    assert DFA([{"a": 0}], 0, {0}).complement("ab").accepts("ab")


def test_minimised():
    wasteful = DFA([{"a": 1, "b": 2}, {"a": 3, "b": 2}, {"a": 1, "b": 3}, {"a": 3, "b": 3}, {"a": 0}], 0, {3})
    small = minimised(wasteful)
    assert len(small) == 4
    assert equivalent(small, wasteful)


def test_minimised_joins_equal_states():
    dfa = DFA([{"a": 1}, {"a": 2}, {"a": 1}], 0, {1, 2})
    assert minimised(dfa).table == [{"a": 1}, {"a": 1}]


def test_minimised_empty_language():
    assert len(minimised(DFA([{"a": 1}, {"a": 0}], 0, set()))) == 1


def test_products():
    both = combined(EVEN, SOME_B, lambda a, b: a and b)
    assert both.language("ab", 3) == ["b", "bb", "aab", "aba", "baa", "bbb"]
    assert combined(EVEN, SOME_B, lambda a, b: a and not b).accepts("aa")


def test_shortest_word():
    assert shortest_word(determinised(ends_in_ab())) == "ab"
    assert shortest_word(EVEN) == ""
    assert shortest_word(DFA([{}], 0, set())) is None


def test_equivalence():
    assert equivalent(EVEN, minimised(EVEN))
    assert not equivalent(EVEN, SOME_B)
