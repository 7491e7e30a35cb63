"""Sets of numbers made of spans."""

from bisect import bisect_right

from .span import EmptySpan, Span


class SpanSet:
    """Sorted spans with gaps between them; spans that overlap or touch are joined."""

    def __init__(self, spans=()):
        self.spans = []
        for span in sorted((span for span in spans if not span.empty), key=lambda span: span.start):
            if self.spans and self.spans[-1].touches(span):
                self.spans[-1] = self.spans[-1].hull(span)
            else:
                self.spans.append(span)

    def __iter__(self):
        return iter(self.spans)

    def __len__(self):
        return len(self.spans)

    def __eq__(self, other):
        return isinstance(other, SpanSet) and self.spans == other.spans

    def __repr__(self):
        return " ".join(map(repr, self.spans)) or "empty"

    def __contains__(self, number):
        index = bisect_right([span.start for span in self.spans], number) - 1
        return index >= 0 and number in self.spans[index]

    @property
    def length(self):
        """Sum of the lengths of the spans."""
        return sum(span.length for span in self.spans)

    def hull(self):
        """Return the smallest span that covers the set."""
        if not self.spans:
            raise EmptySpan("the empty set has no hull")
        return Span(self.spans[0].start, self.spans[-1].end)

    def __or__(self, other):
        return SpanSet([*self.spans, *other.spans])

    def __and__(self, other):
        common = []
        left, right = 0, 0
        while left < len(self.spans) and right < len(other.spans):
            first, second = self.spans[left], other.spans[right]
            common.append(first & second)
            if first.end < second.end:
                left += 1
            else:
                right += 1
        return SpanSet(common)

    def __sub__(self, other):
        rest = []
        for span in self.spans:
            start = span.start
            for hole in other.spans:
                if hole.end <= start or hole.start >= span.end:
                    continue
                rest.append(Span(start, hole.start))
                start = hole.end
            rest.append(Span(start, span.end))
        return SpanSet(rest)

    def __xor__(self, other):
        return (self - other) | (other - self)

    def gaps(self, within=None):
        """Return what is missing within a span, by default between the first and the last number."""
        if within is None:
            if not self.spans:
                return SpanSet()
            within = self.hull()
        return SpanSet([within]) - self

    def grown(self, by):
        """Return the set with every span longer by so much at both ends; a negative number shrinks."""
        return SpanSet([Span(span.start - by, span.end + by) for span in self.spans])

    def longest(self):
        """Return the longest span, the first of several."""
        if not self.spans:
            raise EmptySpan("the empty set has no longest span")
        best = self.spans[0]
        for span in self.spans:
            if span.length > best.length:
                best = span
        return best

    def covers(self, other):
        """Return True if every number of another set is in this one."""
        return not (other - self).spans
