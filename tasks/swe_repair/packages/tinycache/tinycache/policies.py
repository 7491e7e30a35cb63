"""Caches by what they evict."""

from .base import Cache


class FIFOCache(Cache):
    """Evicts the key that was stored first; writing a key again does not renew it."""

    def __init__(self, capacity, weigh=None):
        super().__init__(capacity, weigh)
        self.order = []

    def touched(self, key):
        """Remember a new key."""
        if key not in self.order:
            self.order.append(key)

    def forgotten(self, key):
        """Forget a key."""
        self.order.remove(key)

    def victim(self):
        """Return the oldest key."""
        return self.order[0]


class LRUCache(FIFOCache):
    """Evicts the key that was not used for the longest time."""

    def touched(self, key):
        """Move a key to the end of the line."""
        if key in self.order:
            self.order.remove(key)
        self.order.append(key)

    def recent(self, count):
        """Return the keys used last, newest first."""
        return self.order[::-1][:count]


class LFUCache(Cache):
    """Evicts the key that was used least often; of several, the one not used for the longest time.

    After every `period` uses all counts are halved, so that old fame fades.
    """

    def __init__(self, capacity, weigh=None, period=None):
        super().__init__(capacity, weigh)
        self.period = period
        self.uses = {}
        self.last = {}
        self.tick = 0

    def touched(self, key):
        """Count a use."""
        self.tick += 1
        self.uses[key] = self.uses.get(key, 0) + 1
        self.last[key] = self.tick
        if self.period is not None and self.tick % self.period == 0:
            for name in self.uses:
                self.uses[name] = self.uses[name] // 2

    def forgotten(self, key):
        """Drop the count of a key."""
        del self.uses[key]
        del self.last[key]

    def victim(self):
        """Return the key with the smallest count."""
        return min(self.values, key=lambda key: (self.uses[key], self.last[key]))


class TTLCache(LRUCache):
    """Values expire so many seconds after they were written; what has expired goes first."""

    def __init__(self, capacity, ttl, clock, weigh=None):
        super().__init__(capacity, weigh)
        if ttl <= 0:
            raise ValueError(f"ttl must be positive, not {ttl}")
        self.ttl = ttl
        self.clock = clock
        self.deadlines = {}

    def put(self, key, value, ttl=None):
        """Store a value, optionally with a time of its own."""
        super().put(key, value)
        self.deadlines[key] = self.clock() + (self.ttl if ttl is None else ttl)

    def forgotten(self, key):
        """Drop the deadline of a key."""
        super().forgotten(key)
        self.deadlines.pop(key, None)

    def alive(self, key):
        """Return True before the deadline of a key."""
        return self.clock() < self.deadlines[key]

    def victim(self):
        """Return a key that has expired, or the one not used for the longest time."""
        for key in self.order:
            if not self.alive(key):
                return key
        return self.order[0]

    def expire(self):
        """Remove all that has expired; return the keys in the order of their deadlines."""
        dead = [key for key in self.values if not self.alive(key)]
        dead.sort(key=lambda key: self.deadlines[key])
        for key in dead:
            self.remove(key)
        return dead

    def remaining(self, key):
        """Return the seconds a key has left; 0 if it is not there."""
        if key not in self:
            return 0
        return self.deadlines[key] - self.clock()


class SegmentedCache(Cache):
    """Two lines: new keys are on probation, keys used again are protected until others push them back."""

    def __init__(self, capacity, protected=0.5, weigh=None):
        super().__init__(capacity, weigh)
        self.room = int(capacity * protected)
        self.probation = []
        self.protected = []

    def touched(self, key):
        """Put a key on probation, or promote it."""
        if key in self.protected:
            self.protected.remove(key)
            self.protected.append(key)
        elif key in self.probation:
            self.probation.remove(key)
            self.protected.append(key)
            if len(self.protected) > self.room:
                self.probation.append(self.protected.pop(0))
        else:
            self.probation.append(key)

    def forgotten(self, key):
        """Forget a key."""
        if key in self.probation:
            self.probation.remove(key)
        else:
            self.protected.remove(key)

    def victim(self):
        """Return the oldest key on probation; a protected one only if there is no other."""
        line = self.probation or self.protected
        return line[0]
