"""`lmgym.train.run`: train a policy by a recipe or by the name of an algorithm, as `lmgym train` does."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from lmgym.errors import RecipeError
from lmgym.evaluation import runner
from lmgym.evaluation.settings import context_rule
from lmgym.policy.load import load_local
from lmgym.policy.local.lora import adapt
from lmgym.policy.local.policy import LocalPolicy
from lmgym.train import algorithms, loop
from lmgym.train.presets import Tuned, run_folder, tuned
from lmgym.train.recipe import Recipe
from lmgym.train.state import RunResult
from lmgym.train.update import halves


def run(
    recipe: str | Recipe,
    *,
    task: str,
    model: str | LocalPolicy | None = None,
    out: str | Path | None = None,
    seed: int = 0,
    resume: bool = False,
    options: Mapping[str, Any] | None = None,
    preset: bool = True,
    dtype: str | None = None,
    threads: int | None = None,
    lora: int | None = None,
    tokens: int | None = None,
    train_instances: int | None = None,
    evaluate_every: int = 0,
    evaluate_split: str | None = None,
    max_tokens: int | None = None,
    context: str | None = None,
    keep_episodes: Collection[int] = (),
    concurrency: int | None = None,
    lockstep: bool = True,
    quiet: bool = False,
    **args: Any,
) -> RunResult:
    """Train a policy on a task and return the result, whose `policy` is a folder that `hf:` loads.

    `recipe` is a Recipe, or the name or file of an algorithm, whose options are `args`: `run("grpo", task="wordle",
    steps=20)`. `options` are those of the task. Without `model` it is the preset's for this task, else `tiny`; without
    `out` the folder is `runs/ALGORITHM-TASK-MODEL-SEED`. The other arguments are the options of `lmgym train`.
    """
    options, name = dict(options or {}), recipe if isinstance(recipe, str) else "recipe"
    spec = runner.spec_of(task, options)
    chosen = Tuned(model) if isinstance(model, str) else Tuned()
    if isinstance(recipe, str):
        if preset and not isinstance(model, LocalPolicy):
            chosen = tuned(recipe, spec.id, model)
        module = algorithms.load(recipe)
        values = module.Args(**{**chosen.args, **args})
        args, recipe = dataclasses.asdict(values), module.recipe(values)
    elif args:
        raise RecipeError(f"options such as {next(iter(args))} belong to a named algorithm, and this is a recipe")
    assert isinstance(recipe, Recipe)
    limit = answer_limit(recipe, max_tokens, least=spec.answer_tokens)
    recipe = _adjusted(dataclasses.replace(recipe, max_tokens=limit), name, evaluate_split, context)
    torch.set_num_threads(threads or torch.get_num_threads())
    if not isinstance(model, LocalPolicy):
        model, dtype = _loaded(chosen.model, seed, dtype)
    if lora is not None:
        adapt(model.model, rank=lora, seed=seed)
    settings = {"algorithm": name, "dtype": dtype, "threads": torch.get_num_threads(), "lora": lora}
    settings |= {"max_tokens": limit, "tokens": tokens, "context": context, "concurrency": concurrency}
    settings |= {"evaluate_split": evaluate_split, "train_instances": train_instances, "lockstep": lockstep}
    return loop.run(
        recipe,
        model,
        task=spec.id,
        options=options,
        folder=Path(out) if out else run_folder(name, spec.name, model.name, seed),
        seed=seed,
        resume=resume,
        arguments={**settings, **args},
        keep_episodes=keep_episodes,
        concurrency=concurrency,
        tokens=tokens,
        train_instances=train_instances,
        evaluate_every=evaluate_every,
        lockstep=lockstep and spec.player != "inline",
        quiet=quiet,
    )


def _adjusted(recipe: Recipe, name: str, split: str | None, rule: str | None) -> Recipe:
    """Return the recipe with the split and the context that were asked for. Raise RecipeError for a second context."""
    recipe = recipe if split is None else recipe.on_split(split)
    if rule is None:
        return recipe
    if recipe.context is not None:
        raise RecipeError(f"{name} chooses what the policy sees by options of its own: leave out --context {rule}")
    return recipe.seeing(context_rule(rule))


def _loaded(name: str, seed: int, dtype: str | None) -> tuple[LocalPolicy, str | None]:
    """Return a policy on this process's device, and its precision: by default bfloat16 where the hardware has it."""
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    dtype = dtype or ("bfloat16" if halves(torch.device(kind)) else None)
    rank = os.environ.get("LOCAL_RANK")  # as a launcher numbers processes
    device = f"cuda:{rank}" if rank is not None and kind == "cuda" else None
    return load_local(name, seed=seed, dtype=dtype, device=device), dtype


def answer_limit(recipe: Recipe, chosen: int | None, *, least: int) -> int:
    """Return the limit of tokens in an answer: as chosen, else the recipe's, else what the task needs, `least`."""
    return chosen or recipe.max_tokens or least
