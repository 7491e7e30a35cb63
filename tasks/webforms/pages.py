"""The portal's pages as HTML; each function returns a title, a line break and a body."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

from lmgym.tasks.webforms.words import DEPARTMENTS, GOODS

STYLE = (
    "body{font:14px Arial;margin:12px;max-width:700px} table{border-collapse:collapse} td,th{border:1px solid #999;"
    "padding:3px 6px;text-align:left} nav a{margin-right:10px} .wrong{color:#b00} label{display:block;margin:4px 0}"
)
LINKS = (("Home", "/"), ("Catalogue", "/catalogue"), ("Cart", "/cart"), ("Orders", "/orders"), ("People", "/people"),
         ("Travel", "/travel/1"), ("Account", "/account"), ("Support", "/support"))  # fmt: skip
SEATS, MEALS = ("Second class", "First class"), ("No meal", "Vegetarian", "Standard")
TOPICS, URGENCIES = ("Hardware", "Software", "Building", "Billing"), ("low", "normal", "high")


def page(state: Any, title: str, body: str) -> bytes:
    """Return a whole page."""
    links = "".join(f"<a href='{to}'>{name}</a>" for name, to in LINKS)
    who = f"Signed in as {escape(state.user)} <a id='logout' href='/logout'>Sign out</a>" if state.user else ""
    who = who or "<a id='signin' href='/login'>Sign in</a>"
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        f"<title>{escape(title)}</title><style>{STYLE}</style>"
        f"</head><body><nav>{links}{who}</nav><h1>{escape(title)}</h1><main>{body}</main></body></html>"
    ).encode()


def price(cents: int) -> str:
    """Return an amount as pages show it."""
    return f"{cents // 100}.{cents % 100:02d}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells that are HTML already."""
    top = "".join(f"<th>{name}</th>" for name in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"


def button(name: str, to: str, label: str, **hidden: str) -> str:
    """Return a form that is one button."""
    fields = "".join(f"<input type='hidden' name='{key}' value='{escape(value)}'>" for key, value in hidden.items())
    return f"<form method='post' action='{to}'>{fields}<button id='{name}'>{label}</button></form>"


def searched(what: str, values: Mapping[str, str]) -> str:
    """Return the search field."""
    return f"<input id='q' name='q' aria-label='Search {what}' value='{escape(values.get('q', ''))}'>"


def quantity(number: str, count: int) -> str:
    """Return the fields for the number of an item."""
    return (
        f"<input type='hidden' name='id' value='{number}'>"
        f"<input id='n{number}' name='quantity' size='2' value='{count}' aria-label='Quantity'>"
    )


def options(name: str, choices: Sequence[str], chosen: str = "", empty: str = "") -> str:
    """Return a list to choose from."""
    first = f"<option value=''>{empty}</option>" if empty else ""
    rest = "".join(f"<option{' selected' if choice == chosen else ''}>{escape(choice)}</option>" for choice in choices)
    return f"<select id='{name}' name='{name}'>{first}{rest}</select>"


def turned(where: str, values: Mapping[str, str], size: int, count: int) -> tuple[slice, str]:
    """Return the rows of the requested page of a table, and links to its neighbours."""
    last = max(1, -(-count // size))
    text = values.get("page", "1")
    number = min(last, max(1, int(text))) if text.isdecimal() and len(text) < 6 else 1
    kept = {name: value for name, value in values.items() if name in ("q", "category", "sort") and value}

    def link(label: str, to: int) -> str:
        return f"<a href='{where}?{escape(urlencode(kept | {'page': to}))}'>{label}</a> " if 1 <= to <= last else ""

    turn = f"<p>{link('Previous', number - 1)}Page {number} of {last} {link('Next', number + 1)}</p>"
    return slice((number - 1) * size, number * size), turn


def home(state: Any) -> str:
    """Return the home page."""
    return f"Portal\n<p>{len(state.items)} goods, {len(state.people)} colleagues. What do you want to do?</p>"


def login(*, wrong: bool, after: str) -> str:
    """Return the sign-in form."""
    notice = "<p class='wrong'>Unknown name or wrong password.</p>" if wrong else ""
    return (
        f"Sign in\n{notice}<form method='post' action='/login'>"
        f"<input type='hidden' name='next' value='{escape(after)}'>"
        "<label>User name <input id='user' name='user'></label>"
        "<label>Password <input id='password' type='password' name='password'></label>"
        "<button id='enter'>Enter</button></form>"
    )


def catalogue(items: Sequence[Mapping[str, Any]], values: Mapping[str, str], size: int) -> str:
    """Return a page of the catalogue."""
    window, turn = turned("/catalogue", values, size, len(items))
    search = (
        f"<form action='/catalogue'>{searched('goods', values)}"
        f"{options('category', tuple(GOODS), values.get('category', ''), 'All categories')}"
        "<button id='search'>Search</button></form>"
    )
    rows = []
    for item in items[window]:
        number = item["id"]
        put = (
            f"<form method='post' action='/cart/add'>{quantity(number, 1)}"
            f"<button id='add{number}'>Add to cart</button></form>"
            if item["stock"]
            else "sold out"
        )
        rows.append((escape(item["name"]), item["category"], price(item["price"]), str(item["stock"]), put))
    return f"Catalogue\n{search}{table(('Name', 'Category', 'Price', 'In stock', ''), rows)}{turn}"


def cart(state: Any) -> str:
    """Return the cart."""
    goods = {item["id"]: item for item in state.items}
    rows = []
    for number, count in state.cart.items():
        change = (
            f"<form method='post' action='/cart/set'>{quantity(number, count)}"
            f"<button id='set{number}'>Update</button></form>"
        )
        away = button(f"drop{number}", "/cart/set", "Remove", id=number, quantity="0")
        rows.append((escape(goods[number]["name"]), price(goods[number]["price"]), change, away))
    total = sum(goods[number]["price"] * count for number, count in state.cart.items())
    end = (
        f"<p>Total: {price(total)}</p><a id='checkout' href='/checkout'>Check out</a>"
        if rows
        else "<p>It is empty.</p>"
    )
    return f"Cart\n{table(('Name', 'Price', 'Quantity', ''), rows)}{end}"


def checkout(state: Any, *, wrong: bool) -> str:
    """Return the checkout form."""
    if not state.cart:
        return "Check out\n<p>There is nothing in the cart.</p>"
    notice = "<p class='wrong'>Where should it go?</p>" if wrong else ""
    return (
        f"Check out\n{notice}<form method='post' action='/checkout'>"
        "<label>Address <input id='address' name='address'></label>"
        "<label><input id='express' type='checkbox' name='express' value='yes'> Express</label>"
        "<button id='buy'>Place order</button></form>"
    )


def orders(state: Any, mine: Sequence[Mapping[str, Any]]) -> str:
    """Return the list of a user's orders."""
    goods = {item["id"]: item for item in state.items}
    rows = []
    for order in mine:
        total = sum(goods[number]["price"] * count for number, count in order["lines"].items())
        rows.append(
            (f"<a href='/orders/{order['id']}'>{order['id']}</a>", order["date"], order["status"], price(total))
        )
    return f"Orders\n{table(('Number', 'Date', 'Status', 'Total'), rows)}"


def order(state: Any, record: Mapping[str, Any] | None) -> str:
    """Return one order."""
    if record is None:
        return "No such order\n<p>You have no order of this number.</p>"
    goods = {item["id"]: item for item in state.items}
    rows = [(escape(goods[number]["name"]), str(count)) for number, count in record["lines"].items()]
    away = (
        button("cancel", f"/orders/{record['id']}/cancel", "Cancel this order") if record["status"] == "pending" else ""
    )
    return (
        f"Order {record['id']}\n<p>Date: {record['date']}</p><p>Status: <span id='status'>{record['status']}</span></p>"
        f"<p>To: <span id='to'>{escape(record['address'])}</span></p>{table(('Name', 'Quantity'), rows)}{away}"
    )


def people(matches: Sequence[Mapping[str, Any]], values: Mapping[str, str], size: int) -> str:
    """Return a page of the directory."""
    window, turn = turned("/people", values, size, len(matches))
    heads = [f"<a href='/people?sort={name}'>{name.capitalize()}</a>" for name in ("name", "department", "office")]
    rows = [
        (f"<a href='/people/{person['id']}'>{escape(person['name'])}</a>", person["department"], person["office"])
        for person in matches[window]
    ]
    search = f"<form action='/people'>{searched('people', values)}<button id='search'>Search</button></form>"
    return f"People\n{search}{table(heads, rows)}{turn}<p>Departments: {', '.join(DEPARTMENTS)}</p>"


def person(record: Mapping[str, Any] | None) -> str:
    """Return one colleague."""
    if record is None:
        return "Nobody\n<p>There is nobody here.</p>"
    rows = [
        (name.capitalize(), f"<span id='{name}'>{escape(record[name])}</span>")
        for name in ("department", "phone", "office", "email")
    ]
    return f"{record['name']}\n{table(('', ''), rows)}"


def travel(state: Any, step: str, *, wrong: str) -> str:
    """Return a step of the travel request."""
    draft = {name: escape(str(value)) for name, value in state.draft.items()}
    notice = f"<p class='wrong'>{wrong}</p>" if wrong else ""
    if step == "1":
        fields = (
            "<label>Destination "
            f"<input id='destination' name='destination' value='{draft.get('destination', '')}'></label>"
            f"<label>Leave on <input id='leave' type='date' name='leave' value='{draft.get('leave', '')}'></label>"
            f"<label>Come back on <input id='back' type='date' name='back' value='{draft.get('back', '')}'></label>"
        )
    elif step == "2":
        by = "".join(
            f"<label><input id='by-{way}' type='radio' name='transport' value='{way}'> {way}</label>"
            for way in ("train", "plane", "car")
        )
        fields = f"{by}<label>Seat {options('seat', SEATS)}</label><label>Meal {options('meal', MEALS)}</label>"
    else:
        fields = table(("", ""), list(draft.items()))
    label = "Send" if step == "3" else "Continue"
    form = f"<form method='post' action='/travel/{step}'>{fields}<button id='go'>{label}</button></form>"
    sent = "".join(f"<li>{escape(', '.join(map(str, request.values())))}</li>" for request in state.travels)
    sent = f"<h2>Sent</h2><ul id='sent'>{sent}</ul>" if sent and step == "1" else ""
    return f"Travel request, step {step} of 3\n{notice}{form}{sent}"


def account(state: Any, *, saved: bool) -> str:
    """Return the account form."""
    mine = state.users[state.user]
    notice = "<p>Saved.</p>" if saved else ""
    ticked = " checked" if mine["newsletter"] else ""
    return (
        f"Account of {state.user}\n{notice}<form method='post' action='/account'>"
        f"<label>Email <input id='email' name='email' value='{escape(mine['email'])}'></label>"
        f"<label>Phone <input id='phone' name='phone' value='{escape(mine['phone'])}'></label>"
        f"<label><input id='newsletter' type='checkbox' name='newsletter' value='yes'{ticked}> Newsletter</label>"
        "<button id='save'>Save</button></form>"
    )


def support(state: Any, *, wrong: bool) -> str:
    """Return the support form."""
    tickets = "".join(f"<li>{escape(', '.join(ticket.values()))}</li>" for ticket in state.tickets)
    tickets = f"<h2>Asked before</h2><ol id='asked'>{tickets}</ol>" if tickets else ""
    notice = "<p class='wrong'>What is it about?</p>" if wrong else ""
    return (
        f"Support\n{notice}<form method='post' action='/support'>"
        "<label>Subject <input id='subject' name='subject'></label>"
        f"<label>Topic {options('topic', TOPICS)}</label>"
        f"<label>Urgency {options('urgency', URGENCIES, 'normal')}</label>"
        "<label>Text <textarea id='text' name='text'></textarea></label><button id='send'>Send</button></form>"
        f"{tickets}"
    )
