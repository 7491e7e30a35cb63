"""Requests to Contacts and Messages."""

from __future__ import annotations

from lmgym.tasks.phone.goals import Builder, PhoneGoal, Rng, changed, impossible, question, stranger
from lmgym.tasks.phone.moves import Move, answer, app, fill, on, tap
from lmgym.tasks.phone.state import PhoneState, Record, by_id, one, phone_number, several
from lmgym.tasks.phone.words import CITIES, NOTES


def add_contact(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Add a contact with a number."""
    name, phone = stranger(state, rng), phone_number(rng)
    state.add_contact(name, phone)
    plan = (*app("Contacts", "Add contact"), fill("Name", name), fill("Phone", phone), *tap("Save"))
    return changed("Add a contact named {name} with the phone number {phone}.", state, plan, name=name, phone=phone)


def change_number(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Change a contact's number."""
    contact, phone = one(rng, state.contacts), phone_number(rng)
    plan = (*app("Contacts", contact["name"], "Edit"), fill("Phone", phone), *tap("Save"))
    contact["phone"] = phone
    template = "Change the phone number of {name} to {phone}."
    return changed(template, state, plan, name=contact["name"], phone=phone)


def delete_contact(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Delete a contact."""
    contact = one(rng, state.contacts)
    plan = (*app("Contacts"), on(contact["name"], "long_press"), *tap("Delete", "Delete contact"))
    state.delete_contact(contact["id"])
    return changed("Delete the contact {name}.", state, plan, name=contact["name"])


def star_contacts(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Make two contacts favourites."""
    first, second = several(rng, state.contacts, 2)
    plan: tuple[Move, ...] = ()
    for contact in (first, second):
        plan += app("Contacts", contact["name"], "Add to favourites")
        contact["starred"] = True
    template = "Add {first} and {second} to the favourite contacts."
    return changed(template, state, plan, first=first["name"], second=second["name"])


def find_email(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Look up a contact's email address."""
    contact = one(rng, state.contacts)
    plan = (*app("Contacts", contact["name"]), answer(contact["email"]))
    return question("What is the email address of {name}?", state, plan, contact["email"], name=contact["name"])


def count_city(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Count the contacts of a city."""
    city = one(rng, CITIES)
    number = str(sum(each["city"] == city for each in state.contacts))
    last = max(each["name"] for each in state.contacts)
    plan = (*app("Contacts"), *tap(last), answer(number))  # a tap on the last one shows them all
    template = "How many contacts live in {city}? Answer with the number alone."
    return question(template, state, plan, number, city=city)


def send_message(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Send a message to a contact."""
    contact, words = one(rng, state.contacts), one(rng, NOTES)
    plan = (*app("Messages", "New message"), fill("To", contact["name"]), fill("Message", words), *tap("Send"))
    state.send(contact["id"], words)
    return changed('Send {name} the message "{words}"', state, plan, name=contact["name"], words=words)


def reply_latest(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Reply in the latest conversation."""
    words, contact = one(rng, NOTES), by_id(state.contacts, state.messages[-1]["contact"])
    plan = (*app("Messages", contact["name"]), fill("Message", words), *tap("Send"))
    state.send(contact["id"], words)
    return changed('Write "{words}" in the conversation with the latest message.', state, plan, words=words)


def delete_message(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Delete one message."""
    message, line = _message(state, rng)
    contact = by_id(state.contacts, message["contact"])
    plan = (*app("Messages", contact["name"]), on(line, "long_press"), *tap("Delete message"))
    state.messages.remove(message)
    template = 'Delete the message "{words}" from the conversation with {name}.'
    return changed(template, state, plan, words=message["text"], name=contact["name"])


def like_message(state: PhoneState, rng: Rng) -> PhoneGoal:
    """React to a message by a double tap."""
    message, line = _message(state, rng)
    contact = by_id(state.contacts, message["contact"])
    plan = (*app("Messages", contact["name"]), on(line, "double_tap"))
    message["liked"] = True
    template = 'React with a heart to the message "{words}" in the conversation with {name}; a double tap does it.'
    return changed(template, state, plan, words=message["text"], name=contact["name"])


def delete_conversation(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Delete a conversation."""
    contact = _correspondent(state, rng)
    plan = app("Messages", contact["name"], "Delete conversation", "Delete all")
    state.delete_conversation(contact["id"])
    return changed("Delete the whole conversation with {name}.", state, plan, name=contact["name"])


def find_proposal(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Find a detail in a conversation."""
    contact = _correspondent(state, rng)
    first = next(each["text"] for each in state.messages if each["contact"] == contact["id"])
    _, _, rest = first.partition(" at ")
    time, _, place = rest.rstrip("?").partition(" at ")
    wanted, value = one(rng, (("time", time), ("place", place)))
    plan = (*app("Messages", contact["name"]), answer(value))
    template = "Which {wanted} does {name} propose for a meeting? Answer with the {wanted} alone."
    return question(template, state, plan, value, wanted=wanted, name=contact["name"])


def forward_number(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Send one contact the number of another."""
    person, friend = several(rng, state.contacts, 2)
    plan = (
        *app("Contacts", person["name"]),
        *app("Messages", "New message"),
        fill("To", friend["name"]),
        fill("Message", person["phone"]),
        *tap("Send"),
    )
    state.send(friend["id"], person["phone"])
    template = "Send {friend} a message with the phone number of {name} and nothing else."
    return changed(template, state, plan, friend=friend["name"], name=person["name"])


def message_stranger(state: PhoneState, rng: Rng) -> PhoneGoal:
    """Ask for a message to somebody who is no contact."""
    name, words = stranger(state, rng), one(rng, NOTES)
    plan = (*app("Contacts"), fill("Search", name))
    template = 'Send my contact {name} the message "{words}"'
    return impossible(template, state, plan, name=name, words=words)


def _correspondent(state: PhoneState, rng: Rng) -> Record:
    numbers = list(dict.fromkeys(each["contact"] for each in state.messages))
    return by_id(state.contacts, one(rng, numbers))


def _message(state: PhoneState, rng: Rng) -> tuple[Record, str]:
    """Return a message that stands once in its conversation, and the words that show it."""
    contact = _correspondent(state, rng)
    message: Record = one(rng, [each for each in state.messages if each["contact"] == contact["id"]])
    return message, f"{'You' if message['mine'] else contact['name']}: {message['text']}"


TEMPLATES: tuple[Builder, ...] = (
    *(add_contact, send_message, change_number, reply_latest, find_email, delete_message, delete_contact),
    *(like_message, count_city, find_proposal, star_contacts, delete_conversation, forward_number, message_stranger),
)
