"""Lines of paragraphs."""

VOWELS = "aeiouy"


def hyphenate(word):
    """Return the parts between which a word may be broken: before a consonant that follows a vowel.

    No part is shorter than two letters.
    """
    parts = []
    start = 0
    for index in range(2, len(word) - 2):
        before, here, after = word[index - 1].lower(), word[index].lower(), word[index + 1].lower()
        breakable = before in VOWELS and here not in VOWELS and after in VOWELS
        if breakable and index - start >= 2:
            parts.append(word[start:index])
            start = index
    parts.append(word[start:])
    return parts


def split_long(word, width):
    """Return pieces of a word, none longer than a width; pieces that are continued end in a hyphen."""
    pieces = []
    while len(word) > width:
        best = width - 1
        length = 0
        for part in hyphenate(word)[:-1]:
            length += len(part)
            if length <= width - 1:
                best = length
        pieces.append(word[:best] + "-")
        word = word[best:]
    pieces.append(word)
    return pieces


def justified(line, width):
    """Return a line with its blanks widened to fill a width; the first blanks get what is left over."""
    words = line.split()
    if len(words) < 2:
        return line
    gaps = len(words) - 1
    blanks = width - sum(len(word) for word in words)
    size, extra = divmod(blanks, gaps)
    text = words[0]
    for index, word in enumerate(words[1:]):
        text += " " * (size + (1 if index < extra else 0)) + word
    return text


def wrap(text, width, indent="", justify=False):
    """Return the lines of a paragraph, none longer than `width`; all but the first begin with `indent`."""
    if width < 2 + len(indent):
        raise ValueError(f"width {width} is too small")
    words = []
    for word in text.split():
        words.extend(split_long(word, width - len(indent)))
    lines = []
    line = ""
    for word in words:
        start = indent if lines else ""
        if not line:
            line = start + word
        elif len(line) + 1 + len(word) <= width:
            line += " " + word
        else:
            lines.append(line)
            line = indent + word
    if line:
        lines.append(line)
    if justify:
        filled = []
        for index, line in enumerate(lines[:-1]):
            lead = indent if index else ""
            filled.append(lead + justified(line[len(lead) :], width - len(lead)))
        lines = filled + lines[-1:]
    return lines


def minimal_raggedness(words, width):
    """Return lines that minimise the sum of squared blanks at their ends, the last line excepted."""
    count = len(words)
    best = [0] + [float("inf")] * count
    breaks = [0] * (count + 1)
    for end in range(1, count + 1):
        length = -1
        for start in range(end - 1, -1, -1):
            length += len(words[start]) + 1
            if length > width and end - start > 1:
                break
            slack = max(width - length, 0)
            cost = best[start] + (0 if end == count else slack * slack)
            if cost < best[end]:
                best[end] = cost
                breaks[end] = start
    lines = []
    end = count
    while end > 0:
        lines.append(" ".join(words[breaks[end] : end]))
        end = breaks[end]
    return lines[::-1]
