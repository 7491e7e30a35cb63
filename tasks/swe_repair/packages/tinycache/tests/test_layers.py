from tinycache import FIFOCache, Layered, LRUCache, memoize
from tinycache.layers import call_key


def test_evicted_keys_move_to_the_back():
    both = Layered(LRUCache(1), LRUCache(2))
    both.put("a", 1)
    both.put("b", 2)
    assert list(both.front.values) == ["b"]
    assert list(both.back.values) == ["a"]
    assert len(both) == 2


def test_keys_from_the_back_move_forward():
    both = Layered(LRUCache(1), LRUCache(2))
    both.put("a", 1)
    both.put("b", 2)
    assert both.get("a") == 1
    assert list(both.front.values) == ["a"]
    assert "b" in both.back
    assert both.get("z", 0) == 0


def test_a_key_is_in_one_layer():
    both = Layered(LRUCache(1), LRUCache(2))
    both.put("a", 1)
    both.put("b", 2)
    both.put("a", 3)
    assert both.get("a") == 3
    assert len(both) == 2


def test_layered_hit_rate():
    both = Layered(LRUCache(1), LRUCache(2))
    assert both.hit_rate == 0.0
    both.put("a", 1)
    both.put("b", 2)
    for key in ("b", "a", "z", "a"):
        both.get(key)
    assert both.hit_rate == 0.75


def test_memoize():
    calls = []

    @memoize(capacity=2)
    def square(number, plus=0):
        calls.append(number)
        return number * number + plus

    assert [square(2), square(2), square(2, plus=1)] == [4, 4, 5]
    assert calls == [2, 2]
    assert square.cache.hits == 1
    assert square.__name__ == "square"


def test_memoize_keeps_what_is_worth_it():
    calls = []

    @memoize(cache=FIFOCache(9), keep=lambda value: value is not None)
    def half(number):
        calls.append(number)
        return number // 2 if number % 2 == 0 else None

    assert [half(4), half(4), half(3), half(3)] == [2, 2, None, None]
    assert calls == [4, 3, 3]


def test_call_keys():
    assert call_key((1,), {"b": 2, "a": 1}) == call_key((1,), {"a": 1, "b": 2})
    assert call_key((1,), {}) == call_key((1.0,), {})
    assert call_key((1,), {}, typed=True) != call_key((1.0,), {}, typed=True)
    assert call_key((), {"a": 1}, typed=True) != call_key((), {"a": True}, typed=True)
