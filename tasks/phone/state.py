"""The contents of the phone, by which requests are judged, and the changes that its apps can make."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from lmgym.tasks.phone import words

Record = dict[str, Any]
TODAY = "2026-01-05"  # a Monday; the pages' clock stands at noon
MONTHS = ("2026-01", "2026-02", "2026-03")  # that have events
SWITCHES = ("Wi-Fi", "Bluetooth", "Airplane mode", "Do not disturb", "Dark theme")
LEVELS = {"Brightness": 10, "Ring volume": 1, "Media volume": 1}  # settings with a number, and the step of a tap
HIGHEST = {"Brightness": 100, "Ring volume": 7, "Media volume": 15}


@dataclass
class PhoneState:
    """Everything that the phone keeps. Records have an "id", a string that counts from 1."""

    contacts: list[Record]  # name, phone, email, city, starred
    messages: list[Record]  # in order of time: contact (an id), mine, text, liked
    events: list[Record]  # title, date, start, place
    products: list[Record]  # name, category, price in cents
    orders: list[Record]  # lines (quantity by id of the product), status, address
    places: list[Record]  # name, category, address, rating, closes
    settings: Record
    wishes: list[str] = field(default_factory=list)  # ids of products
    cart: dict[str, int] = field(default_factory=dict)  # quantity by id of the product
    saved: list[str] = field(default_factory=list)  # ids of places
    route: Record = field(default_factory=dict)  # place (an id) and mode of the route that was started

    def copy(self) -> PhoneState:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def content(self) -> dict[str, Any]:
        """Return everything in the form that goals compare."""
        return asdict(self)

    def contact(self, name: str) -> Record | None:
        """Return the contact of this name or number; None if there is none."""
        wanted = " ".join(name.split()).casefold()
        return next((each for each in self.contacts if wanted in (each["name"].casefold(), each["phone"])), None)

    def add_contact(self, name: str, phone: str, email: str = "", city: str = "") -> None:
        """Add a contact."""
        about = {"name": name, "phone": phone, "email": email, "city": city, "starred": False}
        self.contacts.append({"id": new_id(self.contacts)} | about)

    def delete_contact(self, number: str) -> None:
        """Delete a contact and its conversation."""
        self.contacts = [each for each in self.contacts if each["id"] != number]
        self.delete_conversation(number)

    def send(self, contact: str, text: str) -> None:
        """Send a message to the contact of this id."""
        note = {"contact": contact, "mine": True, "text": text, "liked": False}
        self.messages.append({"id": new_id(self.messages)} | note)

    def delete_conversation(self, contact: str) -> None:
        """Delete all messages from and to a contact."""
        self.messages = [each for each in self.messages if each["contact"] != contact]

    def add_event(self, title: str, date: str, start: str, place: str) -> None:
        """Add an event."""
        about = {"title": title, "date": date, "start": start, "place": place}
        self.events.append({"id": new_id(self.events)} | about)

    def order(self, address: str) -> None:
        """Order what the cart holds."""
        about = {"lines": dict(self.cart), "status": "processing", "address": address}
        self.orders.append({"id": new_id(self.orders)} | about)
        self.cart = {}

    def total(self, lines: Mapping[str, int]) -> int:
        """Return the price of a cart or an order, in cents."""
        return sum(by_id(self.products, number)["price"] * count for number, count in lines.items())

    def flip(self, name: str) -> None:
        """Turn a switch of the settings. Airplane mode turns Wi-Fi and Bluetooth off."""
        self.settings[name] = not self.settings[name]
        if name == "Airplane mode" and self.settings[name]:
            self.settings |= {"Wi-Fi": False, "Bluetooth": False}


def new_id(records: list[Record]) -> str:
    """Return the id of the next record."""
    return str(max((int(each["id"]) for each in records), default=0) + 1)


def by_id(records: list[Record], number: str) -> Record:
    """Return the record with an id; raise KeyError if there is none."""
    for each in records:
        if each["id"] == number:
            return each
    raise KeyError(number)


def numbered(records: list[Record]) -> list[Record]:
    """Return the records with their ids."""
    return [{"id": str(i + 1)} | each for i, each in enumerate(records)]


def several(rng: np.random.Generator, choices: Any, count: int) -> list[Any]:
    """Return different choices."""
    return [choices[i] for i in rng.permutation(len(choices))[:count]]


def one(rng: np.random.Generator, choices: Any) -> Any:
    """Return one choice."""
    return choices[int(rng.integers(len(choices)))]


def phone_number(rng: np.random.Generator) -> str:
    """Return a telephone number."""
    return f"555-{rng.integers(1000, 10_000)}"


def day(rng: np.random.Generator) -> str:
    """Return a date after today in a month that has events."""
    return f"{one(rng, MONTHS)}-{rng.integers(6, 29):02d}"


def clock(rng: np.random.Generator) -> str:
    """Return a time of day."""
    return f"{rng.integers(8, 21):02d}:{one(rng, ('00', '15', '30', '45'))}"


def address(rng: np.random.Generator) -> str:
    """Return a street and a number."""
    return f"{rng.integers(1, 99)} {one(rng, words.STREETS)}"


def furnished(seed: list[int]) -> PhoneState:
    """Return the contents of a seed."""
    rng = np.random.default_rng(seed)
    contacts = _contacts(rng)
    products = numbered(
        [
            {"name": name, "category": category, "price": int(rng.integers(199, 9_999))}
            for category, names in words.GOODS.items()
            for name in several(rng, names, 4)
        ]
    )
    places = numbered(
        [
            {
                "name": name,
                "category": category,
                "address": address(rng),
                "rating": f"{rating / 10:.1f}",
                "closes": clock(rng),
            }
            for category, names in words.PLACES.items()
            for name, rating in zip(names, several(rng, range(30, 50), 3), strict=True)
        ]
    )
    return PhoneState(
        contacts=contacts,
        messages=_messages(rng, contacts),
        events=_events(rng),
        products=products,
        orders=_orders(rng, products),
        places=places,
        settings=_settings(rng),
    )


def _contacts(rng: np.random.Generator) -> list[Record]:
    names = zip(several(rng, words.FIRST, 12), several(rng, words.LAST, 12), strict=True)
    return numbered(
        [
            {
                "name": f"{first} {last}",
                "phone": phone_number(rng),
                "email": f"{first}.{last}@mail.test".lower(),
                "city": one(rng, words.CITIES),
                "starred": False,
            }
            for first, last in names
        ]
    )


def _messages(rng: np.random.Generator, contacts: list[Record]) -> list[Record]:
    """Return conversations with four contacts; each begins with a proposal to meet."""
    threads = []
    for contact in several(rng, contacts, 4):
        proposal = f"Shall we meet at {clock(rng)} at {one(rng, words.ROOMS)}?"
        texts = [proposal, *several(rng, words.CHATS, int(rng.integers(2, 5)))]
        threads.append([(contact["id"], bool(i and rng.integers(2)), text) for i, text in enumerate(texts)])
    order = rng.permutation([i for i, thread in enumerate(threads) for _ in thread])
    return numbered(
        [
            {"contact": contact, "mine": mine, "text": text, "liked": False}
            for contact, mine, text in (threads[i].pop(0) for i in order)
        ]
    )


def _events(rng: np.random.Generator) -> list[Record]:
    dates = [day(rng) for _ in range(7)]
    dates += [one(rng, dates) for _ in range(4)]  # some days have several
    return numbered(
        [
            {"title": title, "date": date, "start": clock(rng), "place": one(rng, words.ROOMS)}
            for title, date in zip(several(rng, words.TITLES, 11), dates, strict=True)
        ]
    )


def _orders(rng: np.random.Generator, products: list[Record]) -> list[Record]:
    statuses = ["processing", "shipped", "delivered", one(rng, ("processing", "shipped"))]
    return numbered(
        [
            {
                "lines": {each["id"]: int(rng.integers(1, 4)) for each in several(rng, products, 2)},
                "status": status,
                "address": address(rng),
            }
            for status in several(rng, statuses, 4)
        ]
    )


def _settings(rng: np.random.Generator) -> Record:
    levels = {name: int(rng.integers(1, HIGHEST[name] // step)) * step for name, step in LEVELS.items()}
    switches = {name: bool(rng.integers(2)) for name in SWITCHES} | {"Airplane mode": False}
    return switches | levels | {"Language": "English", "Network": ""}
