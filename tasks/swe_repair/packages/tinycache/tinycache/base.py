"""What all caches share."""

MISSING = object()


class TooLarge(ValueError):
    """An item that weighs more than the whole cache may."""


class Counters:
    """Hits, misses and evictions."""

    def __init__(self):
        self.hits = 0
        self.misses = 0
        self.evictions = 0

    @property
    def hit_rate(self):
        """Share of the look-ups that were answered; 0 before the first one."""
        total = self.hits + self.misses
        return self.hits / total if total else 0.0

    def reset_counters(self):
        """Set all counters to 0."""
        self.hits = self.misses = self.evictions = 0


class Cache(Counters):
    """A dictionary that forgets. Subclasses say in `victim` which key goes first."""

    def __init__(self, capacity, weigh=None):
        super().__init__()
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        self.capacity = capacity
        self.weigh = weigh or (lambda value: 1)
        self.values = {}
        self.weight = 0
        self.listeners = []

    def victim(self):
        """Return the key to evict next."""
        raise NotImplementedError

    def touched(self, key):
        """Take note that a key was read or written."""

    def forgotten(self, key):
        """Take note that a key was removed."""

    def alive(self, key):
        """Return True if a stored key may still be read."""
        return True

    def __len__(self):
        return len(self.values)

    def __contains__(self, key):
        return key in self.values and self.alive(key)

    def get(self, key, default=None):
        """Return the value of a key and count a hit, or the default and count a miss."""
        value = self.values.get(key, MISSING)
        if value is not MISSING and not self.alive(key):
            self.remove(key)
            value = MISSING
        if value is MISSING:
            self.misses += 1
            return default
        self.hits += 1
        self.touched(key)
        return value

    def peek(self, key, default=None):
        """Return the value of a key without counting or taking note."""
        return self.values[key] if key in self else default

    def put(self, key, value):
        """Store a value, and evict others until all fit."""
        weight = self.weigh(value)
        if weight > self.capacity:
            raise TooLarge(f"{key!r} weighs {weight}, more than {self.capacity}")
        if key in self.values:
            self.weight -= self.weigh(self.values[key])
            del self.values[key]
        while self.weight + weight > self.capacity:
            self.evict()
        self.values[key] = value
        self.weight += weight
        self.touched(key)

    def remove(self, key):
        """Remove a key; return True if it was there."""
        if key not in self.values:
            return False
        self.weight -= self.weigh(self.values.pop(key))
        self.forgotten(key)
        return True

    def evict(self):
        """Remove the next victim, tell the listeners, and return its key."""
        key = self.victim()
        value = self.values[key]
        self.remove(key)
        self.evictions += 1
        for listener in self.listeners:
            listener(key, value)
        return key

    def resize(self, capacity):
        """Change the capacity; return the keys that had to go."""
        if capacity < 1:
            raise ValueError(f"capacity must be at least 1, not {capacity}")
        self.capacity = capacity
        gone = []
        while self.weight > capacity:
            gone.append(self.evict())
        return gone

    def clear(self):
        """Remove everything; the counters stay."""
        for key in list(self.values):
            self.remove(key)

    def get_or_make(self, key, make):
        """Return the value of a key, made and stored if it is missing."""
        value = self.get(key, MISSING)
        if value is MISSING:
            value = make(key)
            try:
                self.put(key, value)
            except TooLarge:
                pass
        return value
