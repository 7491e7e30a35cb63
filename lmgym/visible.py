"""Text of strangers for a terminal or a page: what would be invisible, or control it, is written as escapes."""

from unicodedata import category


def visible(text: str) -> str:
    """Return text on one line, with invisible and control characters written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def visible_lines(text: str) -> str:
    """Make text visible, but leave line breaks, tabs and all kinds of spaces as they are."""
    return "".join(c if c in "\n\t" or category(c) == "Zs" else visible(c) for c in text)
