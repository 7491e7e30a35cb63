#!/bin/bash
set -e
cat > ~/decode.py <<'PYTHON'
import json
import struct
import zlib

data = open("/app/readings.bin", "rb").read()
(count,) = struct.unpack_from(">H", data, 4)
position = 6


def text(body, start):
    end = start + 1 + body[start]
    return body[start + 1 : end].decode(), end


with open("/app/readings.jsonl", "w") as file:
    for _ in range(count):
        (length,) = struct.unpack_from(">H", data, position)
        body = data[position + 2 : position + 2 + length]
        (checksum,) = struct.unpack_from(">I", data, position + 2 + length)
        position += length + 6
        if zlib.crc32(body) != checksum:
            continue
        station, place = text(body, 0)
        time, hundredths = struct.unpack_from(">qh", body, place)
        place += 10
        number, place, tags = body[place], place + 1, []
        for _ in range(number):
            tag, place = text(body, place)
            tags.append(tag)
        record = {"station": station, "time": time, "temperature": hundredths / 100, "tags": tags}
        print(json.dumps(record), file=file)
PYTHON
python3 ~/decode.py
