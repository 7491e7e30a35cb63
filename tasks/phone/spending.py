"""The apps Shop and Settings."""

from __future__ import annotations

from urllib.parse import quote, unquote

from lmgym.tasks.phone.pages import (
    GONE,
    Answer,
    PhoneScreen,
    Redirect,
    Visit,
    button,
    choice,
    entry,
    form,
    link,
    price,
    search,
    switch,
    text,
)
from lmgym.tasks.phone.state import HIGHEST, LEVELS, SWITCHES, PhoneState, by_id
from lmgym.tasks.phone.words import LANGUAGES, NETWORKS

MOST = 99  # of a product in the cart
SECRET = 8  # characters of a network's password at least


def shop(state: PhoneState, visit: Visit) -> Answer:
    """Answer a request to Shop."""
    head, *rest = visit.path or ("",)
    if not head:
        wanted = visit.get("q").casefold()
        rows = [
            link(each["name"], f"/shop/{each['id']}", note=f"{each['category']}, {price(each['price'])}")
            for each in state.products
            if wanted in each["name"].casefold() or wanted in each["category"].casefold()
        ]
        top = link("Cart", "/shop/cart") + link("Wish list", "/shop/wishes") + link("Orders", "/shop/orders")
        return PhoneScreen("Shop", search("/shop", visit.get("q")) + top + "".join(rows))
    if head == "cart":
        return _cart(state, visit, rest)
    if head == "wishes":
        rows = [link(by_id(state.products, number)["name"], f"/shop/{number}") for number in state.wishes]
        return PhoneScreen("Wish list", "".join(rows) or text("The wish list is empty."))
    if head == "orders":
        return _orders(state, visit, rest)
    product = by_id(state.products, head)
    number = product["id"]
    match rest:
        case []:
            wish = "Remove from wish list" if number in state.wishes else "Add to wish list"
            about = text(f"Category: {product['category']}") + text(f"Price: {price(product['price'])}")
            held = text(f"In the cart: {state.cart[number]}") if number in state.cart else ""
            buttons = button("Add to cart", f"/shop/{number}/add") + button(wish, f"/shop/{number}/wish")
            return PhoneScreen(product["name"], about + held + buttons + link("Cart", "/shop/cart"))
        case ["add"] if visit.posted:
            state.cart[number] = min(MOST, state.cart.get(number, 0) + 1)
        case ["wish"] if visit.posted and number in state.wishes:
            state.wishes.remove(number)
        case ["wish"] if visit.posted:
            state.wishes.append(number)
        case _:
            return GONE
    return Redirect(f"/shop/{number}")


def _cart(state: PhoneState, visit: Visit, rest: list[str]) -> Answer:
    match rest:
        case ["remove", number] if visit.posted:
            state.cart.pop(number, None)
            return Redirect("/shop/cart")
        case ["order"] if visit.posted and state.cart:
            if visit.get("address"):
                state.order(visit.get("address"))
                return Redirect(f"/shop/orders/{state.orders[-1]['id']}")
        case []:
            pass
        case _:
            return GONE
    rows = [
        text(f"{by_id(state.products, number)['name']}: {count}") + button("Remove", f"/shop/cart/remove/{number}")
        for number, count in state.cart.items()
    ]
    if not rows:
        return PhoneScreen("Cart", text("The cart is empty."))
    wrong = "Where should it go?" if visit.posted else ""
    order = form("/shop/cart/order", entry("Address", "address"), submit="Place order", wrong=wrong)
    return PhoneScreen("Cart", "".join(rows) + text(f"Total: {price(state.total(state.cart))}") + order)


def _orders(state: PhoneState, visit: Visit, rest: list[str]) -> Answer:
    if not rest:
        rows = [link(f"Order {each['id']}", f"/shop/orders/{each['id']}", note=each["status"]) for each in state.orders]
        return PhoneScreen("Orders", "".join(rows))
    order = by_id(state.orders, rest[0])
    place = f"/shop/orders/{order['id']}"
    if rest[1:] == ["cancel"] and visit.posted and order["status"] == "processing":
        order["status"] = "cancelled"
        return Redirect(place)
    lines = [text(f"{by_id(state.products, number)['name']}: {count}") for number, count in order["lines"].items()]
    about = [text(f"Status: {order['status']}"), text(f"Address: {order['address']}")]
    about.append(text(f"Total: {price(state.total(order['lines']))}"))
    cancel = button("Cancel order", f"{place}/cancel") if order["status"] == "processing" else ""
    return PhoneScreen(f"Order {order['id']}", "".join([*lines, *about, cancel]))


def settings(state: PhoneState, visit: Visit) -> Answer:
    """Answer a request to Settings."""
    path = tuple(unquote(part) for part in visit.path)
    match path:
        case ():
            rows = [switch(name, f"/settings/{quote(name)}", state.settings[name]) for name in SWITCHES]
            rows += [link(name, f"/settings/{quote(name)}", note=str(state.settings[name])) for name in LEVELS]
            rows.append(link("Networks", "/settings/Networks", note=state.settings["Network"] or "not connected"))
            rows.append(link("Language", "/settings/Language", note=state.settings["Language"]))
            return PhoneScreen("Settings", "".join(rows))
        case (name,) if name in SWITCHES and visit.posted:
            state.flip(name)
            return Redirect("/settings")
        case (name,) if name in LEVELS:
            return _level(state, visit, name)
        case ("Language",):
            rows = [
                choice(each, f"/settings/Language/{quote(each)}", each == state.settings["Language"])
                for each in LANGUAGES
            ]
            return PhoneScreen("Language", "".join(rows))
        case ("Language", name) if name in LANGUAGES and visit.posted:
            state.settings["Language"] = name
            return Redirect("/settings/Language")
        case ("Networks",):
            rows = [link(each, f"/settings/Networks/{quote(each)}") for each in NETWORKS]
            joined = state.settings["Network"]
            return PhoneScreen(
                "Networks", text(f"Connected to {joined}." if joined else "Not connected.") + "".join(rows)
            )
        case ("Networks", name) if name in NETWORKS:
            return _join(state, visit, name)
    return GONE


def _level(state: PhoneState, visit: Visit, name: str) -> Answer:
    place, step = f"/settings/{quote(name)}", LEVELS[name]
    change = {"More": step, "Less": -step}.get(visit.get("change"), 0) if visit.posted else 0
    if change:
        state.settings[name] = max(0, min(HIGHEST[name], state.settings[name] + change))
        return Redirect(place)
    rows = text(f"{name}: {state.settings[name]} of {HIGHEST[name]}")
    return PhoneScreen(name, rows + "".join(button(each, place, change=each) for each in ("More", "Less")))


def _join(state: PhoneState, visit: Visit, name: str) -> Answer:
    """Show or answer the password form of a network. Like a phone, it keeps the password and connects."""
    wrong = ""
    if visit.posted and not state.settings["Wi-Fi"]:
        wrong = "Wi-Fi is off."
    elif visit.posted and len(visit.get("password")) < SECRET:
        wrong = f"The password has at least {SECRET} characters."
    elif visit.posted:
        state.settings |= {"Network": name, "Password": visit.get("password")}
        return Redirect("/settings/Networks")
    path = f"/settings/Networks/{quote(name)}"
    return PhoneScreen(name, form(path, entry("Password", "password"), submit="Connect", wrong=wrong))
