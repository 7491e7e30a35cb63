"""Tables and columns."""

from .boxes import aligned
from .wrapping import wrap


class Table:
    """Rows of cells under a head."""

    def __init__(self, head, align=None, limit=None):
        self.head = [str(cell) for cell in head]
        self.align = align or "l" * len(self.head)
        if len(self.align) != len(self.head):
            raise ValueError(f"{len(self.head)} columns need {len(self.head)} letters of alignment, not {self.align!r}")
        self.limit = limit
        self.rows = []

    def add(self, *cells):
        """Append a row."""
        if len(cells) != len(self.head):
            raise ValueError(f"a row has {len(self.head)} cells, not {len(cells)}")
        self.rows.append([str(cell) for cell in cells])

    def rule(self):
        """Append a line between rows."""
        self.rows.append(None)

    def sort(self, column, reverse=False):
        """Sort the rows by a column; numbers sort by value and stand before words. Lines are dropped."""

        def key(row):
            cell = row[column].replace(",", "")
            try:
                return (0, float(cell), "")
            except ValueError:
                return (1, 0.0, cell)

        self.rows = sorted((row for row in self.rows if row is not None), key=key, reverse=reverse)

    def _wrapped(self, row):
        if self.limit is None:
            return [[cell] for cell in row]
        return [wrap(cell, self.limit) or [""] for cell in row]

    def widths(self):
        """Return the width of every column."""
        sizes = [0] * len(self.head)
        for row in [self.head] + [row for row in self.rows if row is not None]:
            for index, lines in enumerate(self._wrapped(row)):
                sizes[index] = max([sizes[index]] + [len(line) for line in lines])
        return sizes

    def render(self, separator=" | "):
        """Return the table as text; cells above the limit are wrapped."""
        sizes = self.widths()
        line = "-" * (sum(sizes) + len(separator) * (len(sizes) - 1))
        output = []
        for row in [self.head, None] + self.rows:
            if row is None:
                output.append(line)
                continue
            cells = self._wrapped(row)
            height = max(len(lines) for lines in cells)
            for index in range(height):
                parts = []
                for lines, size, how in zip(cells, sizes, self.align):
                    text = lines[index] if index < len(lines) else ""
                    parts.append(aligned(text, size, how))
                output.append(separator.join(parts).rstrip())
        return "\n".join(output)


def columns(words, width, gap=2):
    """Return words in as few lines as fit a width, sorted down the columns."""
    if not words:
        return ""
    for count in range(1, len(words) + 1):
        lines = [words[start::count] for start in range(count)]
        depth = max(len(line) for line in lines)
        sizes = [max(len(line[index]) for line in lines if index < len(line)) for index in range(depth)]
        if sum(sizes) + gap * (depth - 1) <= width or count == len(words):
            break
    rows = []
    for line in lines:
        rows.append((" " * gap).join(word.ljust(size) for word, size in zip(line, sizes)).rstrip())
    return "\n".join(rows)
