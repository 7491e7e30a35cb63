"""A whole cron line."""

from .field import FIELDS, WEEKDAYS, FieldError, describe, parse_field
from .moment import MINUTES_PER_DAY, Moment, days_in_month

ALIASES = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
YEARS = 8  # a leap day comes at least that often


class Schedule:
    """The minutes that five fields allow."""

    def __init__(self, minutes, hours, days, months, weekdays, text=""):
        self.minutes = minutes
        self.hours = hours
        self.days = days
        self.months = months
        self.weekdays = weekdays
        self.text = text

    @classmethod
    def parse(cls, text):
        """Read five fields separated by blanks, or an alias such as @daily."""
        line = ALIASES.get(text.strip().lower(), text)
        parts = line.split()
        if len(parts) != len(FIELDS):
            raise FieldError(f"a schedule has {len(FIELDS)} fields, not {len(parts)}: {text!r}")
        values = [parse_field(part, field) for part, field in zip(parts, FIELDS)]
        return cls(*values, text=line)

    def allows_day(self, moment):
        """Return True if the day is allowed; if both day fields are restricted, one match is enough."""
        if moment.month not in self.months:
            return False
        by_day = moment.day in self.days
        by_weekday = moment.weekday() in self.weekdays
        if len(self.days) < 31 and len(self.weekdays) < 7:
            return by_day or by_weekday
        return by_day and by_weekday

    def matches(self, moment):
        """Return True if the schedule runs at a moment."""
        return moment.minute in self.minutes and moment.hour in self.hours and self.allows_day(moment)

    def first_of_day(self, hour=0, minute=0):
        """Return the first allowed (hour, minute) of a day that is not before the given one; None if there is none."""
        for allowed_hour in self.hours:
            if allowed_hour < hour:
                continue
            for allowed_minute in self.minutes:
                if allowed_hour > hour or allowed_minute >= minute:
                    return allowed_hour, allowed_minute
        return None

    def next_after(self, moment):
        """Return the first run after a moment; None if there is none in the next eight years."""
        later = moment.plus(minutes=1)
        hour, minute = later.hour, later.minute
        year, month, day = later.year, later.month, later.day
        while year <= moment.year + YEARS:
            if month in self.months:
                for candidate in range(day, days_in_month(year, month) + 1):
                    start = Moment(year, month, candidate)
                    time = self.first_of_day(hour, minute) if self.allows_day(start) else None
                    if time is not None:
                        return Moment(year, month, candidate, *time)
                    hour = minute = 0
            hour = minute = 0
            day = 1
            if month == 12:
                year, month = year + 1, 1
            else:
                month += 1
        return None

    def runs(self, start, end):
        """Return all runs from `start` (included) to `end` (not included)."""
        found = []
        run = start if self.matches(start) else self.next_after(start)
        while run is not None and run < end:
            found.append(run)
            run = self.next_after(run)
        return found

    def runs_per_day(self):
        """Return how often the schedule runs on a day that it allows."""
        return len(self.minutes) * len(self.hours)

    def longest_gap(self, start, days):
        """Return the longest time between two runs within so many days, in minutes; 0 for fewer than two runs."""
        runs = self.runs(start, start.plus(minutes=days * MINUTES_PER_DAY))
        gaps = [later - earlier for earlier, later in zip(runs, runs[1:])]
        return max(gaps, default=0)

    def describe(self):
        """Return the schedule in words."""
        hours = "every hour" if len(self.hours) == 24 else "hour " + describe(self.hours)
        minutes = "every minute" if len(self.minutes) == 60 else "minute " + describe(self.minutes)
        words = [minutes, hours]
        if len(self.days) < 31:
            words.append("day " + describe(self.days))
        if len(self.months) < 12:
            words.append("month " + describe(self.months))
        if len(self.weekdays) < 7:
            words.append("on " + describe(self.weekdays, WEEKDAYS))
        return "; ".join(words)
