"""The portal's goals: each has a text, the right state or answer, and a plan that reaches it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lmgym.tasks.webforms.pages import MEALS, SEATS, TOPICS, URGENCIES
from lmgym.tasks.webforms.portal import PAGE, State, order
from lmgym.tasks.webforms.words import CITIES, DEPARTMENTS, FIRST, GOODS, LAST, STREETS, SUBJECTS

Step = tuple[str, ...]  # name of an action and its arguments; "#x" stands for the bid of the element with id x
DONE: Step = ("send_msg_to_user", "done")


@dataclass(frozen=True)
class FormGoal:
    """A goal at the portal."""

    kind: str
    text: str
    plan: tuple[Step, ...]
    wanted: Mapping[str, Any]  # what the state keeps in the end: all of it, so that nothing else may change
    user: str = ""  # who is signed in in the end; "": anybody
    answer: str = ""  # to be said; "": anything
    impossible: bool = False  # and that has to be reported

    def reached(self, state: State, answer: str | None, reported: bool) -> bool:
        """Return True if state, answer and report are right."""
        if reported or self.impossible:
            return reported and self.impossible and state.kept() == self.wanted
        spoken = answer is not None and (not self.answer or plain(answer) == plain(self.answer))
        return spoken and self.user in ("", state.user) and state.kept() == self.wanted


def plain(text: str) -> str:
    """Return an answer without case, quotes, outer punctuation and double spaces."""
    return " ".join(text.casefold().split()).strip(" .,!'\"")


def drawn(state: State, rng: np.random.Generator) -> FormGoal:
    """Draw a goal for a state."""
    kinds = tuple(KINDS)
    return KINDS[kinds[int(rng.integers(len(kinds)))]](state.copy(), rng)


def _one(rng: np.random.Generator, choices: Any) -> Any:
    return choices[int(rng.integers(len(choices)))]


def _enter(state: State, user: str, after: str = "") -> tuple[Step, ...]:
    password = state.users[user]["password"]
    where = f"/login?next={after}" if after else "/login"
    return (("goto", where), ("fill", "#user", user), ("fill", "#password", password), ("click", "#enter"))


def _as(state: State, user: str) -> str:
    return f"Sign in as {user} with the password {state.users[user]['password']}"


def _put(state: State, item: Mapping[str, Any], count: int) -> tuple[Step, ...]:
    page = state.items.index(dict(item)) // PAGE + 1
    number = item["id"]
    return (("goto", f"/catalogue?page={page}"), ("fill", f"#n{number}", str(count)), ("click", f"#add{number}"))


def _in_stock(state: State) -> list[dict[str, Any]]:
    return [item for item in state.items if item["stock"]]


def signin(state: State, rng: np.random.Generator) -> FormGoal:
    """Sign in."""
    user = _one(rng, tuple(state.users))
    return FormGoal("signin", f"{_as(state, user)}.", (*_enter(state, user), DONE), state.kept(), user=user)


def cart(state: State, rng: np.random.Generator) -> FormGoal:
    """Put an item into the cart."""
    item, count = _one(rng, _in_stock(state)), int(rng.integers(1, 6))
    plan = (*_put(state, item, count), DONE)
    state.cart = {item["id"]: count}
    return FormGoal("cart", f"Put {count} of the item {item['name']} into the cart.", plan, state.kept())


def cheapest(state: State, rng: np.random.Generator) -> FormGoal:
    """Find the cheapest item of a kind."""
    stocked = _in_stock(state)
    category = _one(rng, [name for name in GOODS if any(item["category"] == name for item in stocked)])
    item = min((item for item in stocked if item["category"] == category), key=lambda item: (item["price"], item["id"]))
    plan = (*_put(state, item, 1), DONE)
    state.cart = {item["id"]: 1}
    text = f"Put one of the cheapest item that is in stock in the category {category} into the cart."
    return FormGoal("cheapest", text, plan, state.kept())


def buy(state: State, rng: np.random.Generator) -> FormGoal:
    """Sign in, fill the cart and place an order."""
    user, item, count = _one(rng, tuple(state.users)), _one(rng, _in_stock(state)), int(rng.integers(1, 4))
    address, express = f"{rng.integers(1, 99)} {_one(rng, STREETS)}", bool(rng.integers(2))
    plan = (*_enter(state, user), *_put(state, item, count), ("click", "#checkout"), ("fill", "#address", address))
    plan += ((("check", "#express"),) if express else ()) + (("click", "#buy"), DONE)
    how = " by express" if express else ""
    text = f"{_as(state, user)} and order {count} of the item {item['name']} to the address {address}{how}."
    number = str(1001 + 7 * len(state.orders))
    state.orders.append(order(number, user, {item["id"]: count}, address, "yes" if express else ""))
    return FormGoal("buy", text, plan, state.kept(), user=user)


def cancel(state: State, rng: np.random.Generator) -> FormGoal:
    """Cancel an order, which must be pending."""
    order = _one(rng, state.orders)
    user, number, open_ = order["user"], order["id"], order["status"] == "pending"
    plan = (*_enter(state, user, "/orders"), ("goto", f"/orders/{number}"))
    plan += (("click", "#cancel"), DONE) if open_ else (("report_infeasible", "the order is not pending"),)
    order["status"] = "cancelled" if open_ else order["status"]
    text = f"{_as(state, user)} and cancel the order {number}."
    return FormGoal("cancel", text, plan, state.kept(), user=user if open_ else "", impossible=not open_)


def profile(state: State, rng: np.random.Generator) -> FormGoal:
    """Change one's account details."""
    user, phone = _one(rng, tuple(state.users)), f"555-{rng.integers(1000, 10_000)}"
    mine = state.users[user]
    turn = "uncheck" if mine["newsletter"] else "check"
    plan = (*_enter(state, user), ("fill", "#phone", phone), (turn, "#newsletter"), ("click", "#save"), DONE)
    mine |= {"phone": phone, "newsletter": not mine["newsletter"]}
    letter = "subscribe to" if mine["newsletter"] else "unsubscribe from"
    text = f"{_as(state, user)}, change the phone number of the account to {phone} and {letter} the newsletter."
    return FormGoal("profile", text, plan, state.kept(), user=user)


def travel(state: State, rng: np.random.Generator) -> FormGoal:
    """Fill in a form of three pages."""
    city, way, seat, meal = _one(rng, CITIES), _one(rng, ("train", "plane", "car")), _one(rng, SEATS), _one(rng, MEALS)
    leave, back = f"2026-{rng.integers(2, 6):02d}-{rng.integers(1, 29):02d}", f"2026-{rng.integers(6, 10):02d}-15"
    plan = (
        *(("goto", "/travel/1"), ("fill", "#destination", city), ("fill", "#leave", leave), ("fill", "#back", back)),
        *(("click", "#go"), ("click", f"#by-{way}"), ("select_option", "#seat", seat)),
        *(("select_option", "#meal", meal), ("click", "#go"), ("click", "#go"), DONE),
    )
    text = f"Request a journey to {city} by {way}, leaving on {leave} and coming back on {back}: {seat}, {meal}."
    request = {"destination": city, "leave": leave, "back": back, "transport": way, "seat": seat, "meal": meal}
    state.travels.append(request)
    return FormGoal("travel", text, plan, state.kept())


def ticket(state: State, rng: np.random.Generator) -> FormGoal:
    """Ask support for help."""
    subject, topic, urgency = _one(rng, SUBJECTS), _one(rng, TOPICS), _one(rng, URGENCIES)
    words = f"Please see to it. {_one(rng, FIRST)}"
    plan = (
        *(("goto", "/support"), ("fill", "#subject", subject), ("select_option", "#topic", topic)),
        *(("select_option", "#urgency", urgency), ("fill", "#text", words), ("click", "#send"), DONE),
    )
    text = f"Write to support: subject {subject!r}, topic {topic}, urgency {urgency}, text {words!r}."
    state.tickets.append({"subject": subject, "topic": topic, "urgency": urgency, "text": words})
    return FormGoal("ticket", text, plan, state.kept())


def ask(state: State, rng: np.random.Generator) -> FormGoal:
    """Look up a detail of a colleague, who may not exist."""
    field = _one(rng, ("phone", "office", "email"))
    there = bool(rng.integers(4))
    person = _one(rng, state.people)
    name = person["name"]
    if not there:
        names = {person["name"] for person in state.people}
        name = next(name for _ in range(1000) if (name := f"{_one(rng, FIRST)} {_one(rng, LAST)}") not in names)
    word = {"phone": "phone number", "office": "office", "email": "email address"}[field]
    text = f"What is the {word} of {name}? Answer with nothing else."
    look: tuple[Step, ...] = (("goto", "/people"), ("fill", "#q", name), ("click", "#search"))
    if not there:
        plan = (*look, ("report_infeasible", "there is nobody of this name"))
        return FormGoal("ask", text, plan, state.kept(), impossible=True)
    plan = (*look, ("goto", f"/people/{person['id']}"), ("send_msg_to_user", person[field]))
    return FormGoal("ask", text, plan, state.kept(), answer=person[field])


def count(state: State, rng: np.random.Generator) -> FormGoal:
    """Count rows over the pages of a table."""
    department = _one(rng, DEPARTMENTS)
    number = str(sum(person["department"] == department for person in state.people))
    pages = -(-len(state.people) // PAGE)
    plan = (*(("goto", f"/people?page={i + 1}") for i in range(pages)), ("send_msg_to_user", number))
    text = f"How many colleagues work in the department {department}? Answer with the number alone."
    return FormGoal("count", text, plan, state.kept(), answer=number)


def nowhere(state: State, rng: np.random.Generator) -> FormGoal:
    """Buy an item that does not exist."""
    gone = [item["name"] for item in state.items if not item["stock"]]
    name = _one(rng, gone) if gone and rng.integers(2) else f"Golden {_one(rng, GOODS[_one(rng, tuple(GOODS))])}"
    plan = (("goto", "/catalogue"), ("fill", "#q", name), ("click", "#search"), ("report_infeasible", "not to be had"))
    return FormGoal("nowhere", f"Put one of the item {name} into the cart.", plan, state.kept(), impossible=True)


KINDS: Mapping[str, Callable[[State, np.random.Generator], FormGoal]] = {
    made.__name__: made for made in (signin, cart, cheapest, buy, cancel, profile, travel, ticket, ask, count, nowhere)
}
