#!/bin/bash
set -e
cat > ~/report.py <<'PYTHON'
import gzip
import math
import re
from pathlib import Path

LINE = re.compile(r'\S+ - - \[[^\]]+\] "[A-Z]+ (\S+) HTTP/1\.1" (\d{3}) (\d+) (\d+)')
pages = {}
for path in Path("/app/logs").iterdir():
    opened = gzip.open(path, "rt") if path.suffix == ".gz" else open(path)
    with opened as file:
        for text in file:
            match = LINE.fullmatch(text.strip())
            if match and 200 <= int(match[2]) < 300:
                pages.setdefault(match[1].partition("?")[0], []).append((int(match[4]), int(match[3])))
rows = sorted((-len(hits), page, hits) for page, hits in pages.items() if len(hits) >= 20)
with open("/app/report.csv", "w") as file:
    print("path,requests,bytes,p95_ms", file=file)
    for count, page, hits in rows:
        rank = math.ceil(0.95 * -count)
        print(page, -count, sum(size for _, size in hits), sorted(hits)[rank - 1][0], sep=",", file=file)
PYTHON
python3 ~/report.py
