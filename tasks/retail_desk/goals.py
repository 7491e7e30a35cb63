"""Hidden goals: what a customer wants, knows and does not know, and what a right answer to it changes and says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lmgym.tasks.retail_desk.shop import GOODS, RETURN_DAYS, Data, ShopRecords, options_text, pick, sample
from lmgym.tasks.retail_desk.tools import CREDIT

LEVELS = (1, 2, 3, 4)
REFUSALS = 0.35  # share of requests that the policy forbids
Gold = tuple[str, Mapping[str, Any]]  # a tool call that changes the database


@dataclass(frozen=True, kw_only=True)
class Matter:
    """One thing that the customer wants."""

    kind: str  # "cancel", "change address", "swap", "return", "exchange", "credit", "email", "refer"
    order_id: str
    details: Mapping[str, str]  # what the customer tells when asked, by slot, in the order of telling
    gold: Gold  # the change that is right: the action, a recorded refusal or a referral
    rule: str = ""  # by which the request must be declined
    second: str = ""  # wish that the customer names when the first is out of stock
    fact: str = ""  # number that the agent has to say, such as "74.50"
    question: str = ""  # with which the customer asks for it
    presses: bool = False  # asks once more after a refusal


@dataclass(frozen=True, kw_only=True)
class Goal:
    """A customer with one to three matters."""

    customer: Data
    level: int
    matters: tuple[Matter, ...]
    identity: Mapping[str, str]  # what the customer can say about themselves, by slot
    unknown: tuple[str, ...] = ()  # strings that the customer does not know and must not say first

    @property
    def refusal(self) -> bool:
        """True if a request must be declined."""
        return any(matter.rule for matter in self.matters)

    @property
    def facts(self) -> tuple[str, ...]:
        """Numbers that the agent has to say."""
        return tuple(matter.fact for matter in self.matters if matter.fact)


@dataclass
class GoalMaker:
    """Writes a goal of a level together with the orders that it is about."""

    shop: ShopRecords
    chance: np.random.Generator
    level: int
    customer: Data = field(init=False)
    goods: list[str] = field(init=False)  # names that this customer has not ordered yet

    def make(self) -> Goal:
        """Add the customer and their orders to the shop and return the goal."""
        self.customer = self.shop.add_customer()
        self.goods = sample(self.chance, tuple(GOODS), len(GOODS))
        makers = SMALL if self.shop.small else tuple(MAKERS)
        kinds = sample(self.chance, makers, {1: 1, 2: 1, 3: 2, 4: 3}[self.level])
        matters = tuple(MAKERS[kind](self, bool(self.chance.random() < REFUSALS)) for kind in kinds)
        self._order(1, pick(self.chance, ("placed", "delivered")))
        first, last, postcode = (self.customer[name] for name in ("first_name", "last_name", "address"))
        named = {"name": f"My name is {first} {last}.", "postcode": f"The postcode is {postcode['postcode']}."}
        by_name = self.level >= 3 and bool(self.chance.integers(2))
        unknown = tuple(one.order_id for one in matters if one.order_id not in one.details.get("order", one.order_id))
        return Goal(
            customer=self.customer,
            level=self.level,
            matters=matters,
            identity=named if by_name else {"email": f"My email address is {self.customer['email']}.", **named},
            unknown=(*unknown, self.customer["email"]) if by_name else unknown,
        )

    def cancel(self, refuse: bool) -> Matter:
        """Cancel an order; one that has been packed or shipped stays."""
        status = pick(self.chance, ("packed", "shipped")) if refuse else "placed"
        order = self._order(2, status)
        reason = pick(self.chance, ("no longer needed", "ordered by mistake", "takes too long"))
        spoken = {
            "no longer needed": "I no longer need it.",
            "ordered by mistake": "I ordered it by mistake.",
            "takes too long": "It takes too long to arrive.",
        }
        gold = ("cancel_order", {"order_id": order["order_id"], "reason": reason})
        return self._matter("cancel", order, {"reason": spoken[reason]}, gold, "order has left" if refuse else "")

    def change_address(self, refuse: bool) -> Matter:
        """Send an order elsewhere; one that has been shipped cannot be."""
        order = self._order(1, "shipped" if refuse else pick(self.chance, ("placed", "packed")))
        new = self.shop.address()
        spoken = f"Please send it to {new['street']}, {new['city']}, postcode {new['postcode']}."
        gold = ("change_address", {"order_id": order["order_id"], **new})
        return self._matter("change address", order, {"address": spoken}, gold, "order has left" if refuse else "")

    def swap(self, refuse: bool) -> Matter:
        """Change a variant of an order that is placed."""
        rule = pick(self.chance, ("order has left", "other product")) if refuse else ""
        order = self._order(2, "packed" if rule == "order has left" else "placed")
        return self._replacement("swap", "swap_item", order, rule)

    def exchange(self, refuse: bool) -> Matter:
        """Exchange an item of a delivered order for another variant."""
        rules = ("too late to return", "final sale", "other product", "out of stock")
        rule = pick(self.chance, rules) if refuse else ""
        return self._replacement("exchange", "exchange_item", self._delivered(rule), rule)

    def return_item(self, refuse: bool) -> Matter:
        """Send an item of a delivered order back."""
        rule = pick(self.chance, ("too late to return", "final sale", "refund method")) if refuse else ""
        order = self._delivered(rule)
        payments = self.customer["payments"]
        card, gift = sorted(payments, key=lambda name: payments[name]["kind"] != "card")
        if rule == "refund method":
            order["paid_with"], payment = gift, card
        else:
            payment = gift if order["paid_with"] == gift else pick(self.chance, (card, gift))
        item = order["items"][0]
        details = {"item": self._named(item), "payment": f"Please refund it to my {payments[payment]['kind']}."}
        arguments = {"order_id": order["order_id"], "item_id": item["item_id"], "payment_id": payment}
        question = {} if rule else {"fact": f"{item['price']:.2f}", "question": "How much will I get back?"}
        return self._matter("return", order, details, ("return_item", arguments), rule, **question)

    def credit(self, refuse: bool) -> Matter:
        """Ask for store credit for a late delivery."""
        order = self._order(1, "delivered", age=int(self.chance.integers(2, 20)), late=not refuse)
        rule = "delivered in time" if refuse else ""
        given = self.customer["credit"] + CREDIT[self.customer["member"]]
        question = {} if rule else {"fact": f"{given:.2f}", "question": "How many euros of credit do I have then?"}
        return self._matter("credit", order, {}, ("give_credit", {"order_id": order["order_id"]}), rule, **question)

    def other_order(self, refuse: bool) -> Matter:
        """Cancel somebody else's order, which the policy forbids, or report damage, which a colleague decides."""
        if refuse:
            other = pick(self.chance, [one for one in self.shop.data["customers"].values() if one is not self.customer])
            order = self.shop.add_order(other, self._take(1), "placed")
            spoken = f"It is my friend's order, number {order['order_id']}."
            gold = ("cancel_order", {"order_id": order["order_id"], "reason": "no longer needed"})
            details = {"order": spoken, "reason": "It is no longer needed."}
            return self._matter("cancel", order, details, gold, "not the customer's order")
        order = self._order(1, "delivered")
        arguments = {"customer_id": self.customer["customer_id"], "order_id": order["order_id"]}
        return self._matter("refer", order, {}, ("refer_to_colleague", {**arguments, "topic": "damaged goods"}), "")

    def email(self, refuse: bool) -> Matter:
        """Change the email address, which is always allowed; or ask for a late swap."""
        if refuse:
            return self.swap(refuse=True)
        order = self._order(1, "shipped")
        new = f"{self.customer['first_name']}{int(self.chance.integers(100, 1000))}@post.example".lower()
        arguments = {"customer_id": self.customer["customer_id"], "email": new}
        matter = self._matter("email", order, {}, ("change_email", arguments), "")
        return Matter(**{**vars(matter), "details": {"new email": f"The new address is {new}."}})

    # Parts -----------------------------------------------------------------------------------------------------

    def _matter(
        self, kind: str, order: Data, details: Mapping[str, str], gold: Gold, rule: str, **others: Any
    ) -> Matter:
        if rule:
            arguments = {"order_id": order["order_id"], "request": kind, "rule": rule}
            gold = ("decline_request", {"customer_id": self.customer["customer_id"], **arguments})
        unsure = f"I do not have the number. It is the order with the {order['items'][0]['name']}."
        number = f"The order number is {order['order_id']}." if self.level == 1 else unsure
        presses = bool(rule) and self.level >= 3
        others |= {"details": {"order": number, **details}, "rule": rule, "presses": presses}
        return Matter(kind=kind, order_id=order["order_id"], gold=gold, **others)

    def _order(self, goods: int, status: str, **others: Any) -> Data:
        """Add an order of the customer with this number of items that were not ordered before."""
        return self.shop.add_order(self.customer, self._take(goods), status, **others)

    def _delivered(self, rule: str) -> Data:
        late = rule == "too late to return"
        age = int(self.chance.integers(RETURN_DAYS + 1, 90) if late else self.chance.integers(2, RETURN_DAYS + 1))
        return self._order(2, "delivered", age=age, final=rule == "final sale")

    def _replacement(self, kind: str, tool: str, order: Data, rule: str) -> Matter:
        item = order["items"][0]
        variants: Data = self.shop.product(item["name"])["variants"]
        first, second = sample(self.chance, [one for one in variants.values() if one["options"] != item["options"]], 2)
        wish, fallback = f"I would like {options_text(first['options'])} instead.", ""
        if rule == "other product":
            wish = f"I would like a {self._take(1)[0]} instead."
        elif rule == "out of stock":
            first["stock"] = 0
        elif not rule and self.level >= 3 and self.chance.integers(2):
            first["stock"], fallback = 0, f"Then I would take {options_text(second['options'])}."
        chosen = second if fallback else first
        payment = pick(self.chance, sorted(self.customer["payments"]))
        paid = f"Please use my {self.customer['payments'][payment]['kind']} for the difference."
        details = {"item": self._named(item), "wish": wish, "payment": paid}
        arguments = {
            "order_id": order["order_id"],
            "item_id": item["item_id"],
            "new_item_id": chosen["item_id"],
            "payment_id": payment,
        }
        question = {}
        if not rule and self.level >= 2:
            question = {"fact": f"{chosen['price']:.2f}", "question": "What is the price of the new one?"}
        return self._matter(kind, order, details, (tool, arguments), rule, second=fallback, **question)

    def _named(self, item: Data) -> str:
        return f"It is the {item['name']} ({options_text(item['options'])})."

    def _take(self, count: int) -> list[str]:
        return [self.goods.pop() for _ in range(count)]


MAKERS: Mapping[str, Callable[[GoalMaker, bool], Matter]] = {
    "cancel": GoalMaker.cancel,
    "change address": GoalMaker.change_address,
    "swap": GoalMaker.swap,
    "exchange": GoalMaker.exchange,
    "return": GoalMaker.return_item,
    "credit": GoalMaker.credit,
    "other": GoalMaker.other_order,
    "email": GoalMaker.email,
}
SMALL = ("cancel", "credit", "other")  # matters of a small desk


def make_goal(chance: np.random.Generator, level: int, *, small: bool = False) -> tuple[Data, Goal]:
    """Return a database and a goal of a level from 1 to 4 in it."""
    shop = ShopRecords(chance, small=small)
    for _ in range(3):
        customer = shop.add_customer()
        goods: Sequence[str] = sample(chance, tuple(GOODS), 4)
        shop.add_order(customer, goods[:2], pick(chance, ("placed", "packed", "shipped")))
        shop.add_order(customer, goods[2:], "delivered", age=int(chance.integers(2, 60)))
    goal = GoalMaker(shop, chance, level).make()
    return shop.data, goal
