"""Evidence in a command and its observation that an agent read the broken file, or ran the tests."""

from __future__ import annotations

import re
from collections.abc import Mapping

LEAST = 10  # characters of a line that tells a file
RUN = re.compile(  # pytest at the start of a command
    r"(?:^|[;&|({\n]|\b(?:then|do|if)[ \t])[ \t]*"
    r"(?:\w{1,40}=\S{0,200}[ \t]+|(?:timeout|env|time|nice)[ \t]+(?:[-\d]\S{0,20}[ \t]+){0,4})*"
    r"(?:[\w./-]{0,100}/)?(?:python[\d.]{0,5}[ \t]+(?:-\w{1,20}[ \t]+){0,4}?-m[ \t]+)?(?:pytest|py\.test)\b(?![-./=])"
)
SUMMARY = re.compile(r"^(?:=+ )?(\d+ (?:failed|passed)\b[\w, ]*) in \d+\.\d+s\b", re.M)
RETURNED = re.compile(r"<returncode>[01]</returncode>")


def read_file(path: str, files: Mapping[str, str], words: str, observation: str) -> bool:
    """Return True if a step's words name a file and the observation shows a line that no other file has."""
    name = path.rpartition("/")[2]
    places = rf"(?:(?:\./|/testbed/)?{re.escape(path)}|(?:\./)?{re.escape(name)})"
    if re.search(rf"(?<![\w./-]){places}(?![\w/-]|\.\w)", words) is None:
        return False
    lines = {line.strip() for line in files[path].splitlines()}
    seen = [line for line in lines if len(line) >= LEAST and line in observation]
    return any(all(line not in text for other, text in files.items() if other != path) for line in seen)


def ran_tests(command: str, observation: str) -> bool:
    """Return True if a command starts pytest and the observation has pytest's summary, which the command does not."""
    if RUN.search(command) is None or RETURNED.match(observation) is None:
        return False
    return any(match[1] not in command for match in SUMMARY.finditer(observation))
