"""Rectangles of characters."""

STYLES = {"plain": "+-+|", "round": "╭─╮│╰╯", "double": "╔═╗║╚╝"}


class Block:
    """Something that has lines of one width."""

    def lines(self):
        """Return the lines, all of the same length."""
        raise NotImplementedError

    @property
    def width(self):
        """Number of characters of a line."""
        return max((len(line) for line in self.lines()), default=0)

    @property
    def height(self):
        """Number of lines."""
        return len(self.lines())

    def __str__(self):
        return "\n".join(line.rstrip() for line in self.lines())


def aligned(text, width, how):
    """Return a text padded to a width: "l" left, "r" right, "c" centred with the odd blank on the right."""
    if how == "r":
        return text.rjust(width)
    if how == "c":
        left = (width - len(text)) // 2
        return " " * left + text + " " * (width - len(text) - left)
    return text.ljust(width)


class Box(Block):
    """Text as a rectangle."""

    def __init__(self, text="", align="l", width=None):
        rows = text.split("\n") if isinstance(text, str) else list(text)
        self.align = align
        size = max((len(row) for row in rows), default=0)
        if width is not None:
            size = max(size, width)
        self.rows = [aligned(row, size, align) for row in rows]

    def lines(self):
        """Return the padded lines."""
        return list(self.rows)

    def padded(self, horizontal=1, vertical=0):
        """Return the box with blanks around it."""
        blank = " " * (self.width + 2 * horizontal)
        side = " " * horizontal
        rows = [blank] * vertical + [side + row + side for row in self.rows] + [blank] * vertical
        return Box(rows)

    def framed(self, style="plain", title=""):
        """Return the box with a frame; the title stands in the upper line and is cut if it is too long."""
        if style not in STYLES:
            raise ValueError(f"no style {style!r}; there are {', '.join(STYLES)}")
        marks = STYLES[style]
        first, line, last, side = marks[:4]
        if len(marks) == 6:
            low_first, low_last = marks[4], marks[5]
        else:
            low_first, low_last = first, last
        top = line * self.width
        if title:
            label = f" {title} "[: self.width]
            top = label + line * (self.width - len(label))
        rows = [first + top + last]
        rows += [side + row + side for row in self.rows]
        rows.append(low_first + line * self.width + low_last)
        return Box(rows)

    def rotated(self):
        """Return the box turned by a quarter to the right."""
        return Box(["".join(row[index] for row in reversed(self.rows)) for index in range(self.width)])


def beside(boxes, gap=1, align="top"):
    """Return boxes side by side; shorter ones stand at the top, the middle or the bottom."""
    height = max((box.height for box in boxes), default=0)
    rows = [""] * height
    for number, box in enumerate(boxes):
        missing = height - box.height
        if align == "top":
            above = 0
        elif align == "bottom":
            above = missing
        else:
            above = missing // 2
        blank = " " * box.width
        content = [blank] * above + box.lines() + [blank] * (missing - above)
        space = " " * gap if number else ""
        rows = [row + space + line for row, line in zip(rows, content)]
    return Box(rows)


def stacked(boxes, align="l", gap=0):
    """Return boxes below each other, all as wide as the widest."""
    width = max((box.width for box in boxes), default=0)
    rows = []
    for number, box in enumerate(boxes):
        if number:
            rows.extend([" " * width] * gap)
        rows.extend(aligned(line, width, align) for line in box.lines())
    return Box(rows)
