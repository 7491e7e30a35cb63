"""The consultation: a scripted patient, the rules of DoctorAgent-RL, and a diagnosis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.env.actions import parse_tag
from lmgym.env.env import Reply, TextEnv
from lmgym.tasks.doctor import SPEC
from lmgym.tasks.doctor.illnesses import FINDINGS, ILLNESSES, about, candidates, has, remedy

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
STREAM = {"train": 0, "test": 1}
TABLE = "The illnesses, with what every patient with them has:\n"
NO_TABLE = "You know the illnesses from your training."
BUDGETS = range(2, 11)
REPORTED = 2  # findings in the patient's first words
VERDICT = re.compile(r"diagnosis:\s*(.*?)\s*recommendation:\s*(.*)", re.IGNORECASE | re.DOTALL)
INVALID, REPEATED, UNKNOWN, ANSWERED, EXHAUSTED, CORRECT = -2.0, -2.0, -1.0, 1.0, -5.0, 5.0
LONGEST = 2_000  # characters of an answer that are read


class Doctor(TextEnv):
    """Find an illness by questions; rewards as in DoctorAgent-RL, the score is that of the final answer alone.

    `budget` is the number of turns, the final answer included; 0 takes 2 to 10 by the instance. `table=False` leaves
    the illnesses out of the first observation: a policy then knows them from training alone, as a physician does.
    """

    SPEC = SPEC

    def __init__(self, *, budget: int = 0, table: bool = True, **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(budget=(budget, (0, *BUDGETS)), table=(table, (True, False)))
        self.budget, self.table = budget, table

    def begin(self, index: int) -> Reply:
        """Let the patient report two findings."""
        chance = np.random.default_rng([20, STREAM[self.split], index])
        self.illness = int(chance.integers(len(ILLNESSES)))
        self.turns = self.budget or int(chance.integers(BUDGETS[0], BUDGETS[-1] + 1))
        present = [each for each in range(len(FINDINGS)) if has(self.illness, each)]
        first = [present[int(i)] for i in chance.permutation(len(present))[:REPORTED]]
        self.known_findings = dict.fromkeys(first, True)
        self.turn = self.questions = self.repeats = 0
        self.named = self.recommended = 0.0
        words = " and ".join(_bare(FINDINGS[each].has) for each in first)
        order = [int(i) for i in chance.permutation(len(ILLNESSES))]
        illnesses = TABLE + "\n".join(map(_row, order)) if self.table else NO_TABLE
        return Reply(PROMPT.substitute(budget=self.turns, illnesses=illnesses, report=f"Doctor, {words}."))

    def act(self, action: str) -> Reply:
        """Answer a question or judge the final answer."""
        self.turn += 1
        text = parse_tag(action, "answer")
        text = (action if text is None else text).strip()[:LONGEST]
        verdict = VERDICT.search(text)
        if verdict:
            return self._judged(verdict[1], verdict[2])
        words, reward, name, valid = self._replied(text)
        if self.turn >= self.turns:
            rewards = {name: reward, "exhausted": EXHAUSTED}
            return Reply(f"{words} Your time is over.", reward=rewards, done=True, score=0.0, valid=valid)
        return Reply(f"{words}\nTurn {self.turn}/{self.turns}.", reward={name: reward}, valid=valid)

    def answer(self) -> str:
        """Return the right final answer."""
        return f"Diagnosis: {ILLNESSES[self.illness]}\nRecommendation: {remedy(self.illness)}"

    def figures_if_cut(self) -> dict[str, float]:
        """Return both halves of the answer and the questions so far."""
        return {
            "diagnosis_right": self.named,
            "recommendation_right": self.recommended,
            "questions_answered": float(self.questions),
            "repeated_questions": float(self.repeats),
        }

    def oracle(self) -> Iterator[str]:
        """Give the right final answer at once."""
        while True:
            yield f"<answer>{self.answer()}</answer>"

    def demonstrator(self) -> Iterator[str]:
        """Ask what halves the illnesses that are left, then give the final answer, in the last turn at the latest."""
        while True:
            left = candidates(self.known_findings)
            if len(left) > 1 and self.turn < self.turns - 1:
                yield f"<answer>Question: {_question(self._splitting(left))}</answer>"
            else:
                guess = left[0]
                yield f"<answer>Diagnosis: {ILLNESSES[guess]}\nRecommendation: {remedy(guess)}</answer>"

    # Rules -----------------------------------------------------------------------------------------------------

    def _replied(self, text: str) -> tuple[str, float, str, bool]:
        """Return the patient's words, the reward with its name, and whether the question is valid."""
        question = text.lower()
        if not question.startswith("question:"):
            return "Please ask a question, or give a diagnosis and a recommendation.", INVALID, "invalid", False
        if question.count("?") != 1:
            return "One question at a time, please, with one question mark.", INVALID, "invalid", False
        findings = about(question)
        if not findings:
            return "Sorry, I cannot tell.", UNKNOWN, "unknown", True
        if len(findings) > 1:
            return "That is more than one thing. One at a time, please.", INVALID, "invalid", False
        [number] = findings
        there = has(self.illness, number)
        words = FINDINGS[number].has if there else FINDINGS[number].has_not
        if number in self.known_findings:
            self.repeats += 1
            return f"I told you already. {words}", REPEATED, "repeated", True
        self.known_findings[number] = there
        self.questions += 1
        return words, ANSWERED, "answered", True

    def _judged(self, diagnosis: str, recommendation: str) -> Reply:
        self.named = float(_names(diagnosis, ILLNESSES[self.illness], ILLNESSES))
        self.recommended = float(_plain(recommendation) == _plain(remedy(self.illness)))
        rewards = {"diagnosis": CORRECT * self.named, "recommendation": CORRECT * self.recommended}
        score = (self.named + self.recommended) / 2
        text = f"It was {ILLNESSES[self.illness]}; the remedy is {remedy(self.illness)}."
        return Reply(text, reward=rewards, done=True, score=score)

    def _splitting(self, left: list[int]) -> int:
        """Return the finding that splits the illnesses best."""
        open_findings = [each for each in range(len(FINDINGS)) if each not in self.known_findings]
        return min(open_findings, key=lambda each: abs(sum(has(illness, each) for illness in left) - len(left) / 2))


def _bare(answer: str) -> str:
    return answer.removeprefix("Yes, ").rstrip(".")


def _row(illness: int) -> str:
    findings = ", ".join(_bare(each.has) for number, each in enumerate(FINDINGS) if has(illness, number))
    return f"- {ILLNESSES[illness]} (remedy: {remedy(illness)}): {findings}"


def _question(number: int) -> str:
    """Return a question about one finding."""
    words = _bare(FINDINGS[number].has)
    return f"Is it so that {words.replace('I am', 'you are').replace('I ', 'you ').replace('my ', 'your ')}?"


def _names(text: str, name: str, names: tuple[str, ...]) -> bool:
    """Return True if a text names this illness and no other."""
    plain = _plain(text)
    return [each for each in names if each in plain] == [name]


def _plain(text: str) -> str:
    return " ".join(text.lower().split()).rstrip(".")
