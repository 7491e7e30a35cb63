"""Planners that training brings."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmgym.rollout.planner import Node, Planner, Replace

STUMBLE = {"stumble": True}


@dataclass(frozen=True)
class Stumble(Planner):
    """At a share of the turns a random admissible action is played in the player's stead.

    The turn's info says so (`stumble`), for a filter to take it from the loss: what follows shows the way back.
    """

    share: float
    wants = frozenset({"admissible"})

    def before_step(self, node: Node) -> Replace | None:
        """Draw by the episode's seed, its try and the number of the turn."""
        chance = np.random.default_rng([node.job.seed, node.job.attempt, len(node.turns)])
        actions = node.hints["admissible"]
        if chance.random() >= self.share or not actions:
            return None
        return Replace(actions[int(chance.integers(len(actions)))], info=STUMBLE)
