"""One half-open interval."""


class EmptySpan(ValueError):
    """A span that contains nothing where one with contents is needed."""


class Ordered:
    """Comparison of objects by their `key`."""

    def key(self):
        """Return what the object is compared by."""
        raise NotImplementedError

    def __eq__(self, other):
        return type(other) is type(self) and self.key() == other.key()

    def __lt__(self, other):
        return self.key() < other.key()

    def __hash__(self):
        return hash(self.key())


class Span(Ordered):
    """The numbers from `start` up to, but not including, `end`."""

    def __init__(self, start, end):
        self.start = start
        self.end = end

    def key(self):
        """Return start and end; all empty spans are equal."""
        if self.empty:
            return (0, 0)
        return (self.start, self.end)

    @property
    def empty(self):
        """True if the span contains no number."""
        return self.end <= self.start

    @property
    def length(self):
        """Length of the span; 0 if it is empty."""
        return 0 if self.empty else self.end - self.start

    @property
    def middle(self):
        """Point halfway between start and end."""
        if self.empty:
            raise EmptySpan("an empty span has no middle")
        return (self.start + self.end) / 2

    def __contains__(self, number):
        return self.start <= number < self.end

    def __repr__(self):
        return f"[{self.start}, {self.end})"

    def covers(self, other):
        """Return True if the other span lies within this one."""
        return other.empty or (self.start <= other.start and other.end <= self.end)

    def overlaps(self, other):
        """Return True if the spans share a number."""
        return not (self & other).empty

    def touches(self, other):
        """Return True if the union of two spans is one span."""
        if self.empty or other.empty:
            return True
        return self.start <= other.end and other.start <= self.end

    def __and__(self, other):
        return Span(max(self.start, other.start), min(self.end, other.end))

    def hull(self, other):
        """Return the smallest span that covers both."""
        if self.empty:
            return other
        if other.empty:
            return self
        return Span(min(self.start, other.start), max(self.end, other.end))

    def shifted(self, by):
        """Return the span moved along."""
        return Span(self.start + by, self.end + by)

    def pieces(self, size):
        """Return the span cut into pieces of a size; the last one may be shorter."""
        if size <= 0:
            raise ValueError(f"size must be positive, not {size}")
        cuts = []
        start = self.start
        while start < self.end:
            cuts.append(Span(start, min(start + size, self.end)))
            start += size
        return cuts

    def distance(self, other):
        """Return the length of the gap between two spans; 0 if they touch."""
        if self.touches(other):
            return 0
        if self.end < other.start:
            return other.start - self.end
        else:
            return self.start - other.end
