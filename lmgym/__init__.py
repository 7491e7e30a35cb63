"""Gymnasium suite for multi-turn reinforcement learning with language models.

Importing registers every task with Gymnasium; it loads no task's engine, no torch and no browser.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lmgym.api import evaluate as evaluate

__version__ = "0.1.0"

# tasks/, baselines/ and leaderboards/ stand beside this folder in a source tree, and inside it in a wheel.
_root = Path(__file__).resolve().parent.parent
if (_root / "setup.cfg").is_file() and (_root / "tasks").is_dir():
    __path__.append(str(_root))

from lmgym.env.registry import register_all  # noqa: E402  (needs the path above)

register_all()

API = ("evaluate",)  # functions of lmgym/api.py
PACKAGES = ("rollout", "train")


def __getattr__(name: str) -> Any:
    """Import a function or a package of the Python API at its first use."""
    if name in API:
        return getattr(import_module("lmgym.api"), name)
    if name in PACKAGES:
        return import_module(f"lmgym.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
