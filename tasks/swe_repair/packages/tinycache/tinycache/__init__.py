"""Caches of bounded size."""

from .base import Cache, TooLarge
from .clock import ManualClock
from .layers import Layered, memoize
from .policies import FIFOCache, LFUCache, LRUCache, SegmentedCache, TTLCache

__all__ = [
    "Cache",
    "FIFOCache",
    "LFUCache",
    "LRUCache",
    "Layered",
    "ManualClock",
    "SegmentedCache",
    "TTLCache",
    "TooLarge",
    "memoize",
]
