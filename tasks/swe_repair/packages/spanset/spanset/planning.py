"""Questions about rooms and times."""

import heapq

from .maps import counted
from .sets import SpanSet
from .span import Span


def minutes(text):
    """Return the minutes since midnight of a text "HH:MM" or "HH"."""
    hour, colon, minute = text.strip().partition(":")
    if not hour.isdigit() or (colon and not minute.isdigit()):
        raise ValueError(f"not a time: {text!r}")
    value = int(hour) * 60 + int(minute or 0)
    if int(minute or 0) > 59 or value > 24 * 60:
        raise ValueError(f"no such time: {text!r}")
    return value


def parse_spans(text):
    """Return the set of minutes that a text such as "9-12:30, 13:15-17" lists."""
    spans = []
    for part in text.split(","):
        if not part.strip():
            continue
        start, dash, end = part.partition("-")
        if not dash:
            raise ValueError(f"not a span: {part.strip()!r}")
        spans.append(Span(minutes(start), minutes(end)))
    return SpanSet(spans)


def render(spans):
    """Return a set of minutes as text that `parse_spans` reads."""
    parts = []
    for span in spans:
        hours = [f"{point // 60}:{point % 60:02d}" for point in (span.start, span.end)]
        parts.append("-".join(hours))
    return ", ".join(parts)


def most_at_once(spans):
    """Return the largest number of spans that share a number."""
    return max((level for _, level in counted(spans).items), default=0)


def rooms(spans):
    """Return a room for each span, so that no two in a room overlap and as few rooms as possible are used."""
    numbered = sorted(enumerate(spans), key=lambda pair: (pair[1].start, pair[1].end))
    chosen = [0] * len(numbered)
    busy = []
    free = []
    opened = 0
    for index, span in numbered:
        while busy and busy[0][0] <= span.start:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            room = heapq.heappop(free)
        else:
            room = opened
            opened += 1
        chosen[index] = room
        heapq.heappush(busy, (span.end, room))
    return chosen


def first_free(busy, length, within, margin=0):
    """Return the first free span of a length that keeps a margin from everything busy; None if there is none."""
    for gap in busy.grown(margin).gaps(within):
        if gap.length >= length:
            return Span(gap.start, gap.start + length)
    return None


def utilisation(busy, within):
    """Return the share of a span that is busy, between 0 and 1."""
    if within.empty:
        return 0.0
    return (busy & SpanSet([within])).length / within.length
