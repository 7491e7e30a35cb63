"""Write three access logs, with some broken lines."""

import random
import sys
from pathlib import Path

PATHS = ("/", "/shop/cart", "/shop/item", "/about", "/static/site.css", "/api/v1/stock", "/api/v1/price", "/login")


def line(chance, day):
    path = chance.choices(PATHS, weights=(30, 12, 25, 3, 20, 9, 8, 2))[0]
    query = f"?id={chance.randrange(90)}" if chance.random() < 0.4 else ""
    status = chance.choices((200, 204, 304, 404, 500), weights=(70, 6, 10, 9, 5))[0]
    time = f"{day:02d}/Mar/2024:{chance.randrange(24):02d}:{chance.randrange(60):02d}:{chance.randrange(60):02d} +0000"
    milliseconds = int(chance.expovariate(1 / 40)) + 1
    address = f"203.0.113.{chance.randrange(1, 255)}"
    size = chance.randrange(200, 90_000)
    return f'{address} - - [{time}] "GET {path}{query} HTTP/1.1" {status} {size} {milliseconds}'


def broken(chance, text):
    cut = text[: chance.randrange(10, 60)]
    return chance.choice((cut, text.replace('"', "", 1), text + " extra words", "-- rotated --"))


chance = random.Random(20240302)
folder = Path(sys.argv[1])
folder.mkdir(parents=True)
for day, name in enumerate(("access.log.2", "access.log.1", "access.log"), start=2):
    lines = [line(chance, day) for _ in range(700)]
    lines = [broken(chance, text) if chance.random() < 0.03 else text for text in lines]
    (folder / name).write_text("\n".join(lines) + "\n")
