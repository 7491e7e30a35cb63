"""Run the program on small and large inputs; it may start no other process."""

import ctypes
import hashlib
import os
import random
import resource
import shutil
import subprocess
import sys

VERDICT = "/logs/verifier"
# Of the right lines. A hash, because the program under test can read this file.
OUTPUT = "330e6fc296c4b1c026b7219ebc1d7c3d36d66c8353b0618c82ef0fc7f3edaebf"


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
    digest = hashlib.sha256()
    for bookings in cases():
        text = "".join(f"{start} {end}\n" for start, end in bookings)
        command = [sys.executable, "-I", "/app/bookings.py"]
        try:
            done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=10, preexec_fn=alone)
        except subprocess.TimeoutExpired:
            print(f"{len(bookings)} bookings take more than ten seconds")
            return False
        digest.update(b"\0".join(done.stdout.splitlines()) + b"\0\0")
    return digest.hexdigest() == OUTPUT


def main():
    """Write the reward; where the program wrote to its folder or fooled the check, end with a code that earns 0."""
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: the program cannot reach this process's memory
    os.makedirs(VERDICT, exist_ok=True)
    folder = os.path.realpath(VERDICT)
    before = os.lstat(folder)
    written = False
    try:
        reward = int(passed())
        if not os.path.samestat(os.lstat(folder), before) or os.listdir(folder):
            raise PermissionError(f"the program wrote to {VERDICT}")
        with open(f"{folder}/reward.txt", "w") as file:
            print(reward, file=file)
        written = True
    finally:
        if not written:
            shutil.rmtree(folder, ignore_errors=True)
            os._exit(255)


main()
