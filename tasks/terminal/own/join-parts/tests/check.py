"""Compare the unpacked files and the archive's sum with the expected ones."""

import hashlib
import json
import sys
from pathlib import Path

expected = json.loads(Path("/tests/expected.json").read_text())
root = Path("/app/restored")
files = {
    path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
    for path in root.rglob("*")
    if path.is_file() and not path.is_symlink()
}
if files != expected["files"]:
    sys.exit("the unpacked files are not those of the archive")
try:
    written = Path("/app/archive.sha256").read_text()
except OSError as error:
    sys.exit(f"no sum: {error}")
if written.strip() != expected["archive"]:
    sys.exit(f"the archive's sum is {expected['archive']}, not {written.strip()[:80]}")
