"""Requests to Shop and Settings."""

from __future__ import annotations

from lmgym.tasks.phone.goals import Builder, PhoneGoal, Rng, changed, impossible, question
from lmgym.tasks.phone.moves import answer, app, fill, tap
from lmgym.tasks.phone.pages import price
from lmgym.tasks.phone.state import HIGHEST, LEVELS, SWITCHES, PhoneState, address, one, several
from lmgym.tasks.phone.words import GOODS, LANGUAGES, NETWORKS

_FREE = tuple(name for name in SWITCHES if name != "Airplane mode")  # those that change nothing else


def buy(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Order a product."""
    product, count, place = one(rng, state.products), int(rng.integers(1, 4)), address(rng)
    state.cart = {product["id"]: count}
    state.order(place)
    adding = ["Add to cart"] * count
    plan = (*app("Shop", product["name"], *adding, "Cart"), fill("Address", place), *tap("Place order"))
    template = "Order {count} of the product {name} to the address {place}."
    return changed(template, state, plan, count=count, name=product["name"], place=place)


def cheapest(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Put the cheapest product of a category into the cart."""
    category = one(rng, tuple(GOODS))
    choices = [each for each in state.products if each["category"] == category]
    product = min(choices, key=lambda each: (each["price"], each["id"]))
    state.cart = {product["id"]: 1}
    plan = (*app("Shop"), fill("Search", category), *tap(product["name"], "Add to cart"))
    return changed("Put one of the cheapest product in {category} into the cart.", state, plan, category=category)


def wish(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Put two products on the wish list."""
    first, second = several(rng, state.products, 2)
    state.wishes = [first["id"], second["id"]]
    plan = (*app("Shop", first["name"], "Add to wish list"), *app("Shop", second["name"], "Add to wish list"))
    template = "Put {first} and then {second} on the wish list."
    return changed(template, state, plan, first=first["name"], second=second["name"])


def cancel_order(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Cancel an order that is not shipped yet."""
    order = one(rng, [each for each in state.orders if each["status"] == "processing"])
    plan = app("Shop", "Orders", f"Order {order['id']}", "Cancel order")
    order["status"] = "cancelled"
    return changed("Cancel the order {number} of the shop.", state, plan, number=order["id"])


def order_total(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Look up the total of an order."""
    order = one(rng, state.orders)
    total = price(state.total(order["lines"]))
    plan = (*app("Shop", "Orders", f"Order {order['id']}"), answer(total))
    template = "What is the total of the order {number} of the shop? Answer with the amount, such as $12.50."
    return question(template, state, plan, total, number=order["id"])


def product_price(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Look up the price of a product."""
    product = one(rng, state.products)
    cost = price(product["price"])
    plan = (*app("Shop"), fill("Search", product["name"]), *tap(product["name"]), answer(cost))
    template = "What does the product {name} cost? Answer with the amount, such as $12.50."
    return question(template, state, plan, cost, name=product["name"])


def cancel_shipped(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Ask to cancel an order that has left."""
    order = one(rng, [each for each in state.orders if each["status"] in ("shipped", "delivered")])
    plan = app("Shop", "Orders", f"Order {order['id']}")
    return impossible("Cancel the order {number} of the shop.", state, plan, number=order["id"])


def turn_switch(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Turn one switch."""
    name = one(rng, SWITCHES)
    state.flip(name)
    turned = "on" if state.settings[name] else "off"
    return changed("Turn {name} {turned}.", state, app("Settings", name), name=name, turned=turned)


def turn_two(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Turn two switches."""
    first, second = several(rng, _FREE, 2)
    for name in (first, second):
        state.flip(name)
    one_way, other_way = ("on" if state.settings[name] else "off" for name in (first, second))
    template = "Turn {first} {one_way} and {second} {other_way}."
    plan = app("Settings", first, second)
    return changed(template, state, plan, first=first, one_way=one_way, second=second, other_way=other_way)


def set_level(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Set a level to a number."""
    name = one(rng, tuple(LEVELS))
    step, now = LEVELS[name], state.settings[name]
    levels = [level for level in range(0, HIGHEST[name] + 1, step) if 0 < abs(level - now) <= 6 * step]
    level = one(rng, levels)
    taps = ["More" if level > now else "Less"] * (abs(level - now) // step)
    state.settings[name] = level
    return changed("Set {name} to {level}.", state, app("Settings", name, *taps), name=name.lower(), level=level)


def read_level(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Read a level."""
    name = one(rng, tuple(LEVELS))
    level = str(state.settings[name])
    template = "What is the {name} set to? Answer with the number alone."
    return question(template, state, (*app("Settings", name), answer(level)), level, name=name.lower())


def choose_language(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Choose the language."""
    language = one(rng, [each for each in LANGUAGES if each != state.settings["Language"]])
    state.settings["Language"] = language
    return changed("Set the language to {name}.", state, app("Settings", "Language", language), name=language)


def join_network(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Connect to a network, turning Wi-Fi on if necessary."""
    name, password = one(rng, NETWORKS), "".join(several(rng, "abcdefghkmnpqrstuvwxyz23456789", 8))
    turn = () if state.settings["Wi-Fi"] else tap("Wi-Fi")
    plan = (*app("Settings"), *turn, *tap("Networks", name), fill("Password", password), *tap("Connect"))
    state.settings |= {"Wi-Fi": True, "Network": name, "Password": password}
    template = "Turn Wi-Fi on, if it is off, and connect to the network {name} with the password {password}"
    return changed(template, state, plan, name=name, password=password)


TEMPLATES: tuple[Builder, ...] = (
    *(turn_switch, buy, set_level, cheapest, choose_language, wish, join_network, order_total, turn_two),
    *(product_price, read_level, cancel_order, cancel_shipped),
)
