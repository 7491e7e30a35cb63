"""A Recipe: the stages of an algorithm and the parts of its RL stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lmgym.errors import RecipeError
from lmgym.rollout.context import Context
from lmgym.train.interfaces import Parts
from lmgym.train.stage import Stage


@dataclass(frozen=True, kw_only=True)
class Recipe(Parts):
    """An algorithm: its parts and its stages."""

    stages: Sequence[Stage]

    def __post_init__(self) -> None:
        for stage in self.unrolled():
            parts = stage.parts_of(self)
            drawn = [term for term in parts.loss if term.source == "store"]
            if parts.reward_kl is not None and any(term.reference for term in parts.loss):
                raise RecipeError("a KL both in the reward and in the loss counts it twice: set one of the two to 0")
            if parts.store is None and stage.needs().store:
                raise RecipeError("several updates per step draw from a store, and this recipe has none: add a store")
            if parts.store is None and drawn:
                raise RecipeError(f"the loss {drawn[0].name!r} is of stored episodes: give the recipe a store")
            if any(term.reference for term in drawn):
                raise RecipeError("stored episodes have no reference log-probs: set reference=False in their loss")
            if drawn and stage.needs().store:
                raise RecipeError("stored episodes join the fresh ones in one update: set updates_per_step to 1")
            if any(getattr(parts, name) != getattr(self, name) for name in ("context", "temperature", "stop")):
                raise RecipeError(
                    f"the stage {stage.name!r} samples as the recipe does: set context, temperature and stop there"
                )

    def on_split(self, split: str) -> Recipe:
        """Return the recipe with its evaluations on `split`."""
        return replace(self, stages=[stage.on_split(split) for stage in self.stages])

    def seeing(self, context: Context) -> Recipe:
        """Return the recipe with `context`, in its stages as well."""
        return replace(self, context=context, stages=[stage.seeing(context) for stage in self.stages])

    def unrolled(self) -> list[Stage]:
        """Return the stages in the order in which they run, repetitions written out."""
        return [each for stage in self.stages for each in stage.unrolled()]
