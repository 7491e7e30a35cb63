"""Compare the report with the expected one, line by line."""

import sys
from pathlib import Path

expected = Path("/tests/expected.csv").read_text().split()
try:
    report = Path("/app/report.csv").read_text().split()
except (OSError, UnicodeDecodeError) as error:
    sys.exit(f"no report: {error}")
for number, line in enumerate(expected):
    if report[number : number + 1] != [line]:
        sys.exit(f"line {number + 1} is {report[number : number + 1]}, expected {line}")
if len(report) > len(expected):
    sys.exit(f"{len(report) - len(expected)} lines too many")
