"""Sixteen invented illnesses over fifteen findings, each with one of eight remedies. Nothing here is medicine.

The findings are the words of a simplex code, complemented where its bit says so: two illnesses differ in exactly eight
findings, and any two findings that a patient has leave exactly four illnesses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

ILLNESSES = (
    *("marrowchill", "glass lung", "drum fever", "sallow pox", "knot palsy", "ember rash", "fog ague", "brine gout"),
    *(
        "lantern eye",
        "reed throat",
        "quill tremor",
        "ash colic",
        "tin ear",
        "moss foot",
        "hollow sleep",
        "copper tongue",
    ),
)
REMEDIES = (
    *("rest in a dark room", "warm fenn tea", "a salt bath", "two days of fasting", "a wrap of birch leaves"),
    *("honey of the north", "cold air at night", "a paste of grey clay"),
)
SHARED = 5  # illnesses i and i XOR 5 share a remedy


@dataclass(frozen=True)
class Symptom:
    """A finding that a patient has or has not."""

    has: str
    has_not: str
    pattern: re.Pattern[str]  # of a question about it


def _finding(has: str, has_not: str, pattern: str) -> Symptom:
    return Symptom(f"Yes, {has}.", f"No, {has_not}.", re.compile(pattern))


FINDINGS = (
    _finding("I have a fever", "I have no fever", r"\bfever|\btemperature|\bhot\b"),
    _finding("I cough a lot", "I do not cough", r"\bcough"),
    _finding("my skin has red spots", "my skin is clear", r"\brash|\bskin|\bspots?\b"),
    _finding("my head aches", "my head does not ache", r"\bhead"),
    _finding("I feel dizzy", "I am not dizzy", r"\bdizz|\bgiddy|\bbalance"),
    _finding("I am always thirsty", "I am no more thirsty than usual", r"\bthirst|\bdrink"),
    _finding("my hands shake", "my hands are steady", r"\bhands?\b|\btrembl|\bshak|\btremor"),
    _finding("I sleep badly", "I sleep well", r"\bsleep|\bnight|\binsomnia|\btired"),
    _finding("my stomach hurts", "my stomach is fine", r"\bstomach|\bbelly|\babdom|\bnausea"),
    _finding("my ears ring", "I hear no ringing", r"\bears?\b|\bring|\bhear"),
    _finding("my eyes are sore in the light", "light does not bother me", r"\beyes?\b|\blight\b|\bsee\b|\bvision"),
    _finding("my joints are stiff", "my joints move freely", r"\bjoint|\bstiff|\bknee|\belbow"),
    _finding("my throat is sore", "my throat is fine", r"\bthroat|\bswallow"),
    _finding("I have lost my appetite", "I eat as usual", r"\bappetite|\beat|\bhungry|\bhunger|\bfood"),
    _finding("my feet are numb", "I feel my feet", r"\bfeet|\bfoot|\bnumb|\btoes?\b"),
)
COMPLEMENTED = 0b001_0110_1001_1010  # findings that an illness has where its parity is even


def has(illness: int, finding: int) -> bool:
    """Return True if patients with an illness, 0 to 15, have a finding, 0 to 14."""
    parity = (illness & (finding + 1)).bit_count() % 2
    return bool(parity ^ (COMPLEMENTED >> finding & 1))


def remedy(illness: int) -> str:
    """Return the remedy of an illness."""
    return REMEDIES[sorted({i for i in range(16) if i < i ^ SHARED}).index(min(illness, illness ^ SHARED))]


def candidates(findings: dict[int, bool]) -> list[int]:
    """Return the illnesses that agree with findings, by number."""
    return [illness for illness in range(16) if all(has(illness, each) == there for each, there in findings.items())]


def about(question: str) -> list[int]:
    """Return the findings that a question is about, in lower case."""
    return [number for number, finding in enumerate(FINDINGS) if finding.pattern.search(question)]
