"""Outlines and trees."""

ROMAN = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


def roman(number):
    """Return a number from 1 to 39 in small Roman figures."""
    if not 1 <= number < 40:
        raise ValueError(f"{number} is not in 1 to 39")
    text = ""
    for value, figure in ROMAN:
        while number >= value:
            text += figure
            number -= value
    return text


def letters(number):
    """Return a, b, ... z, aa, ab, ... for 1, 2, ..."""
    text = ""
    while number > 0:
        number, rest = divmod(number - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


class Outline:
    """Headings with levels, numbered as they are added."""

    def __init__(self, styles=("1", "a", "i")):
        self.styles = styles
        self.counts = []
        self.entries = []

    def add(self, text, level=0):
        """Append a heading. A heading may be one level deeper than the one before, not more."""
        if level > len(self.counts):
            raise ValueError(f"level {level} has no parent")
        self.counts = self.counts[: level + 1]
        if len(self.counts) == level:
            self.counts.append(0)
        self.counts[level] += 1
        self.entries.append((level, self.counts[level], text))

    def label(self, level, number):
        """Return the number of a heading in the style of its level."""
        style = self.styles[level % len(self.styles)]
        if style == "a":
            return letters(number)
        if style == "i":
            return roman(number)
        return str(number)

    def render(self, indent=2):
        """Return the outline as text."""
        lines = []
        for level, number, text in self.entries:
            lines.append(" " * (indent * level) + self.label(level, number) + ". " + text)
        return "\n".join(lines)


def tree_lines(tree, name="."):
    """Return the lines of a tree of nested dictionaries, as the command `tree` prints it."""
    lines = [name]
    entries = list(tree.items())
    for index, (label, children) in enumerate(entries):
        last = index == len(entries) - 1
        branch, below = ("`-- ", "    ") if last else ("|-- ", "|   ")
        first, *rest = tree_lines(children or {}, label)
        lines.append(branch + first)
        lines.extend(below + line for line in rest)
    return lines
