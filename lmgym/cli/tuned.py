"""`baselines/tuned.toml`: what a baseline takes on a task in place of its own defaults."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from lmgym.env.spec import TaskSpec

PLAIN = "tiny"  # the model where none is named


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


def tuned(algorithm: str, spec: TaskSpec, model: str | None) -> Tuned:
    """Return what holds for an algorithm on a task; what was tuned for another model than `model` does not."""
    found = table().get(spec.id.removeprefix("lmgym/"), {}).get(algorithm, Tuned())
    return found if model in (None, found.model) else Tuned(model or PLAIN)
