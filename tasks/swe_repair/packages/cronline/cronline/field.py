"""One field of a cron line: a set of numbers."""

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")


class FieldError(ValueError):
    """A field that cannot be read."""


class Field:
    """The bounds of a field and the names its numbers have."""

    def __init__(self, name, low, high, names=(), first=0):
        self.name = name
        self.low = low
        self.high = high
        self.names = {word: number for number, word in enumerate(names, start=first)}

    def number(self, text):
        """Return the number that a digit string or a name stands for."""
        word = text.lower()
        if word in self.names:
            return self.names[word]
        if not word.isdigit():
            raise FieldError(f"{self.name}: {text!r} is neither a number nor a name")
        value = int(word)
        if not self.low <= value <= self.high:
            raise FieldError(f"{self.name}: {value} is not in {self.low} to {self.high}")
        return value

    def span(self, text):
        """Return first and last number of a star, a number or a range."""
        if text == "*":
            return self.low, self.high
        first, dash, last = text.partition("-")
        start = self.number(first)
        if not dash:
            return start, start
        return start, self.number(last)

    def values(self, text):
        """Return the set of numbers of one item: a span with an optional step. Ranges may wrap around."""
        span, slash, step_text = text.partition("/")
        start, end = self.span(span)
        step = 1
        if slash:
            if not step_text.isdigit() or int(step_text) == 0:
                raise FieldError(f"{self.name}: step {step_text!r} is not a positive number")
            step = int(step_text)
            if start == end and span != "*":
                end = self.high
        if end < start:
            size = self.high - self.low + 1
            return {(number - self.low) % size + self.low for number in range(start, end + size + 1, step)}
        return set(range(start, end + 1, step))


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY = Field("day", 1, 31)
MONTH = Field("month", 1, 12, MONTHS, first=1)
WEEKDAY = Field("weekday", 0, 7, WEEKDAYS)
FIELDS = (MINUTE, HOUR, DAY, MONTH, WEEKDAY)


def parse_field(text, field):
    """Return the sorted numbers that a comma-separated list of items allows.

    Of the weekday field, 7 means Sunday as 0 does.
    """
    if not text:
        raise FieldError(f"{field.name}: empty")
    allowed = set()
    for item in text.split(","):
        allowed |= field.values(item)
    if field is WEEKDAY and 7 in allowed:
        allowed = (allowed - {7}) | {0}
    return sorted(allowed)


def describe(numbers, names=None):
    """Return numbers in words: runs of three or more are written as ranges, as in "1-3, 7"."""
    parts = []
    index = 0
    label = (lambda number: names[number]) if names else str
    while index < len(numbers):
        end = index
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        if end - index >= 2:
            parts.append(f"{label(numbers[index])}-{label(numbers[end])}")
        else:
            parts.extend(label(number) for number in numbers[index : end + 1])
        index = end + 1
    return ", ".join(parts)
