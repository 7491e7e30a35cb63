"""Compare the settings with the expected ones: values, types and order of keys."""

import json
import sys
from pathlib import Path


def ordered(text):
    return json.dumps(json.loads(text))


expected = Path("/tests/expected.json").read_text()
try:
    settings = ordered(Path("/app/effective.json").read_text())
except (OSError, ValueError) as error:
    sys.exit(f"no settings: {error}")
if settings != ordered(expected):
    sys.exit("the settings are not the expected ones")
