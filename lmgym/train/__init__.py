"""Training: one loop over a recipe of parts. It starts an engine and never touches an environment.

result = lmgym.train.run("grpo", task="guess_number", steps=20)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmgym.train.api import run as run
    from lmgym.train.recipe import Recipe as Recipe
    from lmgym.train.state import RunResult as RunResult

API = {"run": "lmgym.train.api", "Recipe": "lmgym.train.recipe", "RunResult": "lmgym.train.state"}


def __getattr__(name: str) -> Any:
    """Import a part of the Python API, and torch with it, at its first use."""
    if name in API:
        return getattr(import_module(API[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
