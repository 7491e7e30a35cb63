"""Frozen Lake as an environment."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from string import Template
from typing import Any

from lmgym.env.actions import parse_command
from lmgym.env.env import Reply, TextEnv
from lmgym.env.ragen import PENALTY, PER_EPISODE, PER_TURN, TURNS, RagenTurns
from lmgym.errors import InstanceError
from lmgym.tasks.frozen_lake import SPEC
from lmgym.tasks.frozen_lake.lake import ACTIONS, best_play, lake

PROMPT = Template(files(__package__).joinpath("prompt.md").read_text(encoding="utf-8").strip())
ICE = " The ice is slippery: a step goes where you want one time in three, and as often to either side of that."
NUMBERS = {name.lower(): number for number, name in enumerate(ACTIONS)}
PROTOCOLS = ("single", "ragen", "twice")
ANSWER = "Answer with one of: Left, Down, Right, Up."
WAY = "Answer with a whole way to the goal, such as: Right, Right, Down."
AGAIN = "There may be a mistake in this way. Answer with the whole way once more, corrected if need be."
LONGEST = 30  # steps of a way that are taken
HORIZON = 30  # steps that the oracle plans ahead; a plan costs their square


class FrozenLake(TextEnv):
    """Reach the goal: reward and score 1; a hole ends the episode with 0.

    Slips come from `np_random`, so the tries of a group, which share the seed, share them too. `protocol="ragen"`
    takes up to five actions an answer and ten in all; `protocol="twice"` takes a whole way as an answer, twice, without
    telling how the first ended: the second is scored. `side` is the length of the square map in tiles.
    """

    SPEC = SPEC

    def __init__(self, *, slippery: bool = True, protocol: str = "single", side: int = 4, **common: Any) -> None:
        super().__init__(**common)
        self.check_choices(protocol=(protocol, PROTOCOLS))
        if not 3 <= side <= 8:
            raise InstanceError(f"{self.task.id} has maps of 3 to 8 tiles a side; got side={side}")
        self.slippery, self.protocol, self.side = slippery, protocol, side

    def begin(self, index: int) -> Reply:
        """Open the map of this instance."""
        self.lake = lake(self.split, index, self.side)
        self.cell = self.lake.start
        self.turns = RagenTurns({name.lower(): name for name in ACTIONS})
        self.left = self.max_turns or self.task.max_turns  # steps
        board = self.lake.draw(self.cell, "P")
        state = self.turns.describe(board) if self.protocol == "ragen" else board
        self.first: float | None = None  # reward of the first of two ways
        answer = WAY if self.protocol == "twice" else ANSWER
        return Reply(f"{PROMPT.substitute(ice=ICE if self.slippery else '', answer=answer)}\n\n{state}")

    def act(self, action: str) -> Reply:
        """Walk, and perhaps slip."""
        if self.protocol == "ragen":
            return self._act_in_turns(action)
        if self.protocol == "twice":
            return self._attempt(action)
        number = NUMBERS.get(parse_command(action).lower())
        self.left = max(self.left - 1, 1)
        if number is None:
            return Reply(self.lake.draw(self.cell, "P"), valid=False)
        return self._arrived(self._walk(number))

    def oracle(self) -> Iterator[str]:
        """Play what reaches the goal most often in the turns and steps that are left, at most HORIZON."""
        if self.protocol == "twice":
            yield from self._best_ways()
            return
        ragen = self.protocol == "ragen"
        turns, steps, most = (TURNS, PER_EPISODE, PER_TURN) if ragen else (HORIZON, HORIZON, 1)
        plan = best_play(self.lake, slippery=self.slippery, turns=turns, steps=steps, per_turn=most)
        while True:
            ahead = min(self.left, HORIZON)
            turns, steps = (TURNS + 1 - self.turns.turn, self.turns.left) if ragen else (ahead, ahead)
            sequence = plan.sequences[plan.answer[turns, steps, self.cell[0] * self.side + self.cell[1]]]
            names = " || ".join(ACTIONS[action] for action in sequence)
            yield f"<answer>{names}</answer>" if ragen else names

    def admissible(self) -> list[str]:
        """Return the four directions, as answers of the protocol."""
        return [f"<answer>{name}</answer>" for name in ACTIONS] if self.protocol == "ragen" else list(ACTIONS)

    def fingerprint(self) -> str:
        """Return the map."""
        return f"{self.lake}"

    def _walk(self, number: int) -> bool:
        """Take a step. Return True if the episode is over."""
        outcomes = self.lake.outcomes(self.cell, number, slippery=self.slippery)
        self.cell = outcomes[int(self.np_random.integers(len(outcomes)))] if self.slippery else outcomes[0]
        return self.cell == self.lake.goal or self.cell in self.lake.holes

    def _arrived(self, over: bool) -> Reply:
        won = self.cell == self.lake.goal
        mark = "√" if won else "X" if over else "P"
        return Reply(self.lake.draw(self.cell, mark), reward=float(won), done=over, score=float(won) if over else None)

    def _attempt(self, answer: str) -> Reply:
        """Walk a whole way from the start; what follows its end is ignored."""
        names = re.findall("|".join(NUMBERS), answer[:1000].lower())[:LONGEST]
        self.cell = self.lake.start
        for name in names:
            if self._walk(NUMBERS[name]):
                break
        won, self.cell = float(self.cell == self.lake.goal), self.lake.start
        board, reward = self.lake.draw(self.cell, "P"), {"attempt": won}
        if self.first is None:
            self.first = won
            return Reply(f"{board}\n{AGAIN}", reward=reward, valid=bool(names))
        figures = {"first_attempt": self.first}
        return Reply(board, reward=reward, done=True, score=won, valid=bool(names), figures=figures)

    def _best_ways(self) -> Iterator[str]:
        """Yield the shortest way over firm ice, twice."""
        plan = best_play(self.lake, slippery=False, turns=LONGEST, steps=LONGEST, per_turn=1)
        cell, names, left = self.lake.start, [], LONGEST
        while cell != self.lake.goal:
            (action,) = plan.sequences[plan.answer[left, left, cell[0] * self.side + cell[1]]]
            names.append(ACTIONS[action])
            cell, left = self.lake.outcomes(cell, action, slippery=False)[0], left - 1
        yield ", ".join(names)
        yield ", ".join(names)

    def _act_in_turns(self, answer: str) -> Reply:
        actions = self.turns.actions(answer)
        played, over = 0, False
        for name in actions:
            played += 1
            over = self._walk(NUMBERS[name.lower()])
            if over:
                break
        reply = self._arrived(over)
        reply.valid = bool(actions)
        reward = {"reward": float(reply.reward), "format": 0.0 if actions else PENALTY}  # type: ignore[arg-type]
        reply.reward = reward
        if self.turns.spend(played) and not over:
            reply.done, reply.score = True, 0.0
        if not reply.done:
            reply.text = self.turns.describe(reply.text, sum(reward.values()))
        return reply
