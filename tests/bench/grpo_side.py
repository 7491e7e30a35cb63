"""The job, reward and clocks that both sides of `make bench-trl` share. Imports neither side."""

import json
import sys
import time


def letters(words):
    """Return the share of ASCII letters in a text: a reward that differs between random answers."""
    return sum(c.isascii() and c.isalpha() for c in words) / max(1, len(words))


def job():
    """Read the settings as JSON from standard input."""
    return json.load(sys.stdin)


class Marks:
    """Wall clock and processor time at the start of each step, after its rollout and at its end."""

    def __init__(self):
        self.begun, self.played, self.ended = [], [], []

    @staticmethod
    def now():
        """Return the seconds of the wall clock and of this process's threads."""
        return time.perf_counter(), time.process_time()

    def report(self, tokens):
        """Print a row for each step but the first, which warms up; `tokens` were sampled in each."""
        steps = []
        for count, *marks in list(zip(tokens, self.begun, self.played, self.ended, strict=True))[1:]:
            begun, played, ended = marks
            row = {"tokens": count}
            for clock, start, middle, end in zip(("wall", "processor"), begun, played, ended, strict=True):
                row[clock] = {"step": end - start, "rollout": middle - start, "update": end - middle}
            steps.append(row)
        sys.stdout.write(json.dumps(steps) + "\n")
