#!/bin/bash
set -e
cat > /app/bookings.py <<'PYTHON'
"""Print when at least one room is booked, and the most bookings at any one time."""

import sys

events = []
for line in sys.stdin:
    if line.strip():
        start, end = map(int, line.split())
        if start < end:
            events += [(start, 1), (end, -1)]
events.sort(key=lambda event: (event[0], -event[1]))
depth = opened = 0
intervals = []
for time, change in events:
    if depth == 0:
        opened = time
    depth += change
    if depth == 0:
        intervals.append((opened, time))
most = depth = 0
for _, change in sorted(events):
    depth += change
    most = max(most, depth)
for start, end in intervals:
    print(start, end)
print("peak", most)
PYTHON
