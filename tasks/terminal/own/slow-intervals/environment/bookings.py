"""Print when at least one room is booked, and the most bookings at any one time."""

import sys


def joined(bookings):
    """Return the fewest intervals that cover the bookings."""
    intervals = list(bookings)
    changed = True
    while changed:
        changed = False
        for first in intervals:
            for second in intervals:
                if first is not second and first[0] <= second[1] and second[0] <= first[1]:
                    intervals.remove(first)
                    intervals.remove(second)
                    intervals.append((min(first[0], second[0]), max(first[1], second[1])))
                    changed = True
                    break
            if changed:
                break
    return sorted(intervals)


def peak(bookings):
    """Return the most bookings at any one time."""
    return max((sum(start <= time < end for start, end in bookings) for time, _ in bookings), default=0)


bookings = [tuple(map(int, line.split())) for line in sys.stdin if line.strip()]
bookings = [(start, end) for start, end in bookings if start < end]
for start, end in joined(bookings):
    print(start, end)
print("peak", peak(bookings))
