"""Planners used in training: they replace actions of the player."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmgym.rollout.planner import Node, Planner, Replace

STUMBLE = {"stumble": True}


@dataclass(frozen=True)
class Stumble(Planner):
    """Replaces the action with a wrong one in a share of the turns, as an untrained policy would play.

    The wrong action is a random admissible action, a splice of two, or the previous action repeated. The latter two are
    mostly invalid, so that the data shows how to recover from invalid actions. The turn's info has `stumble` set, for
    a filter to exclude it from the loss. Tasks that list no admissible actions, like most web tasks, are unaffected.
    """

    share: float
    wants = frozenset({"admissible"})

    def before_step(self, node: Node) -> Replace | None:
        """Draw from the seed and attempt of the episode and the number of the turn."""
        chance = np.random.default_rng([node.job.seed, node.job.attempt, len(node.turns)])
        actions = node.hints["admissible"]
        if chance.random() >= self.share or not actions:
            return None
        first, second = (actions[int(i)] for i in chance.integers(len(actions), size=2))
        wrong = [first, splice(first, second, chance), (node.turns[-1].action if node.turns else None) or first]
        return Replace(wrong[int(chance.integers(len(wrong)))], info=STUMBLE)


@dataclass(frozen=True)
class Wander(Planner):
    """Plays random admissible actions from turn `first` up to turn `last`, without marking them in the record.

    The resulting data is good in one part of each episode only; a learner has to combine parts of different episodes.
    Tasks that list no admissible actions are unaffected.
    """

    first: int
    last: int  # exclusive

    wants = frozenset({"admissible"})

    def before_step(self, node: Node) -> Replace | None:
        """Draw from the seed and attempt of the episode and the number of the turn."""
        number, actions = len(node.turns), node.hints["admissible"]
        if not self.first <= number < self.last or not actions:
            return None
        chance = np.random.default_rng([node.job.seed, node.job.attempt, number, 1])
        return Replace(actions[int(chance.integers(len(actions)))])


def splice(first: str, second: str, chance: np.random.Generator) -> str:
    """Return the first words of one action followed by the last words of another, at the length of the first."""
    head, tail = first.split(), second.split()
    cut = int(chance.integers(1, max(2, len(head))))
    return " ".join(head[:cut] + tail[-max(1, len(head) - cut) :])
