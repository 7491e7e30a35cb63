"""Check the restored file, the others, and the commit's id."""

import hashlib
import json
import sys
from pathlib import Path

expected = json.loads(Path("/tests/expected.json").read_text())
for name, digest in expected["files"].items():
    try:
        content = Path("/app/notebook", name).read_bytes()
    except OSError as error:
        sys.exit(f"{name}: {error}")
    if hashlib.sha256(content).hexdigest() != digest:
        sys.exit(f"{name} is not as it was")
try:
    commit = Path("/app/commit.txt").read_text().strip()
except (OSError, UnicodeDecodeError) as error:
    sys.exit(f"no commit: {error}")
if commit != expected["commit"]:
    sys.exit(f"{commit[:60]!r} is not the lost commit")
