"""The session as an environment with two seats: the recommender shows, the user clicks, asks or leaves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

import numpy as np

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.tasks.recommender import SPEC
from lmgym.tasks.recommender.mindset import CATALOGUE, CATEGORIES, LIKED, Mindset
from lmgym.types import FIRST_SEAT

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
USER_PROMPT = Template(files(__package__).joinpath("user.md").read_text(encoding="utf-8").strip())
STREAM = {"train": 0, "test": 1}
USER = "user"
ROUNDS = 12
SLATE = LIKED  # items of a round
CANDIDATES = 10
REWARDS = ("session", "clicks")
SHOW = re.compile(r"show\s*:?\s*(\d{1,2}(?:\s*,\s*\d{1,2})*)", re.IGNORECASE)
VERDICT = re.compile(r"^\s*(\d{1,2})\s*:?\s*(click|skip)\b", re.IGNORECASE | re.MULTILINE)
INSTRUCTION = re.compile(r"^\s*instruction\s*:(.*)$", re.IGNORECASE | re.MULTILINE)
LEAVE = re.compile(r"^\s*leave\b", re.IGNORECASE | re.MULTILINE)
LONGEST = 2_000  # characters of an answer that are read


@dataclass(frozen=True)
class Item:
    """An item of a round."""

    title: str
    category: str


class Recommender(TextEnv):
    """Keep a user for twelve rounds; the user is the seat "user".

    `rewards="session"` pays 1 for each round that the user stays for, `"clicks"` the share of the round's items that
    were clicked, whether the user stays or not. `instructions=False` hides the user's reflective instructions. With
    `shuffled=False` the first items of every round are one of each category, in the same order.
    """

    SPEC = SPEC

    def __init__(
        self, *, rewards: str = "session", instructions: bool = True, shuffled: bool = True, **common: Any
    ) -> None:
        super().__init__(**common)
        self.check_choices(rewards=(rewards, REWARDS), shuffled=(shuffled, (True, False)))
        self.rewards, self.instructions, self.shuffled = rewards, instructions, shuffled

    def begin(self, index: int) -> Reply:
        """Draw the user's tastes and the items of every round."""
        chance = np.random.default_rng([2509, STREAM[self.split], index])
        self.mindset = Mindset.drawn(chance)
        self.rounds = [_candidates(chance, shuffled=self.shuffled) for _ in range(ROUNDS)]
        self.first_like = self.mindset.likes[0]
        self.turn = self.length = self.clicked = self.shown_items = self.wishes = self.granted = 0
        self.seat = FIRST_SEAT
        self.slate: list[int] = []
        self.wish = ""  # the latest instruction
        self.next_words = ""
        self.scores = dict.fromkeys(CATEGORIES, 0.0)  # what a player who only sees clicks thinks of a category
        self.scores[self.first_like] = 1.0
        rules = PROMPT.substitute(rounds=ROUNDS, slate=SLATE)
        return Reply(f"{rules}\n\nThe user last enjoyed {self.first_like}.\n\n{self._listing()}")

    def act(self, action: str) -> Reply:
        """Take a slate, or the user's answer to it."""
        return self._shown(action[-LONGEST:]) if self.seat == FIRST_SEAT else self._answered(action[:LONGEST])

    def scripted(self, seat: str) -> str:
        """Return the scripted user's answer to the latest slate."""
        return self.next_words

    def prompts(self) -> dict[str, str]:
        """Return the instructions of a model in the user's seat."""
        return {USER: USER_PROMPT.substitute(likes=", ".join(self.mindset.likes))}

    def score_if_cut(self) -> float:
        """Return the share of the rounds that the user stayed for."""
        return self.length / ROUNDS

    def figures_if_cut(self) -> dict[str, float]:
        """Return the session's length and the shares of clicks and of wishes that were met."""
        return {
            "retention": float(self.length >= ROUNDS),
            "session_length": float(self.length),
            "click_rate": self.clicked / self.shown_items if self.shown_items else 0.0,
            "instructions_met": self.granted / self.wishes if self.wishes else 1.0,
        }

    def oracle(self) -> Iterator[str]:
        """Show one item of each category that the user likes now, the least tired first."""
        while True:
            likes = sorted(self.mindset.likes, key=lambda each: self.mindset.fatigue[each])
            yield self._showing(likes)

    def demonstrator(self) -> Iterator[str]:
        """Show the categories that were clicked lately or asked for, and try others where clicks are missing."""
        while True:
            yield self._showing(sorted(CATEGORIES, key=lambda each: -self.scores[each]))

    # Turns -----------------------------------------------------------------------------------------------------

    def _shown(self, text: str) -> Reply:
        self.turn += 1
        match = SHOW.fullmatch(parse_command(text))
        numbers = [int(number) for number in match[1].split(",")] if match else []
        if len(set(numbers)) != SLATE or len(numbers) != SLATE or not all(1 <= each <= CANDIDATES for each in numbers):
            self.slate = []
            problem = f"Choose {SLATE} different items by number, as in: SHOW 4, 1, 9. The user saw nothing."
            return self._next(problem, valid=False)
        items = [self._items()[number - 1] for number in numbers]
        self.slate = numbers
        self.granted += any(item.category in self.wish for item in items) if self.wish else 0
        clicks = self.mindset.clicks([item.category for item in items])
        leaves, instruction = self.mindset.live_on(clicks, self.np_random)
        lines = [f"{number} {'click' if click else 'skip'}" for number, click in zip(numbers, clicks, strict=True)]
        lines += [f"INSTRUCTION: {instruction}"] * bool(instruction) + ["LEAVE"] * leaves
        self.next_words, self.seat = "\n".join(lines), USER
        slate_text = "\n".join(
            f"{number}. {item.title} ({item.category})" for number, item in zip(numbers, items, strict=True)
        )
        return Reply(slate_text, seat=USER)

    def _answered(self, text: str) -> Reply:
        self.seat = FIRST_SEAT
        verdicts = {int(number): word.lower() == "click" for number, word in VERDICT.findall(text)}
        clicks = [verdicts.get(number, False) for number in self.slate]
        wish, leaves = INSTRUCTION.search(text), LEAVE.search(text) is not None
        self.wish = wish[1].strip() if wish else ""
        self.wishes += bool(self.wish)
        self.clicked += sum(clicks)
        self.shown_items += len(clicks)
        self._learn(clicks)
        self.length += not leaves
        earned = (0.0 if leaves else 1.0) if self.rewards == "session" else sum(clicks) / SLATE
        words = [
            f"{number}. {self._items()[number - 1].title}: {'clicked' if click else 'skipped'}"
            for number, click in zip(self.slate, clicks, strict=True)
        ]
        if self.wish and self.instructions:
            words.append(f'The user says: "{self.wish}"')
        return self._next("\n".join(words), leaves=leaves, earned=earned)

    def _next(self, words: str, *, leaves: bool = False, earned: float = 0.0, valid: bool = True) -> Reply:
        others = {FIRST_SEAT: earned} if earned else {}
        if leaves or self.turn >= ROUNDS:
            end = "The user leaves." if leaves else "The session is over."
            return Reply(f"{words}\n{end}", done=True, score=self.score_if_cut(), others=others, valid=valid)
        return Reply(f"{words}\n\n{self._listing()}", others=others, valid=valid)

    # Parts -----------------------------------------------------------------------------------------------------

    def _items(self) -> list[Item]:
        """Return the items of the round that was shown last."""
        return self.rounds[self.turn - 1]

    def _listing(self) -> str:
        items = self.rounds[self.turn]
        lines = [f"{number}. {item.title} ({item.category})" for number, item in enumerate(items, start=1)]
        return f"Round {self.turn + 1}:\n" + "\n".join(lines)

    def _showing(self, categories: list[str]) -> str:
        """Return the slate with one item of each of the first categories."""
        items = self.rounds[self.turn]
        numbers = [
            next(n for n, item in enumerate(items, start=1) if item.category == each) for each in categories[:SLATE]
        ]
        return f"SHOW {', '.join(map(str, numbers))}"

    def _learn(self, clicks: list[bool]) -> None:
        """Update what a player who sees clicks and instructions thinks of the categories."""
        for category in CATEGORIES:
            self.scores[category] *= 0.9
        for number, click in zip(self.slate, clicks, strict=True):
            self.scores[self._items()[number - 1].category] = 1.0 if click else -1.0
        if self.wish and self.instructions:
            for category in CATEGORIES:
                if category in self.wish.partition(".")[2]:
                    self.scores[category] = 2.0


def _candidates(chance: np.random.Generator, *, shuffled: bool) -> list[Item]:
    """Draw the items of a round: one of each category and two more, in any order or in this one."""
    items = [Item(str(chance.choice(CATALOGUE[each])), each) for each in CATEGORIES]
    rest = [Item(title, each) for each in CATEGORIES for title in CATALOGUE[each] if Item(title, each) not in items]
    items += [rest[int(i)] for i in chance.permutation(len(rest))[: CANDIDATES - len(items)]]
    order = chance.permutation(CANDIDATES)
    return [items[int(i)] for i in order] if shuffled else items
