"""Run the calculator on lines with known results; it may start no other process."""

import ctypes
import os
import resource
import subprocess
import sys

CASES = (
    ("2 3 +", "5"),
    ("1/2 1/3 - -7/14", "1/6 -1/2"),
    ("", ""),
    ("5 drop", ""),
    ("7 -2 /", "-7/2"),
    ("2 10 ^ 2/3 -3 ^", "1024 27/8"),
    ("0 0 ^", "1"),
    ("0 -1 ^", "error: zero"),
    ("4 1/2 ^", "error: exponent"),
    ("4 6/3 ^", "16"),
    ("1 0 /", "error: zero"),
    ("1 +", "error: underflow"),
    ("swap", "error: underflow"),
    ("1 2 swap 3", "2 1 3"),
    ("sq", "error: word"),
    (": sq dup * ; 3 sq 4 sq +", "25"),
    ("1/2 sq", "1/4"),
    (": quad sq sq ;", ""),
    (": sq dup + ; 5 sq 2 quad", "10 16"),
    (": 2x 2 * ;", "error: definition"),
    (": ;", "error: definition"),
    (": open 1 2", "error: definition"),
    (": bad nope ;", "error: definition"),
    ("bad", "error: word"),
    ("1 : two 2 ; two + : three nope ; 9", "error: definition"),
    ("two two +", "4"),
    (": nothing ; 3 nothing", "3"),
    (": dup 7 ; dup", "7"),
    ("3 sq", "6"),
    ("1/0", "error: word"),
    ("+3", "error: word"),
    ("3.5", "error: word"),
    ("99999999999999999999 3 * 1/3 *", "99999999999999999999"),
    ("; 1", "error: word"),
    ("  4    5  ", "4 5"),
)


def alone():
    resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def passed():
    text = "".join(f"{line}\n" for line, _ in CASES)
    command = [sys.executable, "-I", "/app/rpn.py"]
    try:
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=20, preexec_fn=alone)
    except subprocess.TimeoutExpired:
        return False
    lines = done.stdout.split("\n")
    for (line, right), result in zip(CASES, lines, strict=False):
        if result.rstrip() != right:
            print(f"{line!r} gives {result[:60]!r}, expected {right!r}")
            return False
    return len(lines) == len(CASES) + 1


def main():
    ctypes.CDLL(None).prctl(4, 0)  # PR_SET_DUMPABLE: the program cannot reach this process's memory
    reward = int(passed())
    os.makedirs("/logs/verifier", exist_ok=True)
    with open("/logs/verifier/reward.txt", "w") as file:
        print(reward, file=file)


main()
