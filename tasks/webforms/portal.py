"""The portal of a small firm: catalogue, cart, orders, people, travel requests, accounts. All state is on the server.

What it holds depends on a seed. Every page is plain HTML with forms, as it was in the year 2000; the same
state and the same requests give the same pages.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

from lmgym.backends.browser.gate import Request, Response
from lmgym.tasks.webforms import pages, words

HOME = "http://portal.test"
PAGE = 6  # rows of a table at a time


@dataclass
class State:
    """The server's state, by which goals are judged."""

    users: dict[str, dict[str, Any]]  # by name: password, email, phone, newsletter
    items: list[dict[str, Any]]  # id, name, category, price in cents, stock
    people: list[dict[str, Any]]  # id, name, department, phone, office, email
    orders: list[dict[str, Any]]  # id, user, date, status, lines, address
    user: str = ""  # who is signed in
    cart: dict[str, int] = field(default_factory=dict)  # quantity by id of the item
    draft: dict[str, Any] = field(default_factory=dict)  # of a travel request that is being written
    travels: list[dict[str, Any]] = field(default_factory=list)
    tickets: list[dict[str, Any]] = field(default_factory=list)

    def copy(self) -> State:
        """Return an independent copy."""
        return copy.deepcopy(self)

    def kept(self) -> dict[str, Any]:
        """Return the lasting part of the state: without sign-in and unsent drafts."""
        content = asdict(self)
        return {name: content[name] for name in content if name not in ("user", "draft")}


def furnished(seed: list[int]) -> State:
    """Return the initial state of a seed."""
    rng = np.random.default_rng(seed)
    names = [
        f"{first} {last}" for first, last in zip(_drawn(rng, words.FIRST, 26), _drawn(rng, words.LAST, 26), strict=True)
    ]
    people = [
        {
            "id": str(i + 1),
            "name": name,
            "department": str(rng.choice(words.DEPARTMENTS)),
            "phone": f"555-{rng.integers(1000, 10_000)}",
            "office": f"{'ABC'[rng.integers(3)]}{rng.integers(100, 400)}",
            "email": f"{name.lower().replace(' ', '.')}@portal.test",
        }
        for i, name in enumerate(names)
    ]
    nouns = [(category, noun) for category, things in words.GOODS.items() for noun in things]
    items = []
    for i, place in enumerate(rng.permutation(len(nouns))[:20]):
        category, noun = nouns[place]
        name = f"{rng.choice(words.QUALITIES)} {noun}"
        price, stock = int(rng.integers(199, 9_999)), int(rng.integers(0, 40))
        items.append({"id": str(i + 1), "name": name, "category": category, "price": price, "stock": stock})
    letters = list("abcdefghkmnpqrstuvwxyz23456789")
    users = {
        name: {"password": "".join(rng.choice(letters, 7)), "email": f"{name}@portal.test",
               "phone": f"555-{rng.integers(1000, 10_000)}", "newsletter": bool(rng.integers(2))}
        for name in ("ada", "grace", "alan")
    }  # fmt: skip
    orders = [_order(rng, i, items) for i in range(11)]
    return State(users=users, items=items, people=people, orders=orders)


def _drawn(rng: np.random.Generator, choices: tuple[str, ...], count: int) -> list[str]:
    return [choices[i] for i in rng.permutation(len(choices))[:count]]


def _order(rng: np.random.Generator, number: int, items: list[dict[str, Any]]) -> dict[str, Any]:
    lines = {items[i]["id"]: int(rng.integers(1, 5)) for i in rng.permutation(len(items))[: rng.integers(1, 4)]}
    date = f"2025-{rng.integers(1, 13):02d}-{rng.integers(1, 29):02d}"
    status = str(rng.choice(("pending", "shipped", "delivered")))
    order = {"id": str(1001 + 7 * number), "user": ("ada", "grace", "alan")[number % 3], "date": date}
    return {**order, "status": status, "lines": lines, "address": "1 Main Street"}


class Portal:
    """The server: a state and the handlers of its addresses."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.routes: dict[str, Callable[[Mapping[str, str], list[str]], str | Response]] = {
            "": self._home, "login": self._login, "logout": self._logout, "catalogue": self._catalogue,
            "cart": self._cart, "checkout": self._checkout, "orders": self._orders, "people": self._people,
            "travel": self._travel, "account": self._account, "support": self._support,
        }  # fmt: skip

    def __call__(self, request: Request) -> Response:
        """Answer a request."""
        parts = urlsplit(request.path)
        given = parse_qs(parts.query) | parse_qs(request.body.decode("utf-8", "replace"))
        values = {name: texts[-1] for name, texts in given.items()} | {"method": request.method}
        head, *rest = parts.path.strip("/").split("/")
        route = self.routes.get(head)
        if route is None:
            return Response(pages.page(self.state, "Not found", "<p>There is no such page.</p>"), status=404)
        answer = route(values, rest)
        if isinstance(answer, Response):
            return answer
        title, _, body = answer.partition("\n")
        return Response(pages.page(self.state, title, body))

    def _home(self, values: Mapping[str, str], rest: list[str]) -> str:
        return pages.home(self.state)

    def _login(self, values: Mapping[str, str], rest: list[str]) -> str | Response:
        user = self.state.users.get(values.get("user", ""))
        if values["method"] == "POST" and user is not None and user["password"] == values.get("password"):
            self.state.user = values["user"]
            return _go(values.get("next") or "/account")
        return pages.login(wrong=values["method"] == "POST", after=values.get("next", ""))

    def _logout(self, values: Mapping[str, str], rest: list[str]) -> Response:
        self.state.user = ""
        return _go("/")

    def _catalogue(self, values: Mapping[str, str], rest: list[str]) -> str:
        items = [item for item in self.state.items if values.get("q", "").lower() in item["name"].lower()]
        items = [item for item in items if values.get("category", "") in ("", item["category"])]
        return pages.catalogue(items, values, PAGE)

    def _cart(self, values: Mapping[str, str], rest: list[str]) -> str | Response:
        cart, item = self.state.cart, values.get("id", "")
        ids = {ids["id"] for ids in self.state.items}
        if values["method"] == "POST" and item in ids:
            count = max(0, min(99, _whole(values.get("quantity", "1"))))
            cart[item] = count + (cart.get(item, 0) if rest == ["add"] else 0)
            if not cart[item]:
                del cart[item]
            return _go("/cart")
        return pages.cart(self.state)

    def _checkout(self, values: Mapping[str, str], rest: list[str]) -> str | Response:
        state = self.state
        if not state.user:
            return _go("/login?next=/checkout")
        if values["method"] == "POST" and state.cart and values.get("address", "").strip():
            number = str(1001 + 7 * len(state.orders))
            state.orders.append(
                order(number, state.user, state.cart, values["address"].strip(), values.get("express", ""))
            )
            state.cart = {}
            return _go(f"/orders/{number}")
        return pages.checkout(state, wrong=values["method"] == "POST")

    def _orders(self, values: Mapping[str, str], rest: list[str]) -> str | Response:
        if not self.state.user:
            return _go("/login?next=/orders")
        mine = [order for order in self.state.orders if order["user"] == self.state.user]
        if not rest:
            return pages.orders(self.state, mine)
        record = next((order for order in mine if order["id"] == rest[0]), None)
        cancels = rest[1:] == ["cancel"] and values["method"] == "POST"
        if record is not None and cancels and record["status"] == "pending":
            record["status"] = "cancelled"
            return _go(f"/orders/{record['id']}")
        return pages.order(self.state, record)

    def _people(self, values: Mapping[str, str], rest: list[str]) -> str:
        if rest:
            return pages.person(next((person for person in self.state.people if person["id"] == rest[0]), None))
        matches = [person for person in self.state.people if values.get("q", "").lower() in person["name"].lower()]
        if values.get("sort") in ("name", "department", "office"):
            matches = sorted(matches, key=lambda person: (person[values["sort"]], person["name"]))
        return pages.people(matches, values, PAGE)

    def _travel(self, values: Mapping[str, str], rest: list[str]) -> str | Response:
        state, step = self.state, rest[0] if rest else "1"
        fields = {"1": ("destination", "leave", "back"), "2": ("transport", "seat", "meal"), "3": ()}.get(step)
        if fields is None:
            return _go("/travel/1")
        if values["method"] != "POST":
            return pages.travel(state, step, wrong="")
        draft = state.draft | {name: values.get(name, "") for name in fields}
        if wrong := _amiss(draft, step):
            return pages.travel(state, step, wrong=wrong)
        state.draft = draft
        if step != "3":
            return _go(f"/travel/{int(step) + 1}")
        state.travels.append(draft)
        state.draft = {}
        return "Request sent\nYour travel request was sent."

    def _account(self, values: Mapping[str, str], rest: list[str]) -> str | Response:
        if not self.state.user:
            return _go("/login?next=/account")
        mine = self.state.users[self.state.user]
        if values["method"] == "POST" and "@" in values.get("email", ""):
            mine |= {"email": values["email"], "phone": values.get("phone", ""), "newsletter": "newsletter" in values}
            return pages.account(self.state, saved=True)
        return pages.account(self.state, saved=False)

    def _support(self, values: Mapping[str, str], rest: list[str]) -> str:
        if values["method"] == "POST" and values.get("subject", "").strip():
            ticket = {name: values.get(name, "").strip() for name in ("subject", "topic", "urgency", "text")}
            self.state.tickets.append(ticket)
            return f"Ticket {len(self.state.tickets)}\nThank you, we will be in touch."
        return pages.support(self.state, wrong=values["method"] == "POST")


def order(number: str, user: str, cart: Mapping[str, int], address: str, express: str) -> dict[str, Any]:
    """Return the order that a checkout creates."""
    made = {"id": number, "user": user, "date": "2026-01-05", "status": "pending"}
    return {**made, "lines": dict(cart), "address": address} | ({"express": True} if express else {})


def _go(path: str) -> Response:
    place = path if path.startswith("/") and not path.startswith("//") else "/"
    return Response(status=303, headers={"Location": HOME + place})


def _whole(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 6 else 0


def _amiss(draft: Mapping[str, Any], step: str) -> str:
    """Return the error that keeps a step of a travel request from being accepted, or ""."""
    if step == "1" and not (draft["destination"] and draft["leave"] and draft["back"]):
        return "Fill in destination and both dates."
    if step == "1" and draft["back"] < draft["leave"]:
        return "You cannot come back before you leave."
    if step == "2" and not draft["transport"]:
        return "Choose how you travel."
    return "" if step != "3" or "transport" in draft else "Begin with the first step."
