import pytest
from tinycache import FIFOCache, LRUCache, ManualClock, TooLarge


def test_counters():
    cache = LRUCache(2)
    assert cache.hit_rate == 0.0
    cache.put("a", 1)
    assert [cache.get("a"), cache.get("b"), cache.get("a"), cache.get("b", 7)] == [1, None, 1, 7]
    assert (cache.hits, cache.misses, cache.hit_rate) == (2, 2, 0.5)
    cache.reset_counters()
    assert cache.hits == 0


def test_none_is_a_value():
    cache = LRUCache(2)
    cache.put("a", None)
    assert cache.get("a", 5) is None
    assert cache.hits == 1


def test_peek_counts_nothing():
    cache = LRUCache(2)
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.peek("a") == 1
    cache.put("c", 3)
    assert "a" not in cache
    assert cache.hits + cache.misses == 0


def test_weights():
    cache = FIFOCache(10, weigh=len)
    cache.put("a", "xxxx")
    cache.put("b", "xxxx")
    cache.put("c", "xxx")
    assert list(cache.values) == ["b", "c"]
    assert cache.weight == 7
    with pytest.raises(TooLarge):
        cache.put("d", "x" * 11)
    assert len(cache) == 2


def test_writing_again_replaces_the_weight():
    cache = FIFOCache(5, weigh=len)
    cache.put("a", "xxx")
    cache.put("a", "xxxxx")
    assert cache.weight == 5
    assert cache.evictions == 0


def test_listeners_hear_of_evictions_only():
    cache = FIFOCache(1)
    gone = []
    cache.listeners.append(lambda key, value: gone.append((key, value)))
    cache.put("a", 1)
    cache.put("b", 2)
    assert cache.remove("b")
    assert not cache.remove("b")
    assert gone == [("a", 1)]


def test_resize():
    cache = LRUCache(4)
    for key in "abcd":
        cache.put(key, key)
    assert cache.resize(2) == ["a", "b"]
    assert cache.resize(3) == []
    with pytest.raises(ValueError):
        cache.resize(0)


def test_clear_keeps_counters():
    cache = LRUCache(4)
    cache.put("a", 1)
    cache.get("a")
    cache.clear()
    assert (len(cache), cache.weight, cache.hits) == (0, 0, 1)


def test_get_or_make():
    cache = FIFOCache(3, weigh=len)
    assert cache.get_or_make("ab", str.upper) == "AB"
    assert cache.get_or_make("ab", str.lower) == "AB"
    assert cache.get_or_make("toolong", str.upper) == "TOOLONG"
    assert "toolong" not in cache


def test_clock():
    clock = ManualClock(5)
    log = []
    clock.at(7, lambda: log.append(("b", clock())))
    clock.at(6, lambda: log.append(("a", clock())))
    clock.at(99, lambda: log.append("never"))
    assert clock.advance(2) == 2
    assert log == [("a", 6), ("b", 7)]
    assert clock() == 7
    with pytest.raises(ValueError):
        clock.at(1, print)
    with pytest.raises(ValueError):
        clock.advance(-1)
