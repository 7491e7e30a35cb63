"""The apps Contacts and Messages."""

from __future__ import annotations

from lmgym.tasks.phone.pages import GONE, Answer, PhoneScreen, Redirect, Visit, button, entry, form, link, search, text
from lmgym.tasks.phone.state import PhoneState, Record, by_id


def contacts(state: PhoneState, visit: Visit) -> Answer:
    """Answer a request to Contacts."""
    if not visit.path:
        names = sorted(state.contacts, key=lambda each: each["name"])
        rows = [
            link(each["name"], f"/contacts/{each['id']}", note=each["city"], hold=f"/contacts/{each['id']}/menu")
            for each in names
            if visit.get("q").casefold() in each["name"].casefold()
        ]
        return PhoneScreen(
            "Contacts", search("/contacts", visit.get("q")) + link("Add contact", "/contacts/new") + "".join(rows)
        )
    if visit.path == ("new",):
        return _edited(state, visit, None)
    contact = by_id(state.contacts, visit.path[0])
    place = f"/contacts/{contact['id']}"
    match visit.path[1:]:
        case ():
            about = [text(f"{name.capitalize()}: {contact[name]}") for name in ("phone", "email", "city")]
            star = "Remove from favourites" if contact["starred"] else "Add to favourites"
            rows = [link("Message", f"/messages/{contact['id']}"), link("Edit", f"{place}/edit")]
            rows += [button(star, f"{place}/star"), link("Delete", f"{place}/delete")]
            return PhoneScreen(contact["name"], "".join([*about, *rows]))
        case ("menu",):
            return PhoneScreen(contact["name"], link("Edit", f"{place}/edit") + link("Delete", f"{place}/delete"))
        case ("star",) if visit.posted:
            contact["starred"] = not contact["starred"]
            return Redirect(place)
        case ("edit",):
            return _edited(state, visit, contact)
        case ("delete",) if visit.posted:
            state.delete_contact(contact["id"])
            return Redirect("/contacts")
        case ("delete",):
            words = text(f"Delete {contact['name']} and all messages?")
            return PhoneScreen(
                "Delete contact", words + button("Delete contact", f"{place}/delete") + link("Cancel", place)
            )
    return GONE


def _edited(state: PhoneState, visit: Visit, contact: Record | None) -> Answer:
    """Show or answer the form of a contact, or of a new one."""
    names = ("name", "phone", "email", "city")
    wrong = ""
    if visit.posted:
        given = {name: visit.get(name) for name in names}
        other = state.contact(given["name"])
        if not given["name"] or not given["phone"]:
            wrong = "A contact needs a name and a phone number."
        elif other is not None and other is not contact:
            wrong = "There is a contact of this name."
        elif contact is None:
            state.add_contact(**given)
            return Redirect("/contacts")
        else:
            contact |= given
            return Redirect(f"/contacts/{contact['id']}")
    values = {name: visit.get(name) if visit.posted else str((contact or {}).get(name, "")) for name in names}
    entries = [entry(name.capitalize(), name, values[name]) for name in names]
    path = f"/contacts/{contact['id']}/edit" if contact else "/contacts/new"
    return PhoneScreen("Edit contact" if contact else "New contact", form(path, *entries, wrong=wrong))


def messages(state: PhoneState, visit: Visit) -> Answer:
    """Answer a request to Messages."""
    if not visit.path:
        latest = {each["contact"]: each["text"] for each in state.messages}
        recent = list(dict.fromkeys(each["contact"] for each in reversed(state.messages)))
        rows = [
            link(by_id(state.contacts, number)["name"], f"/messages/{number}", note=latest[number]) for number in recent
        ]
        return PhoneScreen("Messages", link("New message", "/messages/new") + "".join(rows))
    if visit.path == ("new",):
        return _new_message(state, visit)
    contact = by_id(state.contacts, visit.path[0])
    place = f"/messages/{contact['id']}"
    if len(visit.path) > 2:
        return _one_message(state, visit, place)
    match visit.path[1:]:
        case ():
            if visit.posted:
                if visit.get("text"):
                    state.send(contact["id"], visit.get("text"))
                return Redirect(place)
            rows = [
                text(
                    f"{'You' if each['mine'] else contact['name']}: {each['text']}{' ♥' if each['liked'] else ''}",
                    kind="mine" if each["mine"] else "theirs",
                    hold=f"{place}/{each['id']}/menu",
                    double=f"{place}/{each['id']}/like",
                )
                for each in state.messages
                if each["contact"] == contact["id"]
            ]
            remove = link("Delete conversation", f"{place}/delete")
            below = form(place, entry("Message", "text"), submit="Send")
            return PhoneScreen(contact["name"], "".join(rows) + remove, below)
        case ("delete",) if visit.posted:
            state.delete_conversation(contact["id"])
            return Redirect("/messages")
        case ("delete",):
            words = text(f"Delete all messages from and to {contact['name']}?")
            return PhoneScreen(
                "Delete conversation", words + button("Delete all", f"{place}/delete") + link("Cancel", place)
            )
    return GONE


def _one_message(state: PhoneState, visit: Visit, thread: str) -> Answer:
    """Answer a gesture on one message."""
    message, deed = by_id(state.messages, visit.path[1]), visit.path[2]
    if deed == "menu":
        place = f"{thread}/{message['id']}"
        like = "Remove heart" if message["liked"] else "React with a heart"
        rows = button(like, f"{place}/like") + button("Delete message", f"{place}/delete") + link("Cancel", thread)
        return PhoneScreen("Message", text(message["text"]) + rows)
    if deed == "like" and visit.posted:
        message["liked"] = not message["liked"]
    elif deed == "delete" and visit.posted:
        state.messages.remove(message)
    else:
        return GONE
    return Redirect(thread)


def _new_message(state: PhoneState, visit: Visit) -> Answer:
    wrong = ""
    if visit.posted:
        contact = state.contact(visit.get("to"))
        if contact is None:
            wrong = "There is no contact of this name or number."
        elif not visit.get("text"):
            wrong = "The message is empty."
        else:
            state.send(contact["id"], visit.get("text"))
            return Redirect(f"/messages/{contact['id']}")
    entries = entry("To", "to", visit.get("to")), entry("Message", "text", visit.get("text"))
    return PhoneScreen("New message", form("/messages/new", *entries, submit="Send", wrong=wrong))
