"""Sokoban as an environment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from importlib.resources import files
from typing import Any

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.env.ragen import PENALTY, PER_TURN, RagenTurns
from lmgym.errors import InstanceError
from lmgym.tasks.sokoban import SPEC
from lmgym.tasks.sokoban.level import LONGEST, MOVES, level

PROMPT = files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip() + "\n\n"
NAMES = {name.lower(): name for name in MOVES}
PROTOCOLS = ("single", "ragen")


class Sokoban(TextEnv):
    """Push every box onto a target.

    A step costs 0.1, a box put on a target earns 1 and one pushed off costs 1, solving the level earns 10 (terms
    `step`, `boxes`, `solved`). `protocol="ragen"` takes up to five actions an answer and ten in all; its levels can
    be solved in ten. `side` is the length of the square room with its walls, `boxes` their number.
    """

    SPEC = SPEC

    def __init__(self, *, side: int = 6, boxes: int = 1, protocol: str = "single", **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(protocol=(protocol, PROTOCOLS))
        if not 5 <= side <= 8 or not 1 <= boxes <= 3:
            raise InstanceError(f"{self.task.id} takes side 5 to 8 and boxes 1 to 3; got side={side}, boxes={boxes}")
        self.side, self.boxes, self.protocol = side, boxes, protocol

    def begin(self, index: int) -> Reply:
        """Open the level of this instance."""
        most = LONGEST if self.protocol == "ragen" else None
        self.level = level(self.split, index, self.side, self.boxes, most)
        self.position = self.level.start
        self.turns = RagenTurns(NAMES)
        return Reply(PROMPT + self._state())

    def act(self, action: str) -> Reply:
        """Walk, and push."""
        if self.protocol == "ragen":
            return self._act_in_turns(action)
        name = NAMES.get(parse_command(action).lower())
        if name is None:
            return Reply(self._state(), reward={"step": -0.1}, valid=False)
        terms = self._walk(name)
        done = self.level.solved(self.position)
        return Reply(self._state(), reward=terms, done=done, score=1.0 if done else None)

    def oracle(self) -> Iterator[str]:
        """Play a shortest solution; from a position that cannot be solved any more, walk on."""
        while True:
            solution = self.level.solution(self.position) or ["Up"]
            if self.protocol == "single":
                yield solution[0]
            else:
                yield f"<answer>{' || '.join(solution[:PER_TURN])}</answer>"

    def admissible(self) -> list[str]:
        """Return the four directions, as answers of the protocol."""
        return [f"<answer>{name}</answer>" for name in MOVES] if self.protocol == "ragen" else list(MOVES)

    def fingerprint(self) -> str:
        """Return the drawing of the level."""
        return self.level.draw(self.level.start)

    def _walk(self, name: str) -> dict[str, float]:
        """Take a step and return the terms of its reward."""
        before = len(self.position.boxes & self.level.targets)
        self.position = self.level.moved(self.position, name)
        after = len(self.position.boxes & self.level.targets)
        solved = 10.0 if self.level.solved(self.position) else 0.0
        return {"step": -0.1, "boxes": float(after - before), "solved": solved}

    def _act_in_turns(self, answer: str) -> Reply:
        actions = self.turns.actions(answer)
        terms = {"format": 0.0 if actions else PENALTY, "step": 0.0, "boxes": 0.0, "solved": 0.0}
        played, solved = 0, False
        while played < len(actions) and not solved:
            for term, amount in self._walk(actions[played]).items():
                terms[term] += amount
            played += 1
            solved = self.level.solved(self.position)
        over = self.turns.spend(played) or solved
        text = self._board() if over else self.turns.describe(self._board(), math.fsum(terms.values()))
        score = float(solved) if over else None
        return Reply(text, reward=terms, done=over, score=score, valid=bool(actions))

    def _board(self) -> str:
        return self.level.draw(self.position)

    def _state(self) -> str:
        return self.turns.describe(self._board()) if self.protocol == "ragen" else self._board()
