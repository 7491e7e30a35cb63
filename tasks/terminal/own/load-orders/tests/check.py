"""Compare the tables and the rejected ids with the expected ones."""

import json
import sqlite3
import sys
from pathlib import Path

expected = json.loads(Path("/tests/expected.json").read_text(encoding="utf-8"))
try:
    database = sqlite3.connect("file:/app/shop.db?mode=ro", uri=True)
    for table in ("customers", "orders"):
        rows = [list(row) for row in database.execute(f"SELECT * FROM {table} ORDER BY id")]
        if rows != expected[table]:
            sys.exit(f"the rows of {table} are not the expected ones")
        sql = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", [table]).fetchone()[0]
        if "primary key" not in sql.lower():
            sys.exit(f"{table} has no primary key")
    rejected = [int(line) for line in Path("/app/rejected.txt").read_text().split()]
except (sqlite3.Error, OSError, ValueError, TypeError) as error:
    sys.exit(f"not loaded: {error}")
if rejected != expected["rejected"]:
    sys.exit("the rejected ids are not the expected ones")
