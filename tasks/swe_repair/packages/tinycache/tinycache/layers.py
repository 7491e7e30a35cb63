"""Caches in front of caches, and of functions."""

from functools import wraps

from .base import MISSING
from .policies import LRUCache


class Layered:
    """A small cache in front of a large one. What the front evicts moves to the back."""

    def __init__(self, front, back):
        self.front = front
        self.back = back
        front.listeners.append(self._demote)

    def _demote(self, key, value):
        self.back.put(key, value)

    def get(self, key, default=None):
        """Return a value from either layer; one from the back moves to the front."""
        value = self.front.get(key, MISSING)
        if value is not MISSING:
            return value
        value = self.back.get(key, MISSING)
        if value is MISSING:
            return default
        self.back.remove(key)
        self.front.put(key, value)
        return value

    def put(self, key, value):
        """Store a value in front; an old one in the back is removed."""
        self.back.remove(key)
        self.front.put(key, value)

    def __len__(self):
        return len(self.front) + len(self.back)

    def __contains__(self, key):
        return key in self.front or key in self.back

    @property
    def hit_rate(self):
        """Share of the look-ups that either layer answered."""
        total = self.front.hits + self.front.misses
        answered = self.front.hits + self.back.hits
        return answered / total if total else 0.0


def call_key(args, kwargs, typed=False):
    """Return a hashable key of a call; `typed` tells 1 from 1.0 and True."""
    named = tuple(sorted(kwargs.items()))
    key = (tuple(args), named)
    if typed:
        kinds = [type(value) for value in args] + [type(value) for _, value in named]
        key += (tuple(kinds),)
    return key


def memoize(cache=None, capacity=128, typed=False, keep=lambda value: True):
    """Return a decorator that remembers results; `keep` says which results are worth it."""

    def decorate(function):
        store = LRUCache(capacity) if cache is None else cache

        @wraps(function)
        def remembered(*args, **kwargs):
            key = call_key(args, kwargs, typed)
            value = store.get(key, MISSING)
            if value is MISSING:
                value = function(*args, **kwargs)
                if keep(value):
                    store.put(key, value)
            return value

        remembered.cache = store
        return remembered

    return decorate
