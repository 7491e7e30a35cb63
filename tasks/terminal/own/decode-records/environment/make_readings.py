"""Write readings in the format of FORMAT.md, some damaged, some with reserved bytes."""

import random
import struct
import sys
import zlib
from pathlib import Path

STATIONS = ("Brocken", "Zürich-Fluntern", "Tromsø", "Hafen 3", "Łódź")
TAGS = ("frost", "gale", "manual", "geprüft", "retry")
chance = random.Random(99)


def text(value):
    data = value.encode()
    return bytes([len(data)]) + data


records = []
for number in range(180):
    tags = chance.sample(TAGS, chance.randrange(4))
    body = text(chance.choice(STATIONS))
    body += struct.pack(">qh", 1_709_000_000 + 600 * number, chance.randrange(-2500, 3800))
    body += bytes([len(tags)]) + b"".join(map(text, tags)) + chance.randbytes(chance.choice((0, 0, 0, 5)))
    sum_ = zlib.crc32(body)
    if chance.random() < 0.1:
        body = body[:-1] + bytes([body[-1] ^ 1])
    records.append(struct.pack(">H", len(body)) + body + struct.pack(">I", sum_))
Path(sys.argv[1]).write_bytes(b"WXR2" + struct.pack(">H", len(records)) + b"".join(records))
