"""The scripted user's mindset: tastes, fatigue and mood, and the hazard of leaving."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

CATALOGUE = {  # titles by category; our own
    "cooking": ("Soups of the Harbour", "One Pan, Six Suppers", "The Patient Baker"),
    "travel": ("Night Trains", "Islands Without Cars", "A Week in the Dunes"),
    "sports": ("The Last Lap", "Climbing Indoors", "Rowing for Beginners"),
    "science": ("How Rivers Bend", "The Smallest Clocks", "Letters from Mars"),
    "music": ("Drums in the Attic", "Four Strings", "Songs of the Ferry"),
    "history": ("The Salt Road", "Queens of the North", "Maps That Lied"),
    "comedy": ("Wrong Floor", "My Uncle's Goose", "The Polite Burglar"),
    "gardening": ("Roots and Rain", "A Balcony Year", "Roses Anyway"),
}
CATEGORIES = tuple(CATALOGUE)
LIKED = 3  # categories at a time
TIRED, RESTED = 0.2, 0.6  # fatigue of one item of a category, and the share that stays from round to round
CLICKED = 0.5  # interest less fatigue from which a liked item is clicked
DRIFT = 0.15  # probability of a change of taste after a round
STAY, OFFSET, SLOPE = 0.2, -1.0, 3.0  # mood from which nobody leaves; the hazard below: sigmoid(OFFSET - SLOPE mood)
FRESH = 0.5  # weight of the latest round in the mood


@dataclass
class Mindset:
    """Tastes, fatigue and mood of a user; mood is in [-1, 1]."""

    likes: list[str]
    fatigue: dict[str, float] = field(default_factory=lambda: dict.fromkeys(CATEGORIES, 0.0))
    mood: float = 0.5

    @classmethod
    def drawn(cls, chance: np.random.Generator) -> Mindset:
        """Draw the tastes at the start of a session."""
        return cls([CATEGORIES[int(i)] for i in chance.permutation(len(CATEGORIES))[:LIKED]])

    def clicks(self, categories: Sequence[str]) -> list[bool]:
        """Return the items of a slate that are clicked, by category; each item tires."""
        clicked = []
        for category in categories:
            clicked.append(category in self.likes and 1.0 - self.fatigue[category] >= CLICKED)
            self.fatigue[category] += TIRED
        return clicked

    def live_on(self, clicked: Sequence[bool], chance: np.random.Generator) -> tuple[bool, str]:
        """End a round: return True if the user leaves, and the reflective instruction, "" for none.

        A user below the mood at which all stay leaves with probability sigmoid(b - k mood), else says what is wanted.
        """
        share = sum(clicked) / len(clicked)
        self.mood = (1 - FRESH) * self.mood + FRESH * (2 * share - 1)
        dull = max(CATEGORIES, key=lambda each: self.fatigue[each])
        hazard = 0.0 if self.mood >= STAY else 1 / (1 + math.exp(SLOPE * self.mood - OFFSET))
        leaves = bool(chance.random() < hazard)
        wanted = min(self.likes, key=lambda each: self.fatigue[each])
        instruction = f"Enough {dull} for now. I would rather see {wanted}." if hazard else ""
        for category in CATEGORIES:
            self.fatigue[category] *= RESTED
        if chance.random() < DRIFT:
            others = [each for each in CATEGORIES if each not in self.likes]
            self.likes[int(chance.integers(LIKED))] = others[int(chance.integers(len(others)))]
        return leaves, instruction
