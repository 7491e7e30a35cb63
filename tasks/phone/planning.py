"""The apps Calendar and Maps."""

from __future__ import annotations

import re
from datetime import date as Date

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
    search,
    text,
)
from lmgym.tasks.phone.state import TODAY, PhoneState, Record, by_id
from lmgym.tasks.phone.words import MODES

MONTH = re.compile(r"20\d\d-(0[1-9]|1[0-2])")
START = re.compile(r"([01]\d|2[0-3]):[0-5]\d")


def calendar(state: PhoneState, visit: Visit) -> Answer:
    """Answer a request to Calendar."""
    if not visit.path:
        return _month(state, visit.get("month"))
    if visit.path == ("new",):
        return _edited(state, visit, None)
    event = by_id(state.events, visit.path[0])
    place = f"/calendar/{event['id']}"
    match visit.path[1:]:
        case ():
            about = [text(f"{name.capitalize()}: {event[name]}") for name in ("date", "start", "place")]
            rows = link("Edit", f"{place}/edit") + button("Delete event", f"{place}/delete")
            return PhoneScreen(event["title"], "".join(about) + rows)
        case ("edit",):
            return _edited(state, visit, event)
        case ("delete",) if visit.posted:
            state.events.remove(event)
            return Redirect(f"/calendar?month={event['date'][:7]}")
    return GONE


def _month(state: PhoneState, named: str) -> PhoneScreen:
    month = named if MONTH.fullmatch(named) else TODAY[:7]
    year, number = int(month[:4]), int(month[5:])
    before = f"{year - (number == 1)}-{(number - 2) % 12 + 1:02d}"
    after = f"{year + (number == 12)}-{number % 12 + 1:02d}"
    events = sorted(
        (each for each in state.events if each["date"].startswith(month)),
        key=lambda each: (each["date"], each["start"], each["id"]),
    )
    rows = [link(each["title"], f"/calendar/{each['id']}", note=f"{each['date']} {each['start']}") for each in events]
    turn = link("Previous month", f"/calendar?month={before}") + link("Next month", f"/calendar?month={after}")
    return PhoneScreen(f"Calendar {month}", link("New event", "/calendar/new") + turn + "".join(rows))


def _edited(state: PhoneState, visit: Visit, event: Record | None) -> Answer:
    """Show or answer the form of an event, or of a new one."""
    names = ("title", "date", "start", "place")
    wrong = ""
    if visit.posted:
        given = {name: visit.get(name) for name in names}
        if not given["title"]:
            wrong = "An event needs a title."
        elif not _is_date(given["date"]):
            wrong = "The date is written as 2026-01-31."
        elif not START.fullmatch(given["start"]):
            wrong = "The start is written as 09:30."
        elif event is None:
            state.add_event(**given)
            return Redirect(f"/calendar?month={given['date'][:7]}")
        else:
            event |= given
            return Redirect(f"/calendar/{event['id']}")
    values = {name: visit.get(name) if visit.posted else str((event or {}).get(name, "")) for name in names}
    path = f"/calendar/{event['id']}/edit" if event else "/calendar/new"
    entries = [entry(name.capitalize(), name, values[name]) for name in names]
    return PhoneScreen("Edit event" if event else "New event", form(path, *entries, wrong=wrong))


def _is_date(words: str) -> bool:
    try:
        return bool(MONTH.match(words)) and Date.fromisoformat(words).isoformat() == words
    except ValueError:
        return False


def maps(state: PhoneState, visit: Visit) -> Answer:
    """Answer a request to Maps."""
    if not visit.path:
        wanted = visit.get("q").casefold()
        rows = [
            link(each["name"], f"/maps/{each['id']}", note=f"{each['category']}, rated {each['rating']}")
            for each in state.places
            if wanted in each["name"].casefold() or wanted in each["category"].casefold()
        ]
        return PhoneScreen(
            "Maps", search("/maps", visit.get("q")) + link("Saved places", "/maps/saved") + "".join(rows)
        )
    if visit.path == ("saved",):
        rows = [link(by_id(state.places, number)["name"], f"/maps/{number}") for number in state.saved]
        return PhoneScreen("Saved places", "".join(rows) or text("No place is saved."))
    place = by_id(state.places, visit.path[0])
    number = place["id"]
    match visit.path[1:]:
        case ():
            about = [
                text(f"{name.capitalize()}: {place[name]}") for name in ("category", "address", "rating", "closes")
            ]
            save = "Remove from saved places" if number in state.saved else "Save place"
            about += [button(save, f"/maps/{number}/save"), link("Directions", f"/maps/{number}/route")]
            return PhoneScreen(place["name"], "".join(about))
        case ("save",) if visit.posted:
            if number in state.saved:
                state.saved.remove(number)
            else:
                state.saved.append(number)
            return Redirect(f"/maps/{number}")
        case ("route", *rest):
            return _route(state, visit, number, rest[0] if rest else MODES[0])
    return GONE


def _route(state: PhoneState, visit: Visit, number: str, mode: str) -> Answer:
    if mode not in MODES:
        return GONE
    place = f"/maps/{number}/route"
    if visit.posted and not visit.get("start"):
        return Redirect(f"{place}/{mode}")
    if visit.posted:
        state.route = {"place": number, "mode": mode}
    started = state.route == {"place": number, "mode": mode}
    rows = "".join(choice(each, f"{place}/{each}", each == mode) for each in MODES)
    rows += text("The route has started.") if started else button("Start", f"{place}/{mode}", start="yes")
    return PhoneScreen(f"To {by_id(state.places, number)['name']}", rows)
