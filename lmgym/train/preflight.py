"""Checks of a recipe against the task, its splits and files, before any work is done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError
from lmgym.evaluation import runner
from lmgym.rollout.context import Summarise
from lmgym.train import source
from lmgym.train.interfaces import Needs, Parts
from lmgym.train.recipe import Recipe
from lmgym.train.seats import OWN_PLAYERS
from lmgym.types import FIRST_SEAT


def check(
    recipe: Recipe,
    task: str,
    options: Mapping[str, Any],
    folder: Path,
    *,
    sees: bool = False,
    context: int | None = None,
    train_instances: int | None = None,
) -> None:
    """Raise RecipeError if the task, a file or the policy lacks what `recipe` needs.

    `sees`: the policy takes pictures; `context`: the tokens that it reads at most; `train_instances`: the limit of the
    instances that are played.
    """
    name = runner.id_of(task)
    if not sees and runner.pictured(task, options):
        raise RecipeError(f"{name} shows pictures, and this policy reads text only: use tiny-vl or a model that sees")
    if context is not None and isinstance(recipe.context, Summarise) and recipe.context.limit >= context:
        raise RecipeError(
            f"this policy reads {context} tokens, so no summary is ever asked for at a limit of "
            f"{recipe.context.limit}: choose a lower limit"
        )
    stages = [stage for stage in recipe.unrolled() if not stage.skipped]
    needs = [stage.needs() for stage in stages]
    for stage, need in zip(stages, needs, strict=True):
        _check_parts(stage.parts_of(recipe), need, task, options)
    for split in sorted({"train", *(need.split for need in needs)}):
        if runner.size_of(task, split, options) < 1:
            raise RecipeError(f"{name} has no instances in its {split} split, with these options and data")
    made = {need.makes for need in needs}
    for need in needs:
        if need.data is not None and str(need.data) not in made:
            path = next((path for path in (folder / need.data, need.data) if path.exists()), None)
            if path is None:
                raise RecipeError(f"data set {need.data} does not exist")
            if train_instances is not None:
                raise RecipeError(
                    f"train_instances={train_instances} limits the instances that are played, and {need.data} is read "
                    "whole: leave train_instances out, or give a data set of these instances alone"
                )
            source.selected(path, need.select)
        if need.demonstrator and not runner.demonstrates(task):
            raise RecipeError(f"{name} has neither demonstrator nor oracle to imitate: {_without(recipe, needs)}")


def _check_parts(parts: Parts, need: Needs, task: str, options: Mapping[str, Any]) -> None:
    """Raise RecipeError if the task lacks what the parts of a stage need."""
    name = runner.id_of(task)
    runner.spec_of(task, parts.tasks.options)  # raises RecipeError for an option that the task does not have
    if "replay" in parts.requires and not runner.replays(task, options):
        raise RecipeError(
            f"{name} is not deterministic, and this recipe replays episodes from one of their turns: choose a task, or "
            "options of it, whose episodes are the same for the same seed and actions"
        )
    if "pictures" in parts.requires and not runner.pictured(task, options):
        raise RecipeError(
            f"{name} shows no pictures, and this recipe learns where to look in them: choose a task that shows some, "
            "such as visual_search"
        )
    if "expert" in parts.requires and not runner.demonstrates(task):
        raise RecipeError(
            f"{name} has neither demonstrator nor oracle, and this recipe corrects actions by one: choose a task that "
            "has one, such as webforms"
        )
    if "answer" in parts.requires and not runner.tells_answer(task):
        raise RecipeError(
            f"{name} tells no answer, and this recipe rewards turns that make the answer more likely: choose a task "
            "that tells it, such as wordle"
        )
    if "text" in parts.requires and runner.pictured(task, options):
        raise RecipeError(
            f"{name} shows pictures, and this recipe scores text alone: choose a task without, such as wordle"
        )
    if unknown := sorted(set(parts.seats) - {FIRST_SEAT, *runner.seats_of(task)}):
        listed = ", ".join(runner.seats_of(task)) or "the agent's only"
        others = ", ".join(runner.tasks_with(unknown[0])) or "none here has it"
        raise RecipeError(
            f"{name} has no seat {unknown[0]!r}, which this recipe plays; its seats are {listed}: choose a task with "
            f"that seat ({others}), or another seat where the recipe has an option for it"
        )
    for model in (*parts.judges, *(seat.player for seat in parts.seats.values())):
        if model not in OWN_PLAYERS:
            _load(model)
    if parts.reward_terms and (missing := parts.reward_terms - (given := runner.reward_terms(task, options))):
        terms = ", ".join(sorted(given))
        raise RecipeError(
            f"this recipe reads the reward term {min(missing)!r}, and {name} gives {terms}: set the option of the task "
            "that gives it, or of the recipe that names its terms, or choose the task of the recipe's docstring"
        )
    if parts.blind and need.critic and runner.pictured(task, options):
        raise RecipeError(f"{name} shows pictures, and {parts.blind}")
    if parts.importance is not None and need.sampler_logprobs:
        raise RecipeError("importance weights compare the trainer's log-probs with the sampler's: leave rescore on")


def _load(model: str) -> None:
    """Raise PolicyError if a model cannot be loaded."""
    from lmgym.train.load import load_policy  # imports recipes

    policy = load_policy(model, 0.0, 0)
    if hasattr(policy, "close"):
        policy.close()


def _without(recipe: Recipe, needs: Sequence[Needs]) -> str:
    """Return the options by which a recipe does without a demonstrator."""
    if sum(stage.learns for stage in recipe.unrolled()) == 1:  # imitation is all there is
        return "give episodes to imitate by --recorded FILE"
    made = {need.makes for need in needs if need.makes}
    demonstrated = any(need.makes and need.demonstrator for need in needs)
    recorded = any(str(need.data) in made for need in needs)
    options = "use --warmup 0 --demonstrated 0" if demonstrated else "use --warmup 0"
    return options + (", or --recorded FILE" if recorded else "")
