"""Planners that training brings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmgym.rollout.planner import Node, Planner, Replace

STUMBLE = {"stumble": True}


@dataclass(frozen=True)
class Stumble(Planner):
    """At a share of the turns something wrong is played in the player's stead, as an unready policy would.

    It is an admissible action at random, the words of two of them spliced, or the last action once more; the latter two
    are mostly refused, and the way on from a refusal is what a policy must have seen. The turn's info says so
    (`stumble`), for a filter to take it from the loss. Where the task lists no admissible actions, as most web tasks,
    nothing is played in the player's stead.
    """

    share: float
    wants = frozenset({"admissible"})

    def before_step(self, node: Node) -> Replace | None:
        """Draw by the episode's seed, its try and the number of the turn."""
        chance = np.random.default_rng([node.job.seed, node.job.attempt, len(node.turns)])
        actions = node.hints["admissible"]
        if chance.random() >= self.share or not actions:
            return None
        first, second = (actions[int(i)] for i in chance.integers(len(actions), size=2))
        wrong = [first, splice(first, second, chance), (node.turns[-1].action if node.turns else None) or first]
        return Replace(wrong[int(chance.integers(len(wrong)))], info=STUMBLE)


@dataclass(frozen=True)
class Wander(Planner):
    """From one turn up to another any admissible action is played in the player's stead, and nothing tells.

    Records of it are those of a player who is good in a part of an episode alone: whoever learns from them has to put
    parts together. Nothing is played where the task lists no admissible actions.
    """

    first: int
    last: int  # the turn before which it ends

    wants = frozenset({"admissible"})

    def before_step(self, node: Node) -> Replace | None:
        """Draw by the episode's seed, its try and the number of the turn."""
        number, actions = len(node.turns), node.hints["admissible"]
        if not self.first <= number < self.last or not actions:
            return None
        chance = np.random.default_rng([node.job.seed, node.job.attempt, number, 1])
        return Replace(actions[int(chance.integers(len(actions)))])


def splice(first: str, second: str, chance: np.random.Generator) -> str:
    """Return the beginning of one action with as much of another's end as completes its length, in words."""
    head, tail = first.split(), second.split()
    cut = int(chance.integers(1, max(2, len(head))))
    return " ".join(head[:cut] + tail[-max(1, len(head) - cut) :])
