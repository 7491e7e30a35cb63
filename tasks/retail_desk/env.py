"""The desk of a shop as an environment with two seats: the agent with tools, and the customer."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.backends.user.audit import UserAudit
from lmgym.backends.user.endings import ending_of, without_endings
from lmgym.backends.user.hearing import heard
from lmgym.backends.user.tools import ToolError, as_text, call_tool, tools_of
from lmgym.env.env import Reply, TextEnv
from lmgym.env.speech import parse_speech
from lmgym.tasks.retail_desk import SPEC
from lmgym.tasks.retail_desk.clerk import next_action
from lmgym.tasks.retail_desk.customer import ScriptedCustomer, facts, instructions
from lmgym.tasks.retail_desk.goals import LEVELS, Goal, make_goal
from lmgym.tasks.retail_desk.shop import Data
from lmgym.tasks.retail_desk.tools import DeskTools
from lmgym.types import FIRST_SEAT

PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
WITHOUT_MANUAL = f"{PROMPT.partition(' Help the')[0]} You know its policy and its tools."
CUSTOMER_PROMPT = Template(files(__package__).joinpath("user.md").read_text(encoding="utf-8").strip())
STREAM = {"train": 0, "test": 1}
USER = "user"
GREETING = "Hello, this is the desk. What can I do for you?"
MOST_NUMBERS = 12  # in a message that counts as telling a number
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?![\w])")
ENTITIES = re.compile(r"\bn(?:\d+|-[a-z]+)\b|\b\d{5}\b|[\w.+-]+@[\w-]+\.\w+")
RAISED = {
    "cancel": r"\bcancel",
    "change address": r"\baddress|\bdeliver|\bsend",
    "swap": r"\bswap|\bchange|\bversion|\bdifferent|\breplace|\binstead",
    "exchange": r"\bexchang|\breplace|\binstead",
    "return": r"\breturn|\bback\b|\brefund",
    "credit": r"\bcredit|\blate\b",
    "email": r"\be-?mail",
    "refer": r"\bdamage|\bbroken|\bdefect|\bcomplain",
}


class RetailDesk(TextEnv):
    """Help one customer; 1 if the database ends as the goal demands and all numbers asked for were told, else 0.

    `level` is the difficulty, 1 to 4; 0 takes all levels in turn. The customer is the seat "user". With `upfront` the
    agent gets everything that the customer knows with the first message. With `small` orders are named after trees,
    customers only cancel, want credit or complain, neither policy nor tools are shown, and records have no lists.
    """

    SPEC = SPEC

    def __init__(self, *, level: int = 0, upfront: bool = False, small: bool = False, **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(level=(level, (0, *LEVELS)), small=(small, (True, False)))
        self.level, self.upfront, self.small = level, upfront, small

    def begin(self, index: int) -> Reply:
        """Generate the shop and the customer, who opens the dialogue."""
        chance = np.random.default_rng([1726, STREAM[self.split], index])
        data, self.goal = make_goal(chance, self.level or LEVELS[index % len(LEVELS)], small=self.small)
        self.wanted = wanted(data, self.goal)
        self.desk = DeskTools(data)
        self.desk_tools = tools_of(self.desk)
        self.customer = ScriptedCustomer(self.goal)
        self.audit = UserAudit(
            instructions=instructions(self.goal, CUSTOMER_PROMPT),
            entities=ENTITIES,
            unknown=self.goal.unknown,
            matters=[re.compile(RAISED[matter.kind]) for matter in self.goal.matters],
        )
        self.turn = USER
        self.calls: list[tuple[str, dict[str, Any]]] = []  # that succeeded
        self.answers: list[tuple[int, str]] = []  # of the customer, with the number of the matter
        self.told: set[float] = set()  # numbers
        self.errors = 0
        self.opened = self.helped = False
        self.latest_words = GREETING
        self.next_words: str | None = None  # of the scripted customer
        return Reply(f"The desk: {GREETING}", seat=USER)

    def act(self, action: str) -> Reply:
        """Take the words of the customer, or the words or tool call of the agent."""
        return self._of_customer(action) if self.turn == USER else self._of_agent(action)

    def scripted(self, seat: str) -> str:
        """Return the scripted customer's answer to the agent's latest words."""
        if self.next_words is None:
            self.next_words = self.customer.reply(self.latest_words)
        return self.next_words

    def prompts(self) -> dict[str, str]:
        """Return the instructions of a model in the customer's seat."""
        return {USER: instructions(self.goal, CUSTOMER_PROMPT)}

    def tools(self, seat: str = FIRST_SEAT) -> list[dict[str, Any]]:
        """Return the schemas of the agent's tools; the customer has none."""
        listed = seat == FIRST_SEAT and not self.small
        return [dict(tool.schema) for tool in tools_of(DeskTools({})).values()] if listed else []

    def fingerprint(self) -> str:
        """Return the database as text."""
        return canonical(self.desk.data)

    def figures_if_cut(self) -> dict[str, float]:
        """Return what the agent got right, its failed tool calls, and how the customer kept to its part."""
        facts = self.goal.facts
        told = sum(float(fact) in self.told for fact in facts) / len(facts) if facts else 1.0
        return {
            "database_right": float(self._database_right()),
            "facts_told": told,
            "refusal_due": float(self.goal.refusal),
            "tool_errors": float(self.errors),
            **self.audit.figures(failed=not self.helped),
        }

    def oracle(self) -> Iterator[str]:
        """Ask the scripted customer for everything that is needed, look it up, act or decline, and report."""
        while True:
            yield next_action(self.goal, self.customer, self.desk.data, self.calls, self.answers)

    # Turns -----------------------------------------------------------------------------------------------------

    def _of_customer(self, action: str) -> Reply:
        speech = parse_speech(action)
        excused = action == self.scripted(USER) and self.customer.left  # the script listens whoever plays the customer
        self.audit.hear_user(action, broken=speech.broken or bool(speech.calls), excused=excused)
        self.answers.append((self.customer.number, action))
        self.next_words = None
        words = without_endings(speech.words)
        if ending_of(action):
            self.helped = self._database_right() and all(float(fact) in self.told for fact in self.goal.facts)
            score = float(self.helped)
            others = {FIRST_SEAT: score} if score else {}
            return Reply("The conversation is over.", done=True, score=score, others=others)
        self.turn = FIRST_SEAT
        text = f"The customer: {words or '(nothing)'}"
        if not self.opened:
            self.opened = True
            told = f"\n{facts(self.goal)}" if self.upfront else ""
            text = f"{WITHOUT_MANUAL if self.small else PROMPT}\n\n{text}{told}"
        return Reply(text)

    def _of_agent(self, action: str) -> Reply:
        speech = parse_speech(action, self.desk_tools)
        if speech.broken:
            return Reply('The tool call is no JSON object {"name": ..., "arguments": {...}}.', valid=False)
        if len(speech.calls) > 1:
            return Reply(f"One tool call at a time; the answer has {len(speech.calls)}.", valid=False)
        if speech.calls:
            return self._called(speech.calls[0].name, dict(speech.calls[0].arguments))
        words = without_endings(speech.words)
        if not words:
            return Reply("Write a message to the customer or call a tool.", valid=False)
        self.audit.hear_agent(words)
        numbers = [float(number.replace(",", "")) for number in NUMBER.findall(heard(words))]
        if len(numbers) <= MOST_NUMBERS:
            self.told.update(numbers)
        self.turn, self.latest_words = USER, words
        return Reply(f"The desk: {words}", seat=USER)

    def _called(self, name: str, arguments: dict[str, Any]) -> Reply:
        try:
            result = call_tool(self.desk_tools, name, arguments)
        except ToolError as error:
            self.errors += 1
            return Reply(f"Error: {error}", valid=False)
        self.calls.append((name, arguments))
        if self.small and isinstance(result, dict):
            result = {name: value for name, value in result.items() if not isinstance(value, (dict, list))}
        return Reply(as_text(result))

    def _database_right(self) -> bool:
        return canonical(self.desk.data) == self.wanted


def wanted(data: Data, goal: Goal) -> str:
    """Return the database after the right changes, as canonical text."""
    desk = DeskTools(copy.deepcopy(data))
    tools = tools_of(desk)
    for matter in goal.matters:
        call_tool(tools, *matter.gold)
    return canonical(desk.data)


def canonical(data: Data) -> str:
    """Return a database as text that does not depend on the order of keys."""
    return json.dumps(data, sort_keys=True)
