"""A clerk who serves the scripted customer: the task's oracle.

It knows the goal, but asks for every detail and looks up every id before it uses it, so what it does follows from the
observations: a model that imitates it learns no guessing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from lmgym.tasks.retail_desk.customer import ScriptedCustomer
from lmgym.tasks.retail_desk.goals import Goal, Matter
from lmgym.tasks.retail_desk.shop import Data

QUESTIONS = {
    "order": "Which order is it about?",
    "item": "Which item do you mean?",
    "reason": "What is the reason?",
    "address": "To which address shall it go?",
    "wish": "What would you like instead?",
    "payment": "Which payment shall I use?",
    "new email": "What is the new email address?",
}
EXPLANATIONS = {
    "order has left": "the order is already packed or has left our store",
    "too late to return": "it was delivered more than 30 days ago",
    "final sale": "this item was on final sale",
    "other product": "we can only give you another version of the same product",
    "out of stock": "the version that you want is out of stock",
    "refund method": "a refund goes to the payment of the order or to a gift card",
    "delivered in time": "the order was delivered by the promised day",
    "not the customer's order": "the order belongs to another customer",
}
Calls = Sequence[tuple[str, dict[str, Any]]]


def next_action(
    goal: Goal, customer: ScriptedCustomer, data: Data, calls: Calls, answers: Sequence[tuple[int, str]]
) -> str:
    """Return the next action, given the tool calls that succeeded and the customer's answers by matter."""
    return _find_customer(goal, customer, calls) or _serve(goal, customer, data, calls, answers)


def _find_customer(goal: Goal, customer: ScriptedCustomer, calls: Calls) -> str:
    person = goal.customer
    if any(name.startswith("find_customer") for name, _ in calls):
        arguments = {"customer_id": person["customer_id"]}
        return "" if ("get_customer", arguments) in calls else _call("get_customer", arguments)
    if "email" in goal.identity:
        if "email" not in customer.told:
            return "May I have your email address, please?"
        return _call("find_customer_by_email", {"email": goal.identity["email"].split()[-1].rstrip(".")})
    if not {"name", "postcode"} <= customer.told:
        return "Please tell me your name and your postcode."
    names = {"first_name": person["first_name"], "last_name": person["last_name"]}
    return _call("find_customer_by_name", {**names, "postcode": person["address"]["postcode"]})


def _serve(goal: Goal, customer: ScriptedCustomer, data: Data, calls: Calls, answers: Sequence[tuple[int, str]]) -> str:
    matter = customer.matter
    missing = [slot for slot in matter.details if slot not in customer.told]
    if missing:
        return " ".join(QUESTIONS[slot] for slot in missing)
    if lookup := _lookup(goal, matter, data, calls):
        return lookup
    if matter.second and "second" not in customer.told:
        return "I am sorry, that one is out of stock. Which other one would you like instead?"
    name, arguments = matter.gold
    done = (name, dict(arguments)) in calls
    if matter.rule:
        return _call(name, arguments) if not done else f"I am sorry, I cannot do that: {EXPLANATIONS[matter.rule]}."
    if done:
        if customer.questioned:
            return f"It is {matter.fact} euros."
        return "That is done. Is there anything else that I can do for you?"
    agreed = any(number == customer.number and words.startswith("Yes") for number, words in answers)
    if agreed:
        return _call(name, arguments)
    values = ", ".join(f"{key.replace('_', ' ')} {value}" for key, value in arguments.items())
    return f"I will do this: {name.replace('_', ' ')} ({values}). Shall I proceed?"


def _lookup(goal: Goal, matter: Matter, data: Data, calls: Calls) -> str:
    """Return a call that reads something that the matter needs and that was not read yet; "" if there is none."""
    if matter.kind == "email":
        return ""
    own = list(goal.customer["orders"])
    orders = [*own[: own.index(matter.order_id) + 1], matter.order_id] if matter.order_id in own else [matter.order_id]
    if matter.order_id in str(matter.details.get("order")):
        orders = [matter.order_id]
    for order_id in orders:
        if ("get_order", {"order_id": order_id}) not in calls:
            return _call("get_order", {"order_id": order_id})
    if "wish" in matter.details:
        product = {"product_id": data["orders"][matter.order_id]["items"][0]["product_id"]}
        if ("get_product", product) not in calls:
            return _call("get_product", product)
    return ""


def _call(name: str, arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": dict(arguments)})
