#!/bin/bash
set -e
cat > ~/load.py <<'PYTHON'
import csv
import datetime
import re
import sqlite3

database = sqlite3.connect("/app/shop.db")
database.executescript("""
CREATE TABLE customers(id INTEGER PRIMARY KEY, name TEXT NOT NULL, country TEXT NOT NULL);
CREATE TABLE orders(id INTEGER PRIMARY KEY, customer INTEGER NOT NULL REFERENCES customers(id), day TEXT NOT NULL,
                    cents INTEGER NOT NULL);
""")


def rows(name):
    with open(f"/app/import/{name}.csv", newline="", encoding="utf-8") as file:
        yield from csv.DictReader(file)


customers = {}
for row in rows("customers"):
    customers.setdefault(int(row["id"]), (row["name"].strip(), row["country"].strip().upper()))


def day(text):
    german = re.fullmatch(r"(\d\d)\.(\d\d)\.(\d{4})", text)
    try:
        return datetime.date.fromisoformat(f"{german[3]}-{german[2]}-{german[1]}" if german else text).isoformat()
    except ValueError:
        return None


def cents(text):
    if "," in text:
        text = text.replace(".", "").replace(",", ".")
    return int(text.replace(".", "")) if re.fullmatch(r"-?\d+\.\d\d", text) else None


orders, rejected = {}, set()
for row in rows("orders"):
    number, customer, date, amount = int(row["id"]), int(row["customer"]), day(row["day"]), cents(row["amount"])
    if number in orders:
        continue
    if customer not in customers or date is None or amount is None or amount <= 0:
        rejected.add(number)
    else:
        orders[number] = customer, date, amount
database.executemany("INSERT INTO customers VALUES (?, ?, ?)", [(number, *row) for number, row in customers.items()])
database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", [(number, *row) for number, row in orders.items()])
database.commit()
with open("/app/rejected.txt", "w") as file:
    file.writelines(f"{number}\n" for number in sorted(rejected - orders.keys()))
PYTHON
python3 ~/load.py
