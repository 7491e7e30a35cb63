"""Twenty Questions as an environment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from lmgym.env.games.guessing import GuessingEnv
from lmgym.tasks.twenty_questions import SPEC
from lmgym.tasks.twenty_questions.objects import official_table, our_table


class TwentyQuestions(GuessingEnv):
    """Find one of 158 objects by 20 questions; each costs 1, except the one that names the object.

    `objects` names a file with another list, such as LMRL-Gym's `data.py`; `only` plays some objects of the list by
    name.
    """

    SPEC = SPEC
    RULES = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip()
    ORACLE_RULES = files(__package__).joinpath("oracle.md").read_text(encoding="utf-8").strip()

    def __init__(
        self, *, objects: str | os.PathLike[str] | None = None, only: Sequence[str] = (), **common: Any
    ) -> None:
        super().__init__(**common)
        table = our_table() if objects is None else official_table(objects)
        self.table = table.part(only) if only else table

    def guess(self, member: str) -> str:
        """Return the question that names an object."""
        article = "an" if member[0] in "aeiou" else "a"
        return f"Is it {article} {member}?"
