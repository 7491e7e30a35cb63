"""Run the calculator on lines with known results; it may start no other process."""

import ctypes
import hashlib
import os
import resource
import shutil
import subprocess
import sys

VERDICT = "/logs/verifier"
LINES = (
    "2 3 +",
    "1/2 1/3 - -7/14",
    "",
    "5 drop",
    "7 -2 /",
    "2 10 ^ 2/3 -3 ^",
    "0 0 ^",
    "0 -1 ^",
    "4 1/2 ^",
    "4 6/3 ^",
    "1 0 /",
    "1 +",
    "swap",
    "1 2 swap 3",
    "sq",
    ": sq dup * ; 3 sq 4 sq +",
    "1/2 sq",
    ": quad sq sq ;",
    ": sq dup + ; 5 sq 2 quad",
    ": 2x 2 * ;",
    ": ;",
    ": open 1 2",
    ": bad nope ;",
    "bad",
    "1 : two 2 ; two + : three nope ; 9",
    "two two +",
    ": nothing ; 3 nothing",
    ": dup 7 ; dup",
    "3 sq",
    "1/0",
    "+3",
    "3.5",
    "99999999999999999999 3 * 1/3 *",
    "; 1",
    "  4    5  ",
)
# Of the right results. A hash, because the program under test can read this file.
OUTPUT = "c84d0c9422911c3eb70613c68a71684aa42c1b4ae5ca32fa3a78e2dab32bf698"


def alone():
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def passed():
    text = "".join(f"{line}\n" for line in LINES)
    command = [sys.executable, "-I", "/app/rpn.py"]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=20, preexec_fn=alone)
    except subprocess.TimeoutExpired:
        return False
    results = b"\n".join(line.rstrip() for line in done.stdout.split(b"\n"))
    return hashlib.sha256(results).hexdigest() == OUTPUT


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
