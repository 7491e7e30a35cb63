"""Compare types, permissions, contents and links with the expected ones."""

import hashlib
import json
import os
import stat
import sys
from pathlib import Path


def described(path):
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return f"link {os.readlink(path)}"
    content = "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest()
    return f"{stat.filemode(status.st_mode)} {content}".strip()


root = Path("/app/site")
try:
    tree = {path.relative_to(root).as_posix(): described(path) for path in (root, *root.rglob("*"))}
except OSError as error:
    sys.exit(f"the site cannot be read: {error}")
expected = json.loads(Path("/tests/expected.json").read_text())
for name in sorted(tree.keys() | expected.keys()):
    if tree.get(name) != expected.get(name):
        sys.exit(f"{name} is {tree.get(name)}, expected {expected.get(name)}")
