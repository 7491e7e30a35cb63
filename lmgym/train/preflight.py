"""Checks of a recipe against the task, its splits and files, before any work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError
from lmgym.evaluation import runner
from lmgym.train import source
from lmgym.train.interfaces import Needs
from lmgym.train.recipe import Recipe


def check(recipe: Recipe, task: str, options: Mapping[str, Any], folder: Path, *, sees: bool = False) -> None:
    """Raise RecipeError if the task or a file lacks what `recipe` needs; `sees`: the policy takes pictures."""
    name = runner.id_of(task)
    if not sees and runner.pictured(task, options):
        raise RecipeError(f"{name} shows pictures, and this policy reads text only: use tiny-vl or a model that sees")
    if recipe.replays and not runner.replays(task, options):
        raise RecipeError(f"{name} is not deterministic, and this recipe replays episodes from one of their turns")
    needs = [stage.needs() for stage in recipe.unrolled() if not stage.skipped]
    if recipe.blind and any(need.critic for need in needs) and runner.pictured(task, options):
        raise RecipeError(f"{name} shows pictures, and {recipe.blind}")
    if recipe.importance is not None and any(need.sampler_logprobs for need in needs):
        raise RecipeError("importance weights compare the trainer's log-probs with the sampler's: leave rescore on")
    for split in sorted({"train", *(need.split for need in needs)}):
        if runner.size_of(task, split, options) < 1:
            raise RecipeError(f"{name} has no instances in its {split} split, with these options and data")
    made = {need.makes for need in needs}
    for need in needs:
        if need.data is not None and str(need.data) not in made:
            path = next((path for path in (folder / need.data, need.data) if path.exists()), None)
            if path is None:
                raise RecipeError(f"data set {need.data} does not exist")
            source.selected(path, need.select)
        if need.demonstrator and not runner.demonstrates(task):
            raise RecipeError(f"{name} has neither demonstrator nor oracle to imitate: {_without(recipe, needs)}")


def _without(recipe: Recipe, needs: Sequence[Needs]) -> str:
    """Return the options by which a recipe does without a demonstrator."""
    if sum(stage.learns for stage in recipe.unrolled()) == 1:  # imitation is all there is
        return "give episodes to imitate by --recorded FILE"
    made = {need.makes for need in needs if need.makes}
    demonstrated = any(need.makes and need.demonstrator for need in needs)
    recorded = any(str(need.data) in made for need in needs)
    options = "use --warmup 0 --demonstrated 0" if demonstrated else "use --warmup 0"
    return options + (", or --recorded FILE" if recorded else "")
