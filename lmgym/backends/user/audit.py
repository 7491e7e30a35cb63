"""Audit of a user: which side a failed dialogue is due to, by rules over the words of both.

A user is at fault for a wrong fact (an id, address or the like that neither its instructions nor the agent gave), a
leaked fact (one that it does not know), an early stop, and a broken format. A failed episode in which the user is at
fault is the user's, every other the agent's.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from lmgym.backends.user.endings import ENDINGS, ending_of, without_endings
from lmgym.backends.user.hearing import CONFIRM, heard

LONGEST = 2_000  # characters of a user's message
FAULTS = ("wrong_fact", "leaked_fact", "early_stop", "broken_format")


@dataclass
class UserAudit:
    """Faults of one user in one dialogue."""

    instructions: str  # of the user: all that it may tell
    entities: re.Pattern[str]  # facts that can be checked: ids, addresses, amounts
    unknown: Sequence[str] = ()  # facts that the user must not say before the agent did
    matters: Sequence[re.Pattern[str]] = ()  # each must have been raised before the user stops
    faults: set[str] = field(default_factory=set)
    agent_words: str = field(default="", init=False)
    latest: str = field(default="", init=False)  # words of the agent
    user_words: str = field(default="", init=False)

    def hear_agent(self, words: str) -> None:
        """Take what the agent told the user."""
        self.latest = heard(words)
        self.agent_words += f" {self.latest}"

    def hear_source(self, text: str) -> None:
        """Take what the user learnt elsewhere, such as from a tool of its own."""
        self.agent_words += f" {heard(text)}"

    def hear_user(self, answer: str, *, broken: bool = False, excused: bool = False) -> None:
        """Take what the user told the agent.

        `broken` if it is a tool call that the user may not make; `excused` if the user may leave, as one whose patience
        is at its end.
        """
        words = heard(without_endings(answer))
        self.user_words += f" {words}"
        ending = ending_of(answer)
        tokens = sum(answer.count(token) for token in ENDINGS)
        if broken or len(answer) > LONGEST or tokens > 1 or not (words or ending):
            self.faults.add("broken_format")
        sources = f"{heard(self.instructions)} {self.agent_words}"
        for fact in self.entities.findall(words):
            if fact not in sources and not any(fact == heard(each) for each in self.unknown):
                self.faults.add("wrong_fact")
        if any(heard(fact) in words and heard(fact) not in self.agent_words for fact in self.unknown):
            self.faults.add("leaked_fact")
        if ending and not excused:
            unraised = any(not matter.search(self.user_words) for matter in self.matters)
            if unraised or (CONFIRM.search(self.latest) and not words):
                self.faults.add("early_stop")

    def figures(self, *, failed: bool) -> dict[str, float]:
        """Return the faults and the side to which a failure is due, as figures of 0 or 1."""
        faults = {f"user_{name}": float(name in self.faults) for name in FAULTS}
        by_user = failed and bool(self.faults)
        return {**faults, "failed_by_user": float(by_user), "failed_by_agent": float(failed and not by_user)}
