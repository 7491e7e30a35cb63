"""Compare the decoded readings with the expected ones, as values."""

import json
import sys
from pathlib import Path

expected = [json.loads(line) for line in Path("/tests/expected.jsonl").read_text(encoding="utf-8").splitlines()]
try:
    lines = Path("/app/readings.jsonl").read_text(encoding="utf-8").splitlines()
    readings = [json.loads(line) for line in lines if line.strip()]
except (OSError, ValueError) as error:
    sys.exit(f"no readings: {error}")
if len(readings) != len(expected):
    sys.exit(f"{len(readings)} readings, expected {len(expected)}")
for number, (reading, right) in enumerate(zip(readings, expected, strict=True), start=1):
    if reading != right:
        sys.exit(f"reading {number} is {str(reading)[:100]}, expected {right}")
