"""Values by interval."""

from .sets import SpanSet
from .span import Span


class SpanMap:
    """A value for some numbers; equal values side by side are one span."""

    def __init__(self, items=()):
        self.items = []
        for span, value in items:
            self.set(span, value)

    def set(self, span, value):
        """Give all numbers of a span a value, whatever they had before."""
        if span.empty:
            return
        self.clear(span)
        self.items.append((span, value))
        self.items.sort(key=lambda item: item[0].start)
        self._join()

    def clear(self, span):
        """Take the values of a span away."""
        kept = []
        for other, value in self.items:
            for rest in SpanSet([other]) - SpanSet([span]):
                kept.append((rest, value))
        self.items = kept

    def get(self, number, default=None):
        """Return the value of a number."""
        for span, value in self.items:
            if number in span:
                return value
        return default

    def _join(self):
        joined = []
        for span, value in self.items:
            if joined and joined[-1][1] == value and joined[-1][0].end == span.start:
                joined[-1] = (joined[-1][0].hull(span), value)
            else:
                joined.append((span, value))
        self.items = joined

    def domain(self):
        """Return the set of numbers that have a value."""
        return SpanSet([span for span, _ in self.items])

    def where(self, test):
        """Return the set of numbers whose value passes a test."""
        return SpanSet([span for span, value in self.items if test(value)])

    def integral(self, within):
        """Return the sum of value times length over a span; numbers without a value count as 0."""
        total = 0
        for span, value in self.items:
            total += value * (span & within).length
        return total

    def combined(self, other, operation):
        """Return the map of operation(mine, theirs) where both have a value."""
        result = SpanMap()
        for first, mine in self.items:
            for second, theirs in other.items:
                common = first & second
                if not common.empty:
                    result.set(common, operation(mine, theirs))
        return result

    def steps(self):
        """Return (start, value) at every change, with None where a gap begins."""
        changes = []
        end = None
        for span, value in self.items:
            if end is not None and span.start > end:
                changes.append((end, None))
            changes.append((span.start, value))
            end = span.end
        if end is not None:
            changes.append((end, None))
        return changes


def counted(spans):
    """Return the map from numbers to how many of the spans contain them."""
    borders = {}
    for span in spans:
        if not span.empty:
            borders[span.start] = borders.get(span.start, 0) + 1
            borders[span.end] = borders.get(span.end, 0) - 1
    result = SpanMap()
    level = 0
    points = sorted(borders)
    for point, following in zip(points, points[1:]):
        level += borders[point]
        if level > 0:
            result.set(Span(point, following), level)
    return result
