"""Write an archive in parts, with copies and damaged copies, and the manifest."""

import gzip
import hashlib
import io
import random
import sys
import tarfile
from pathlib import Path

PART = 700  # bytes
chance = random.Random(4711)
root = Path(sys.argv[1])
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w") as tar:
    for number in range(12):
        text = "".join(f"{chance.getrandbits(64):016x}\n" for _ in range(60)).encode()
        member = tarfile.TarInfo(f"survey/station-{number % 4}/day-{number:02d}.txt")
        member.size, member.mtime = len(text), 1_700_000_000
        tar.addfile(member, io.BytesIO(text))
archive = gzip.compress(buffer.getvalue(), mtime=0)
parts = [archive[start : start + PART] for start in range(0, len(archive), PART)]
manifest = "".join(f"{hashlib.sha256(part).hexdigest()}\n" for part in parts)
files = list(parts)
for part in chance.sample(parts, len(parts) // 4):
    files.append(part)
    damaged = bytearray(part)
    damaged[chance.randrange(len(damaged))] ^= 1 + chance.randrange(255)
    files.append(bytes(damaged))
chance.shuffle(files)
(root / "parts").mkdir(parents=True)
for content in files:
    (root / "parts" / f"{chance.getrandbits(48):012x}.bin").write_bytes(content)
(root / "manifest.txt").write_text(manifest)
