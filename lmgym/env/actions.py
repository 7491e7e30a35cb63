"""Reading an action out of a policy's words: a tag, a number, a JSON call, a function call, a command."""

from __future__ import annotations

import re

NUMBER = re.compile(r"(?<![\w.])[-+]?\d{1,18}(?:\.\d{1,18})?(?![\w.]*\w)")


def parse_tag(action: str, tag: str) -> str | None:
    """Return what stands between the last `<tag>` and its end, stripped; None where there is no such pair."""
    _, opening, rest = action.rpartition(f"<{tag}>")
    inside, closing, _ = rest.partition(f"</{tag}>")
    return inside.strip() if opening and closing else None


def parse_number(action: str, *, tag: str | None = None) -> float | None:
    """Return the single number in `action`, or within its `tag`; None for none or for several."""
    text = action if tag is None else parse_tag(action, tag)
    found = NUMBER.findall(text or "")
    return float(found[0]) if len(found) == 1 else None
