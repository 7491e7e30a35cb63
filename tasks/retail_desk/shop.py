"""The shop's database: customers, products and orders, all written by one generator.

A database is JSON: {"customers": {id: ...}, "products": {id: ...}, "orders": {id: ...}, "declined", "referrals"}.
Prices are in euros, days are ISO dates. All names and goods are our own.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, TypeVar

import numpy as np

Data = dict[str, Any]  # one JSON object
T = TypeVar("T")

TODAY = date(2031, 5, 20)
RETURN_DAYS = 30  # after delivery
FIRST = ("Ada", "Bruno", "Carla", "Dilan", "Edith", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Kaya", "Linus", "Mira")
LAST = (
    "Abel",
    "Berger",
    "Costa",
    "Duarte",
    "Ek",
    "Fabre",
    "Groot",
    "Haas",
    "Ivers",
    "Jansen",
    "Kovac",
    "Lind",
    "Moreau",
)
STREETS = ("Birch Lane", "Canal Street", "Mill Road", "Orchard Way", "Station Road", "Harbour Street", "Quarry Hill")
TREES: tuple[str, ...] = (
    *("acacia", "alder", "ash", "aspen", "beech", "cedar", "cypress", "elm", "fir", "hazel", "holly", "juniper"),
    *("larch", "maple", "oak", "palm", "pine", "poplar", "rowan", "spruce", "walnut", "willow"),
)
CITIES = ("Alderbrook", "Brenfield", "Corvale", "Dunmere", "Eastholm", "Farrowby")
GOODS: dict[str, tuple[dict[str, tuple[str, ...]], int]] = {  # name -> (options, base price in euros)
    "rain jacket": ({"colour": ("red", "green", "navy"), "size": ("S", "M", "L")}, 89),
    "hiking boots": ({"colour": ("brown", "grey"), "size": ("39", "41", "43", "45")}, 119),
    "backpack": ({"colour": ("black", "olive", "orange"), "volume": ("20 l", "35 l")}, 74),
    "sleeping bag": ({"filling": ("down", "synthetic"), "length": ("regular", "long")}, 139),
    "tent": ({"persons": ("two", "three", "four"), "colour": ("sand", "green")}, 229),
    "head torch": ({"battery": ("rechargeable", "AAA"), "colour": ("black", "yellow")}, 34),
    "camping stove": ({"fuel": ("gas", "alcohol"), "burners": ("one", "two")}, 59),
    "water bottle": ({"volume": ("0.5 l", "1 l"), "colour": ("steel", "blue", "white")}, 19),
    "fleece pullover": ({"colour": ("grey", "teal", "wine"), "size": ("S", "M", "L", "XL")}, 64),
    "trekking poles": ({"material": ("carbon", "aluminium"), "length": ("110 cm", "125 cm")}, 82),
    "wool socks": ({"colour": ("grey", "blue"), "size": ("36-38", "39-41", "42-44")}, 14),
    "sun hat": ({"colour": ("beige", "white", "khaki"), "size": ("M", "L")}, 27),
}


def pick(chance: np.random.Generator, items: Sequence[T]) -> T:
    """Return one of `items`, uniformly."""
    return items[int(chance.integers(len(items)))]


def sample(chance: np.random.Generator, items: Sequence[T], count: int) -> list[T]:
    """Return `count` different items in random order."""
    return [items[int(i)] for i in chance.permutation(len(items))[:count]]


def options_text(options: dict[str, str]) -> str:
    """Return options as a customer says them: "red, M"."""
    return ", ".join(options.values())


class ShopRecords:
    """A database that grows by generated customers and orders; in a `small` one without numbers in ids and emails."""

    def __init__(self, chance: np.random.Generator, *, small: bool = False) -> None:
        self.chance, self.small = chance, small
        self.data: Data = {"customers": {}, "products": {}, "orders": {}, "declined": {}, "referrals": {}}
        self.numbers: set[int] = set()
        for name in GOODS:
            self._add_product(name)

    def add_customer(self) -> Data:
        """Add a customer with an unused name and return it."""
        customers = self.data["customers"]
        while True:
            first, last = pick(self.chance, FIRST), pick(self.chance, LAST)
            customer_id = f"{first}_{last}".lower()
            if customer_id not in customers:
                break
        card, gift = f"card_{self._number()}", f"gift_card_{self._number()}"
        customer: Data = {
            "customer_id": customer_id,
            "first_name": first,
            "last_name": last,
            "email": self._email(first, last),
            "member": bool(self.chance.integers(2)),
            "credit": 0.0,
            "address": self.address(),
            "payments": {
                card: {"payment_id": card, "kind": "card"},
                gift: {"payment_id": gift, "kind": "gift card", "balance": float(self.chance.integers(300, 900))},
            },
            "orders": [],
        }
        customers[customer_id] = customer
        return customer

    def address(self) -> Data:
        """Return a new address."""
        return {
            "street": f"{int(self.chance.integers(1, 99))} {pick(self.chance, STREETS)}",
            "city": pick(self.chance, CITIES),
            "postcode": str(int(self.chance.integers(10_000, 99_999))),
        }

    def add_order(
        self,
        customer: Data,
        goods: Sequence[str],
        status: str,
        *,
        age: int = 12,
        late: bool = False,
        final: bool = False,
    ) -> Data:
        """Add an order of one variant each of `goods`.

        A delivered order was delivered `age` days ago, after the promised day if `late`. The first item of a `final`
        order was sold without a right to return it.
        """
        order_id = f"N-{self._tree()}" if self.small else f"N{self._number()}"
        delivered = TODAY - timedelta(days=age)
        promised = delivered - timedelta(days=4) if late else delivered + timedelta(days=1)
        if status != "delivered":
            promised = TODAY + timedelta(days=6)
        placed = promised - timedelta(days=9)
        payment = pick(self.chance, sorted(customer["payments"]))
        items = [self._bought(name) for name in goods]
        items[0]["final_sale"] = final
        order: Data = {
            "order_id": order_id,
            "customer_id": customer["customer_id"],
            "status": status,
            "placed_on": placed.isoformat(),
            "promised_by": promised.isoformat(),
            "delivered_on": delivered.isoformat() if status == "delivered" else None,
            "address": dict(customer["address"]),
            "paid_with": payment,
            "items": items,
            "total": round(sum(item["price"] for item in items), 2),
            "tracking": None if status == "placed" else f"TR{self._number()}",
        }
        self.data["orders"][order_id] = order
        customer["orders"].append(order_id)
        return order

    def _add_product(self, name: str) -> None:
        options, base = GOODS[name]
        product_id = f"P{self._number()}"
        (first, firsts), (second, seconds) = options.items()
        variants: Data = {}
        for one in firsts:
            for other in seconds:
                item_id = f"I{self._number()}"
                variants[item_id] = {
                    "item_id": item_id,
                    "options": {first: one, second: other},
                    "price": base + int(self.chance.integers(0, 20)) + 0.5 * int(self.chance.integers(2)),
                    "stock": int(self.chance.integers(1, 12)),
                }
        self.data["products"][product_id] = {"product_id": product_id, "name": name, "variants": variants}

    def product(self, name: str) -> Data:
        """Return the product with this name."""
        return next(product for product in self.data["products"].values() if product["name"] == name)

    def _bought(self, name: str) -> Data:
        product = self.product(name)
        variant = product["variants"][pick(self.chance, list(product["variants"]))]
        return {
            "item_id": variant["item_id"],
            "product_id": product["product_id"],
            "name": name,
            "options": dict(variant["options"]),
            "price": variant["price"],
            "final_sale": False,
        }

    def _email(self, first: str, last: str) -> str:
        number = "" if self.small else int(self.chance.integers(10, 100))
        return f"{first}.{last}{number}@mail.example".lower()

    def _tree(self) -> str:
        """Return a tree that no order is named after."""
        return pick(self.chance, [tree for tree in TREES if f"N-{tree}" not in self.data["orders"]])

    def _number(self) -> int:
        """Return an unused number of five digits."""
        while (number := int(self.chance.integers(10_000, 99_999))) in self.numbers:
            pass
        self.numbers.add(number)
        return number
