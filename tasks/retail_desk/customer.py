"""The customer of the desk: a script that tells what it is asked for, and the instructions for a model in its seat."""

from __future__ import annotations

import re
from collections.abc import Mapping
from string import Template

from lmgym.backends.user import hearing
from lmgym.backends.user.endings import STOP
from lmgym.tasks.retail_desk.goals import Goal, Matter

PATIENCE = 4  # answers in a row that bring nothing new, then the customer leaves
OPENINGS = {
    "cancel": "I want to cancel an order.",
    "change address": "I need an order delivered to another address.",
    "swap": "I would like a different version of something in an order that I am waiting for.",
    "exchange": "I want to exchange something that I received.",
    "return": "I want to send something back.",
    "credit": "My order arrived late and I want store credit for that.",
    "email": "I have a new email address and want it changed in my account.",
    "refer": "Something that I received is damaged and I want to complain.",
}
SLOTS: Mapping[str, re.Pattern[str]] = {
    name: re.compile(pattern)
    for name, pattern in {
        "email": r"\be-?mail\b",
        "name": r"\bname\b|who (are you|am i)|\bidentit|\bverify|\baccount\b",
        "postcode": r"\bpost ?code|\bpostal|\bzip\b",
        "new email": r"\bnew (e-?mail|address)|\be-?mail\b",
        "order": r"\border\b",
        "item": r"\bitems?\b|\bproducts?\b|\barticle",
        "reason": r"\breason\b|\bwhy\b",
        "address": r"\baddress\b|\bstreet\b|\bwhere\b|\bdeliver",
        "wish": r"\binstead\b|\bvariant|\bsize|\bcolou?r|\breplace|\bversion\b|\bprefer|\boption|\bwould you like\b",
        "payment": r"\bpay|\brefund|\bcard\b|\bcharge",
    }.items()
}
ORDER_ID = re.compile(r"\bn(?:\d+|-[a-z]+)\b")
SOLD_OUT = re.compile(r"out of stock|sold out|not (in stock|available)|unavailable|no stock")
GENERAL = "Can you help me with that, please?"


class ScriptedCustomer:
    """A customer who tells facts when they are asked for, one matter after the other, then stops.

    It answers a request for confirmation with yes unless another order is named, asks its question once its matter is
    done, asks again once where the goal says so, and leaves when the talk brings nothing new for `PATIENCE` turns.
    """

    def __init__(self, goal: Goal) -> None:
        self.goal = goal
        self.number = 0  # of the matter under discussion
        self.told: set[str] = set()  # slots of the matter and of the identity
        self.idle = 0  # answers in a row that told nothing
        self.pressed = False
        self.questioned = False
        self.opened = False
        self.left = False  # without being helped

    @property
    def matter(self) -> Matter:
        """The matter under discussion."""
        return self.goal.matters[self.number]

    def reply(self, words: str) -> str:
        """Answer the agent's words; `STOP` ends the dialogue."""
        text = hearing.heard(words)
        if not self.opened:
            self.opened = True
            return f"Hello. {OPENINGS[self.matter.kind]}"
        reply = self._settled(text) or self._confirmed(text) or self._answered(text)
        if reply:
            self.idle = 0
            return reply
        self.idle += 1
        if self.idle > PATIENCE:
            self.left = True
            return f"This leads nowhere. Goodbye. {STOP}"
        return self._next_detail(text) if hearing.requests(text) else GENERAL

    def _settled(self, text: str) -> str:
        """Answer the news that the matter is done or declined; "" if the message is no such news."""
        asks = hearing.CONFIRM.search(text) or ("?" in text and set(self._topics(text)) - self.told)
        closing = hearing.ANYTHING_ELSE.search(text)
        matter = self.matter
        if matter.second and "wish" in self.told and "second" not in self.told and SOLD_OUT.search(text):
            self.told.add("second")
            return matter.second
        if asks and not closing:
            return ""
        if hearing.DECLINE.search(text):
            if matter.presses and not self.pressed:
                self.pressed = True
                return "Can you not make an exception for me?"
            return self._go_on()
        if closing or hearing.DONE.search(text):
            if matter.question and not self.questioned:
                self.questioned = True
                return f"Thank you. {matter.question}"
            return self._go_on()
        return self._go_on() if self.questioned and re.search(r"\d", text) and "?" not in text else ""

    def _confirmed(self, text: str) -> str:
        if not hearing.CONFIRM.search(text):
            return ""
        named = set(ORDER_ID.findall(text))
        if named and self.matter.order_id.lower() not in named and "order" in self.matter.details:
            return f"No, that is another order. {self.matter.details['order']}"
        return "Yes, please go ahead."

    def _answered(self, text: str) -> str:
        """Tell what the message asks for and was not told yet."""
        if not hearing.requests(text):
            return ""
        facts = self._facts()
        fresh = [name for name in self._topics(text) if name not in self.told]
        if not fresh and "email" in hearing.topics(text, SLOTS) and "email" not in facts and "name" not in self.told:
            return "I do not remember which email address I used."
        self.told.update(fresh)
        return " ".join(facts[name] for name in fresh)

    def _next_detail(self, text: str) -> str:
        """Answer a question without news: repeat what it is about, or tell the next detail if it asks for any."""
        if topics := self._topics(text):
            return " ".join(self._facts()[name] for name in topics)
        if not hearing.open_request(text):
            return "I do not know that." if "?" in text else GENERAL
        name = next((name for name in self.matter.details if name not in self.told), None)
        if name is None:
            return "I do not know more than that."
        self.told.add(name)
        return self.matter.details[name]

    def _facts(self) -> dict[str, str]:
        facts = {**self.goal.identity, **self.matter.details}
        if "new email" in facts and "email" not in self.told and "email" in facts:
            facts.pop("new email")
        return facts

    def _topics(self, text: str) -> list[str]:
        """Return the slots of the customer's facts that a message asks for."""
        facts = self._facts()
        return [name for name in hearing.topics(text, SLOTS) if name in facts]

    def _go_on(self) -> str:
        self.number += 1
        self.told -= {*SLOTS, "second"} - set(self.goal.identity)
        self.pressed = self.questioned = False
        if self.number < len(self.goal.matters):
            return f"All right. {OPENINGS[self.matter.kind].replace('I want', 'I also want', 1)}"
        self.number -= 1
        return f"That is all, thank you. {STOP}"


def facts(goal: Goal) -> str:
    """Return everything that the customer tells when asked, and the questions, matter by matter."""
    lines = list(goal.identity.values())
    for matter in goal.matters:
        lines += [OPENINGS[matter.kind], *matter.details.values(), *([matter.question] if matter.question else [])]
    return "\n".join(lines)


def instructions(goal: Goal, template: Template) -> str:
    """Return the system prompt for a model that plays the customer."""
    lines = []
    for number, matter in enumerate(goal.matters, start=1):
        lines.append(f"Matter {number}: {OPENINGS[matter.kind]}")
        lines += [f"- {sentence}" for sentence in matter.details.values()]
        if matter.second:
            lines.append(f"- Only if you are told that this is out of stock: {matter.second}")
        if matter.question:
            lines.append(f"- When it is done, ask: {matter.question}")
        if matter.presses:
            lines.append("- If it is declined, ask once for an exception, then accept.")
    unknown = "You do not know order numbers unless they are given here."
    if "email" not in goal.identity:
        unknown += " You do not remember your email address."
    return template.substitute(known="\n".join(goal.identity.values()), matters="\n".join(lines), unknown=unknown)
