"""Write customers and orders, with the mistakes of people who type."""

import csv
import random
import sys
from pathlib import Path

folder, rows = Path(sys.argv[1]), int(sys.argv[2])
chance = random.Random(5150)
NAMES = ("Ada Lindqvist", "Bo Öberg", "Chiara Neri", "Dmitri Volkov", "Eve O'Hara", "Fatou Diop", 'Gus "G" Meyer')
COUNTRIES = ("se", "DE", " it", "Fr", "JP ", "ie")


def day():
    year, month, number = chance.choice((2023, 2024)), chance.randrange(1, 13), chance.randrange(1, 32)
    return f"{number:02d}.{month:02d}.{year}" if chance.random() < 0.3 else f"{year}-{month:02d}-{number:02d}"


def amount():
    cents = chance.randrange(50, 900_000) if chance.random() > 0.04 else -chance.randrange(3) * 100
    if chance.random() < 0.03:
        return chance.choice(("", "n/a"))
    if chance.random() < 0.4:
        whole = f"{abs(cents) // 100:,}".replace(",", ".")
        return f"{'-' * (cents < 0)}{whole},{abs(cents) % 100:02d}"
    return f"{cents / 100:.2f}"


with open(folder / "customers.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(("id", "name", "country"))
    for number in [*range(1, 41), 7, 19]:
        writer.writerow((number, f"{' ' * chance.randrange(2)}{chance.choice(NAMES)} ", chance.choice(COUNTRIES)))
with open(folder / "orders.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.writer(file)
    writer.writerow(("id", "customer", "day", "amount"))
    ids = list(range(1000, 1000 + rows))
    ids += chance.sample(ids, rows // 12)
    for number in ids:
        writer.writerow((number, chance.randrange(1, 44), day(), amount()))
