"""Compare the redacted letters with the expected ones."""

import sys
from pathlib import Path

expected = {path.name: path.read_bytes() for path in Path("/tests/redacted").iterdir()}
root = Path("/app/redacted")
letters = {path.name: path.read_bytes() for path in root.iterdir() if path.is_file()} if root.is_dir() else {}
if letters.keys() != expected.keys():
    sys.exit(f"the folder holds {sorted(letters)}, expected {sorted(expected)}")
for name, text in expected.items():
    for number, (line, right) in enumerate(zip(letters[name].split(b"\n"), text.split(b"\n"), strict=False), start=1):
        if line != right:
            sys.exit(f"{name}, line {number} is {line[:100]!r}")
    if letters[name] != text:
        sys.exit(f"{name} has another length")
