"""Episodes for the tests of tasks."""

from __future__ import annotations

from typing import Any

from lmgym.env.registry import build
from lmgym.env.spec import TaskSpec


def opened(task: str | TaskSpec, index: int = 0, **options: Any) -> Any:
    """Return an environment in which an episode was opened with seed 0."""
    env = build(task, **options)
    env.reset(seed=0, options={"index": index})
    return env
