"""Sets and maps of half-open intervals."""

from .maps import SpanMap
from .planning import first_free, most_at_once, parse_spans, rooms, utilisation
from .sets import SpanSet
from .span import EmptySpan, Span

__all__ = [
    "EmptySpan",
    "Span",
    "SpanMap",
    "SpanSet",
    "first_free",
    "most_at_once",
    "parse_spans",
    "rooms",
    "utilisation",
]
