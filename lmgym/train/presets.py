"""Presets: values of a baseline's options for small models and for single tasks, from `baselines/tuned.toml`."""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field, fields
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from lmgym.errors import RecipeError

PLAIN = "tiny"  # the default model
SMALL = "small"  # the presets of models that are made here, on any task


@dataclass(frozen=True)
class Tuned:
    """A model, and the fields of a baseline's Args that go with it."""

    model: str = PLAIN
    args: dict[str, Any] = field(default_factory=dict)


@cache
def table() -> dict[str, dict[str, Tuned]]:
    """Return all of the file, by the task's id (without `lmgym/`), or `SMALL`, and by algorithm.

    Small models of all algorithms but bc begin with the imitation `[small.warmup]`.
    """
    tables = tomllib.loads(files("lmgym.baselines").joinpath("tuned.toml").read_text(encoding="utf-8"))
    warmup = tables[SMALL].pop("warmup")
    tables[SMALL] = {name: args if name == "bc" else warmup | args for name, args in tables[SMALL].items()}
    return {
        task: {
            algorithm: Tuned(args.get("model", PLAIN), {name: args[name] for name in args if name != "model"})
            for algorithm, args in algorithms.items()
        }
        for task, algorithms in tables.items()
    }


def tuned(algorithm: str, task: str, model: str | None, *, own: bool = True) -> Tuned:
    """Return the preset of an algorithm for a model and, if `own`, for the task with this id.

    The task's own one holds for the model that it names alone, and goes before that of small models.
    """
    preset = table().get(task.removeprefix("lmgym/"), {}).get(algorithm) if own else None
    if preset is None or model not in (None, preset.model):
        preset = Tuned(model or PLAIN)
    small = table()[SMALL].get(algorithm)
    return Tuned(preset.model, small.args | preset.args) if small and is_small(preset.model) else preset


def is_small(model: str) -> bool:
    """Return True for `tiny` models, and for what training runs made of them."""
    seen: set[str] = set()  # a folder that was made anew may begin with what was made of it
    while model.startswith("hf:"):
        record = Path(model.removeprefix("hf:")).parent / "run.json"
        if model in seen or not record.is_file():
            return False
        seen.add(model)
        model = json.loads(record.read_text(encoding="utf-8"))["arguments"].get("policy", "")
    return re.match(r"tiny(-vl)?([:?]|$)", model) is not None


def time_limits(args: type[Any], minutes: float) -> dict[str, float]:
    """Return values of the fields of `args` that limit a run to `minutes`; a tenth is for evaluations before and after.

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
