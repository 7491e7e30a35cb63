"""A Recipe: the stages of an algorithm and the parts of its RL stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lmgym.errors import RecipeError
from lmgym.train.interfaces import Parts
from lmgym.train.stages import Stage


@dataclass(frozen=True, kw_only=True)
class Recipe(Parts):
    """An algorithm: its parts and its stages."""

    stages: Sequence[Stage]

    def __post_init__(self) -> None:
        if self.reward_kl is not None and any(term.reference for term in self.loss):
            raise RecipeError("a KL both in the reward and in the loss counts it twice: set one of the two to 0")
        if self.store is None and any(stage.needs().store for stage in self.unrolled()):
            raise RecipeError("several updates per step draw from a store, and this recipe has none: add a store")

    def on_split(self, split: str) -> Recipe:
        """Return the recipe with its evaluations on `split`."""
        return replace(self, stages=[stage.on_split(split) for stage in self.stages])

    def unrolled(self) -> list[Stage]:
        """Return the stages in the order in which they run, repetitions written out."""
        return [each for stage in self.stages for each in stage.unrolled()]
