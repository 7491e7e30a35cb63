"""Run the program on small and large inputs; it may start no other process."""

import ctypes
import os
import random
import resource
import subprocess
import sys


def expected(bookings):
    edges = sorted([(start, 1) for start, end in bookings] + [(end, -1) for start, end in bookings])
    depth = most = 0
    covered = []
    for _, change in edges:  # ends come before starts of the same time
        depth += change
        most = max(most, depth)
    for start, end in sorted(bookings):
        if covered and start <= covered[-1][1]:
            covered[-1][1] = max(covered[-1][1], end)
        else:
            covered.append([start, end])
    return [f"{start} {end}" for start, end in covered] + [f"peak {most}"]


def alone():
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def cases():
    chance = random.Random(31337)
    yield []
    yield [(3, 9), (20, 25), (7, 12), (12, 15), (22, 21), (5, 5)]
    for count, span, longest in ((300, 2_000, 40), (20_000, 3_000_000, 60), (20_000, 40_000, 9_000)):
        bookings = []
        for _ in range(count):
            start = chance.randrange(-span, span)
            bookings.append((start, start + chance.randrange(-2, longest)))
        yield bookings


def passed():
    for bookings in cases():
        text = "".join(f"{start} {end}\n" for start, end in bookings)
        command = [sys.executable, "-I", "/app/bookings.py"]
        try:
            done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=10, preexec_fn=alone)
        except subprocess.TimeoutExpired:
            print(f"{len(bookings)} bookings take more than ten seconds")
            return False
        if done.stdout.splitlines() != expected([pair for pair in bookings if pair[0] < pair[1]]):
            print(f"wrong output for {len(bookings)} bookings")
            return False
    return True


def main():
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: the program cannot reach this process's memory
    reward = int(passed())
    os.makedirs("/logs/verifier", exist_ok=True)
    with open("/logs/verifier/reward.txt", "w") as file:
        print(reward, file=file)


main()
