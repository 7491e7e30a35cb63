"""Twenty questions about a hidden member of a table, in LMRL-Gym's rules; the oracle is a seat."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.env.games.questions import OPENERS, Question, Table, best_question, is_single, plain
from lmgym.errors import InstanceError
from lmgym.types import FIRST_SEAT

ORACLE = "oracle"
QUESTIONS = 20
COST = -1.0  # of a question
YES, NO = "Yes.", "No."
LATEST = 4_000  # characters of an action that are read, from the end
OPEN_OPENERS = ("what", "which", "where", "how", "who", "when", "why", "tell")
REFUSAL = "I would rather not say."
MOST = 300  # letters of a free answer
SAYS_YES = re.compile(r"\W*yes\b", re.IGNORECASE)


class GuessingEnv(TextEnv):
    """Find a hidden member by 20 questions; each costs 1, except the one that names it.

    The seat "oracle" answers. The scripted oracle understands what `Table.understand` does, and answers any other
    question "No."; such a question is invalid. A question wins if it names the hidden member and nothing else, and the
    oracle says yes.
    """

    RULES: ClassVar[str]  # for the agent; "{questions}" stands for the number of questions
    ORACLE_RULES: ClassVar[str]  # for a model in the oracle's seat; "{member}" stands for what is hidden
    OPENING: ClassVar[str] = "Questions:\n"
    OPEN: ClassVar[bool] = False  # questions may be open, and answers sentences

    table: Table

    def guess(self, member: str) -> str:
        """Return the question that names a member."""
        raise NotImplementedError

    def open_answer(self, question: str) -> str | None:
        """Return the scripted oracle's answer to an open question; None if it has none."""
        return None

    def size(self) -> int:
        """Return the number of members: each is an instance."""
        return len(self.table.members)

    def begin(self, index: int) -> Reply:
        """Hide member number `index`."""
        return self._hide(self.table.members[index])

    def load(self, instance: Mapping[str, Any]) -> Reply:
        """Hide `instance["word"]`."""
        word = instance.get("word")
        if word not in self.table.members:
            raise InstanceError(f"an instance of {self.task.id} is {{'word': one of its list}}; got {dict(instance)!r}")
        return self._hide(word)

    def act(self, action: str) -> Reply:
        """Take the agent's question, or the oracle's answer to it."""
        if self.seat == FIRST_SEAT:
            return self._asked(action)
        return self._told(self._censored(action) if self.OPEN else action)

    def scripted(self, seat: str) -> str:
        """Answer by the table; "No." to what is not understood."""
        if self.question is None and (answer := self.open_answer(self.words)) is not None:
            return answer
        return YES if self.question is not None and self.hidden in self.question.yes else NO

    def prompts(self) -> dict[str, str]:
        """Return the instructions of a model in the oracle's seat."""
        return {ORACLE: self.ORACLE_RULES.format(member=self.hidden)}

    def answer(self) -> str:
        """Return what is hidden."""
        return self.hidden

    def figures_if_cut(self) -> dict[str, float]:
        """Return the number of questions and the share of them that the answerer understood."""
        return {"questions": float(self.asked), "understood": self.understood / self.asked if self.asked else 1.0}

    def oracle(self) -> Iterator[str]:
        """Name the hidden member."""
        while True:
            yield self.guess(self.hidden)

    def demonstrator(self) -> Iterator[str]:
        """Ask what halves the members that are left; name one when two are left."""
        while True:
            left = [member for member in self.table.members if member in self.left]
            if len(left) > 2:
                best = best_question(left, self.table.predicates)
                if 0 < len(best.members.intersection(left)) < len(left):
                    yield best.phrasings[0]
                    continue
            yield self.guess(left[0])

    def admissible(self) -> list[str] | None:
        """Return the plainest question about each predicate, and a guess of each member; the oracle's, yes and no."""
        if self.seat != FIRST_SEAT:
            return None if self.OPEN else [YES, NO]
        questions = [predicate.phrasings[0] for predicate in self.table.predicates]
        return questions + [self.guess(member) for member in self.table.members]

    # Rules -----------------------------------------------------------------------------------------------------

    def _hide(self, member: str) -> Reply:
        self.hidden, self.seat = member, FIRST_SEAT
        self.left = frozenset(self.table.members)  # members that agree with all answers
        self.asked = self.understood = 0
        self.question: Question | None = None
        self.words = ""  # of the question
        questions = min(QUESTIONS, self.max_turns or QUESTIONS)
        return Reply(f"{self.RULES.format(questions=questions)}\n{self.OPENING}")

    def _asked(self, action: str) -> Reply:
        self.asked += 1
        self.words = words = self._question(action)
        if not words:
            self.question = None
            return self._told(NO, valid=False)
        self.question, self.seat = self.table.understand(words), ORACLE
        if self.question is None:
            understood = self.open_answer(words) is not None
        else:
            understood = self.hidden not in self.question.unknown
        self.understood += understood
        valid = understood or self.others != "scripted"
        return Reply(words, reward={"question": COST}, valid=valid, seat=ORACLE)

    def _told(self, answer: str, *, valid: bool = True) -> Reply:
        """Tell the agent the answer; end the game if its question wins or was the last."""
        yes = SAYS_YES.match(answer) is not None
        won = yes and self.question is not None and self.question.names == (self.hidden,)
        if self.question is not None:
            holds = self.question.yes | self.question.unknown
            left = self.left & holds if yes else self.left - self.question.yes
            self.left = left or self.left  # a model's answers may contradict each other
        acting = self.seat
        self.seat = FIRST_SEAT
        done = won or self.asked >= QUESTIONS
        text = answer if self.OPEN else YES if yes else NO
        reply = Reply(text, done=done, score=float(won) if done else None, valid=valid)
        if acting == FIRST_SEAT:
            reply.reward = {"question": COST}
        elif won:
            reply.others = {FIRST_SEAT: -COST}
        return reply

    def _question(self, action: str) -> str:
        """Return the question on the last line of an action; "" if there is none, or more than one anywhere."""
        words = parse_command(action[-LATEST:])
        marks = action[-LATEST:].rstrip("? \n").count("?")
        return words if not marks and is_single(words, OPENERS + OPEN_OPENERS * self.OPEN) else ""

    def _censored(self, answer: str) -> str:
        """Return an answer in one line, cut to `MOST` letters; a refusal if it gives away what is hidden."""
        text = " ".join(answer[:LATEST].split())[:MOST] or NO
        names = (self.hidden, *self.table.aliases[self.hidden])
        return REFUSAL if any(plain(name) in plain(text) for name in names) else text
