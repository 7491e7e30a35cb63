"""The environments: those of other tests, with what they lack."""

from __future__ import annotations

from typing import Any

from lmgym.env.env import Reply
from tests.board.small import DUEL, PICTURES, SPEC
from tests.env.games import Race
from tests.evaluation.jars import Jars
from tests.vision.games import Corners


class FewJars(Jars):
    """Look into jars by tools."""

    SPEC = SPEC


class FewDuels(Race):
    """The race, in which every word is a move: its length says which."""

    SPEC = DUEL

    def act(self, action: str) -> Reply:
        return super().act("12"[len(action) % 2])


class FewCorners(Corners):
    """Name the lit corner, and tell it to a tool."""

    SPEC = PICTURES

    def tools(self, seat: str = "agent") -> list[dict[str, Any]]:
        return [{"name": "name", "description": "Name <b>one</b> corner.", "parameters": {"type": "object"}}]
