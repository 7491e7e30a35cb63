"""Requests to Calendar and Maps, and those that carry something from there into a message."""

from __future__ import annotations

from lmgym.tasks.phone.goals import Builder, PhoneGoal, Rng, changed, impossible, question
from lmgym.tasks.phone.moves import Move, answer, app, fill, tap
from lmgym.tasks.phone.state import TODAY, PhoneState, Record, clock, day, one
from lmgym.tasks.phone.words import MODES, PLACES, ROOMS, TITLES


def add_event(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Add an event."""
    title = one(rng, [each for each in TITLES if all(each != event["title"] for event in state.events)])
    date, start, place = day(rng), clock(rng), one(rng, ROOMS)
    fields = (fill("Title", title), fill("Date", date), fill("Start", start), fill("Place", place))
    state.add_event(title, date, start, place)
    template = "Add the event {title} on {date} at {start}; the place is {place}."
    plan = (*app("Calendar", "New event"), *fields, *tap("Save"))
    return changed(template, state, plan, title=title, date=date, start=start, place=place)


def delete_event(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Delete an event."""
    event = one(rng, state.events)
    plan = (*_opened(event), *tap("Delete event"))
    state.events.remove(event)
    return changed("Delete the event {title} on {date}.", state, plan, title=event["title"], date=event["date"])


def move_event(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Move an event to another day and time."""
    event, date, start = one(rng, state.events), day(rng), clock(rng)
    plan = (*_opened(event), *tap("Edit"), fill("Date", date), fill("Start", start), *tap("Save"))
    template = "Move the event {title} of {old} to {date} at {start}."
    old = event["date"]
    event |= {"date": date, "start": start}
    return changed(template, state, plan, title=event["title"], old=old, date=date, start=start)


def find_event(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Look up a detail of an event."""
    event = one(rng, state.events)
    wanted = one(rng, ("start", "place"))
    plan = (*_opened(event), answer(event[wanted]))
    template = "What is the {wanted} of the event {title} on {date}? Answer with the {wanted} alone."
    return question(template, state, plan, event[wanted], wanted=wanted, title=event["title"], date=event["date"])


def count_events(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Count the events of a day."""
    date = one(rng, state.events)["date"]
    events = [each for each in state.events if each["date"] == date]
    template = "How many events are there on {date}? Answer with the number alone."
    return question(template, state, (*_opened(events[-1]), answer(str(len(events)))), str(len(events)), date=date)


def clear_day(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Delete all events of a day."""
    date = one(rng, state.events)["date"]
    plan: tuple[Move, ...] = ()
    for event in [each for each in state.events if each["date"] == date]:
        plan += (*_opened(event), *tap("Delete event"))
        state.events.remove(event)
    return changed("Delete all events on {date}.", state, plan, date=date)


def share_event(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Send a contact the place of an event."""
    event, friend = one(rng, state.events), one(rng, state.contacts)
    plan = (*_opened(event), *_sent(friend, event["place"]))
    state.send(friend["id"], event["place"])
    template = "Send {friend} a message with the place of the event {title} on {date} and nothing else."
    return changed(template, state, plan, friend=friend["name"], title=event["title"], date=event["date"])


def save_place(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Save a place."""
    place = one(rng, state.places)
    state.saved.append(place["id"])
    plan = app("Maps", place["name"], "Save place")
    return changed("Save {name} in the maps.", state, plan, name=place["name"])


def save_best(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Save the place of a kind that is rated best."""
    category = one(rng, tuple(PLACES))
    place = max((each for each in state.places if each["category"] == category), key=lambda each: each["rating"])
    state.saved.append(place["id"])
    plan = (*app("Maps"), fill("Search", category), *tap(place["name"], "Save place"))
    template = "Save the place of the category {category} with the highest rating."
    return changed(template, state, plan, category=category)


def start_route(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Start a route."""
    place, mode = one(rng, state.places), one(rng, MODES)
    state.route = {"place": place["id"], "mode": mode}
    plan = app("Maps", place["name"], "Directions", mode, "Start")
    return changed("Start a route to {name} by {mode}.", state, plan, name=place["name"], mode=mode.lower())


def closing_time(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Look up when a place closes."""
    place = one(rng, state.places)
    plan = (*app("Maps", place["name"]), answer(place["closes"]))
    template = "When does {name} close? Answer with the time alone."
    return question(template, state, plan, place["closes"], name=place["name"])


def share_address(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Send a contact the address of a place."""
    place, friend = one(rng, state.places), one(rng, state.contacts)
    plan = (*app("Maps", place["name"]), *_sent(friend, place["address"]))
    state.send(friend["id"], place["address"])
    template = "Send {friend} a message with the address of {name} and nothing else."
    return changed(template, state, plan, friend=friend["name"], name=place["name"])


def route_nowhere(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Ask for a route to a place that the maps do not have."""
    names = [f"{one(rng, ('North', 'South', 'East', 'West'))} {category}" for category in PLACES]
    name, mode = one(rng, names), one(rng, MODES)
    plan = (*app("Maps"), fill("Search", name))
    return impossible("Start a route to the {name} by {mode}.", state, plan, name=name, mode=mode.lower())


def _opened(event: Record) -> tuple[Move, ...]:
    """Return moves that open an event, which is in this month or a later one."""
    months = int(event["date"][5:7]) - int(TODAY[5:7])
    return app("Calendar", *["Next month"] * months, event["title"])


def _sent(friend: Record, words: str) -> tuple[Move, ...]:
    return (*app("Messages", "New message"), fill("To", friend["name"]), fill("Message", words), *tap("Send"))


TEMPLATES: tuple[Builder, ...] = (
    *(add_event, save_place, find_event, start_route, delete_event, closing_time, move_event, save_best),
    *(count_events, share_address, share_event, clear_day, route_nowhere),
)
