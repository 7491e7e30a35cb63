import pytest
from tinycache import FIFOCache, LFUCache, LRUCache, ManualClock, SegmentedCache, TTLCache


def filled(cache, keys):
    for key in keys:
        cache.put(key, key.upper())
    return cache


def test_fifo_ignores_reads():
    cache = filled(FIFOCache(2), "ab")
    cache.get("a")
    cache.put("c", "C")
    assert list(cache.values) == ["b", "c"]


def test_fifo_ignores_rewrites():
    cache = filled(FIFOCache(2), "aba")
    cache.put("c", "C")
    assert "a" not in cache


def test_lru_keeps_what_was_read():
    cache = filled(LRUCache(2), "ab")
    cache.get("a")
    cache.put("c", "C")
    assert "a" in cache
    assert "b" not in cache


def test_lru_recent():
    cache = filled(LRUCache(3), "abc")
    cache.get("a")
    assert cache.recent(2) == ["a", "c"]


def test_lfu_evicts_the_rarest():
    cache = filled(LFUCache(2), "ab")
    cache.get("a")
    cache.put("c", "C")
    assert sorted(cache.values) == ["a", "c"]


def test_lfu_ties_go_to_the_oldest():
    cache = filled(LFUCache(3), "abc")
    cache.put("d", "D")
    assert sorted(cache.values) == ["b", "c", "d"]


def test_lfu_counts_fade():
    cache = LFUCache(2, period=4)
    cache.put("a", 1)
    cache.get("a")
    cache.get("a")
    cache.put("b", 2)
    assert cache.uses == {"a": 1, "b": 0}
    cache.get("b")
    cache.get("b")
    cache.put("c", 3)
    assert sorted(cache.values) == ["b", "c"]


def test_ttl_expires():
    clock = ManualClock()
    cache = TTLCache(3, ttl=10, clock=clock)
    cache.put("a", 1)
    clock.advance(9)
    assert cache.get("a") == 1
    assert cache.remaining("a") == 1
    clock.advance(1)
    assert "a" not in cache
    assert cache.get("a") is None
    assert len(cache) == 0


def test_reading_does_not_renew():
    clock = ManualClock()
    cache = TTLCache(3, ttl=10, clock=clock)
    cache.put("a", 1)
    clock.advance(5)
    cache.get("a")
    clock.advance(6)
    assert cache.remaining("a") == 0


def test_expired_keys_go_first():
    clock = ManualClock()
    cache = TTLCache(2, ttl=10, clock=clock)
    cache.put("a", 1)
    cache.put("b", 2, ttl=1)
    clock.advance(2)
    cache.put("c", 3)
    assert sorted(cache.values) == ["a", "c"]


def test_expire_lists_by_deadline():
    clock = ManualClock()
    cache = TTLCache(5, ttl=10, clock=clock)
    cache.put("a", 1)
    cache.put("b", 2, ttl=3)
    cache.put("c", 3, ttl=50)
    clock.advance(20)
    assert cache.expire() == ["b", "a"]
    assert cache.expire() == []
    with pytest.raises(ValueError):
        TTLCache(1, ttl=0, clock=clock)


def test_segmented_protects_what_is_used_twice():
    cache = filled(SegmentedCache(4), "ab")
    cache.get("a")
    filled(cache, "cdef")
    assert "a" in cache
    assert list(cache.probation) == ["d", "e", "f"]


def test_segmented_pushes_back():
    cache = filled(SegmentedCache(4), "abc")
    for key in "abc":
        cache.get(key)
    assert cache.protected == ["b", "c"]
    assert cache.probation == ["a"]
    cache.get("b")
    assert cache.protected == ["c", "b"]


def test_segmented_forgets():
    cache = filled(SegmentedCache(4), "ab")
    cache.get("a")
    cache.remove("a")
    cache.remove("b")
    assert cache.protected == cache.probation == []


def test_capacity():
    with pytest.raises(ValueError):
        LRUCache(0)
