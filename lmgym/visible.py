"""Text of strangers for a terminal or a page: what would be invisible, or control it, is written as escapes."""


def visible(text: str) -> str:
    """Return text on one line, with invisible and control characters written as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def visible_lines(text: str) -> str:
    """Make each line visible."""
    return "\n".join(visible(line) for line in text.split("\n"))
