"""Presets: values of a baseline's options for single tasks, from `baselines/tuned.toml`."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError

PLAIN = "tiny"  # the default model


@dataclass(frozen=True)
class Tuned:
    """A model, and the fields of a baseline's Args that go with it."""

    model: str = PLAIN
    args: dict[str, Any] = field(default_factory=dict)


@cache
def table() -> dict[str, dict[str, Tuned]]:
    """Return all of the file, by the task's id (without `lmgym/`) and by algorithm."""
    text = files("lmgym.baselines").joinpath("tuned.toml").read_text(encoding="utf-8")
    return {
        task: {
            algorithm: Tuned(args.get("model", PLAIN), {name: args[name] for name in args if name != "model"})
            for algorithm, args in algorithms.items()
        }
        for task, algorithms in tomllib.loads(text).items()
    }


def tuned(algorithm: str, task: str, model: str | None) -> Tuned:
    """Return the preset of an algorithm on a task, by its id; one for another model than `model` does not apply."""
    preset = table().get(task.removeprefix("lmgym/"), {}).get(algorithm, Tuned())
    return preset if model in (None, preset.model) else Tuned(model or PLAIN)


def time_limits(args: type[Any], minutes: float) -> dict[str, float]:
    """Return values of the fields of `args` that limit a run to `minutes`; a tenth is for evaluations.

    Imitation gets 40 % of the rest: in 15 minutes enough for that of the main job on two slow cores. Empty if learning
    has no time limit.
    """
    if minutes <= 0:
        raise RecipeError(f"--minutes must be above 0; got {minutes:g}")
    names = {each.name for each in fields(args)}
    if "seconds" not in names:
        return {}
    if "warmup_seconds" not in names:
        return {"seconds": 54.0 * minutes}
    return {"warmup_seconds": round(21.6 * minutes, 1), "seconds": round(32.4 * minutes, 1)}


def run_folder(algorithm: str, task: str, model: str, seed: int) -> Path:
    """Return the default folder of a run."""
    name = re.sub("[:?=&]", "-", model.rstrip("/").rpartition("/")[2])
    return Path("runs") / f"{Path(algorithm).stem}-{task}-{name}-{seed}"
