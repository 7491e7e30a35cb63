"""RAGEN's turn protocol for grid games: several actions an answer, few turns, a penalty for answers without any.

An answer is `<think>...</think><answer>Right || Up</answer>`. Names that are no action are dropped, and so is what goes
beyond the limits (RAGEN-AI/RAGEN, arXiv 2504.20073).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from lmgym.env.actions import parse_tag

PER_TURN = 5  # actions of an answer that are played
PER_EPISODE = 10
TURNS = 5
PENALTY = -0.1  # reward of an answer without an action
REMINDER = (
    "You have {left} actions left. Always output: <think> [Your thoughts] </think> <answer> [your answer] </answer> "
    "with no extra text. Strictly follow this format. Separate actions by ||, {most} at most."
)


@dataclass
class RagenTurns:
    """The turns of an episode under RAGEN's protocol."""

    names: Mapping[str, str]  # action in lower case -> the task's own name of it
    turn: int = 1
    left: int = PER_EPISODE

    def actions(self, answer: str) -> list[str]:
        """Return the actions of an answer that are to be played; empty where it holds none."""
        content = parse_tag(answer, "answer") or ""
        named = [self.names.get(part.strip().lower()) for part in content[:1000].split("||")]
        return [name for name in named if name is not None][: min(PER_TURN, self.left)]

    def spend(self, actions: int) -> bool:
        """Count a turn of that many actions. Return True if the episode is used up."""
        self.turn += 1
        self.left -= actions
        return self.left == 0 or self.turn > TURNS

    def describe(self, state: str, reward: float | None = None) -> str:
        """Return the observation of a turn: the reward of the turn before, the state and the format."""
        before = "" if reward is None else f"Reward:\n{reward:g}\n\n"
        reminder = REMINDER.format(left=self.left, most=min(PER_TURN, self.left))
        return f"{before}Turn {self.turn}:\nState:\n{state}\n{reminder}\n"
