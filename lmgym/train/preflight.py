"""What a recipe needs of a task, a split or a file, said in one line before any work is done."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError
from lmgym.evaluation import runner
from lmgym.train import source
from lmgym.train.recipe import Evaluate, FitCritic, Generate, Recipe, Rl, Sft, unrolled


def check(recipe: Recipe, task: str, options: Mapping[str, Any], folder: Path, *, sees: bool = False) -> None:
    """Raises RecipeError for what `recipe` needs and does not find; `sees` says whether the policy takes pictures."""
    name = runner.id_of(task)
    if not sees and runner.pictured(task, options):
        raise RecipeError(f"{name} shows pictures, and this policy reads text only: use tiny-vl or a model that sees")
    if recipe.replays and not runner.replays(task, options):
        raise RecipeError(f"{name} cannot be played again from a turn on, and this recipe rewinds episodes")
    stages = [stage for stage in unrolled(recipe.stages) if isinstance(stage, Evaluate) or stage.until.steps != 0]
    if recipe.blind and any(isinstance(stage, Rl | FitCritic) for stage in stages) and runner.pictured(task, options):
        raise RecipeError(f"{name} shows pictures, and {recipe.blind}")
    if recipe.importance is not None and any(isinstance(stage, Rl) and stage.rescore is False for stage in stages):
        raise RecipeError("importance weights compare the trainer's log-probs with the sampler's: leave rescore on")
    for split in {"train", *(stage.split for stage in stages if isinstance(stage, Evaluate))}:
        if runner.size_of(task, split, options) < 1:
            raise RecipeError(f"{name} has no instances in its {split} split, with these options and data")
    made = {stage.into for stage in stages if isinstance(stage, Generate)}
    for stage in stages:
        recorded = stage.recorded if isinstance(stage, Sft | FitCritic) else None
        places = [] if recorded is None or str(recorded) in made else [folder / recorded, recorded]
        found = [place for place in places if place.exists()]
        if places and not found:
            raise RecipeError(f"there is no data set {recorded}")
        if found:
            source.selected(found[0], stage.select if isinstance(stage, Sft) else None)
        shown = isinstance(stage, Sft) or (isinstance(stage, Generate) and stage.demonstrated)
        if shown and recorded is None and not runner.demonstrates(task):
            raise RecipeError(f"{name} has neither demonstrator nor oracle to imitate: {_without(recipe, made)}")


def _without(recipe: Recipe, made: Collection[str]) -> str:
    """The options by which a recipe does without a demonstrator: those that it has."""
    stages = [stage for stage in unrolled(recipe.stages) if not isinstance(stage, Evaluate)]
    if len(stages) == 1:  # imitation is all there is
        return "give episodes to imitate by --recorded FILE"
    records = any(isinstance(stage, Generate) and stage.demonstrated and stage.until.steps != 0 for stage in stages)
    ways = "--warmup 0 --demonstrated 0" if records else "--warmup 0"
    recorded = any(isinstance(stage, FitCritic) and str(stage.recorded) in made for stage in stages)
    return f"use {ways}" + (", or --recorded FILE" if recorded else "")
