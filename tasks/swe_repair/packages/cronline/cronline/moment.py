"""Minutes of the Gregorian calendar."""

MINUTES_PER_DAY = 24 * 60


def is_leap(year):
    """Return True if a year has 366 days."""
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def days_in_month(year, month):
    """Return the number of days of a month, 1 to 12."""
    if month == 2:
        return 29 if is_leap(year) else 28
    return 30 if month in (4, 6, 9, 11) else 31


def days_before_year(year):
    """Return the days from the first day of year 1 to the first day of `year`."""
    before = year - 1
    return before * 365 + before // 4 - before // 100 + before // 400


class Moment:
    """One minute: year, month, day, hour, minute. Moments compare, subtract and hash."""

    def __init__(self, year, month, day, hour=0, minute=0):
        if not 1 <= month <= 12:
            raise ValueError(f"month {month} is not in 1 to 12")
        if not 1 <= day <= days_in_month(year, month):
            raise ValueError(f"{year}-{month:02d} has no day {day}")
        if not (0 <= hour < 24 and 0 <= minute < 60):
            raise ValueError(f"no such time: {hour}:{minute:02d}")
        self.year, self.month, self.day, self.hour, self.minute = year, month, day, hour, minute

    @classmethod
    def parse(cls, text):
        """Read "YYYY-MM-DD HH:MM"; the time may be left out."""
        date, _, time = text.strip().partition(" ")
        year, month, day = (int(part) for part in date.split("-"))
        hour, minute = (int(part) for part in time.split(":")) if time else (0, 0)
        return cls(year, month, day, hour, minute)

    @classmethod
    def from_ordinal(cls, minutes):
        """Return the moment that is `minutes` after the start of year 1."""
        days, rest = divmod(minutes, MINUTES_PER_DAY)
        year = days // 366 + 1
        while days_before_year(year + 1) <= days:
            year += 1
        days -= days_before_year(year)
        month = 1
        while days >= days_in_month(year, month):
            days -= days_in_month(year, month)
            month += 1
        return cls(year, month, days + 1, rest // 60, rest % 60)

    def ordinal(self):
        """Return the minutes since the start of year 1."""
        days = days_before_year(self.year)
        for month in range(1, self.month):
            days += days_in_month(self.year, month)
        return (days + self.day - 1) * MINUTES_PER_DAY + self.hour * 60 + self.minute

    def weekday(self):
        """Return the day of the week: 0 for Sunday to 6 for Saturday."""
        return (self.ordinal() // MINUTES_PER_DAY + 1) % 7

    def plus(self, days=0, hours=0, minutes=0):
        """Return the moment that is so much later."""
        return Moment.from_ordinal(self.ordinal() + days * MINUTES_PER_DAY + hours * 60 + minutes)

    def key(self):
        """Return the five numbers as a tuple, which sorts as time does."""
        return (self.year, self.month, self.day, self.hour, self.minute)

    def __sub__(self, other):
        return self.ordinal() - other.ordinal()

    def __eq__(self, other):
        return isinstance(other, Moment) and self.key() == other.key()

    def __lt__(self, other):
        return self.key() < other.key()

    def __le__(self, other):
        return self.key() <= other.key()

    def __hash__(self):
        return hash(self.key())

    def __repr__(self):
        return f"Moment({self.year}-{self.month:02d}-{self.day:02d} {self.hour:02d}:{self.minute:02d})"
