"""Gymnasium suite for multi-turn reinforcement learning with language models.

Importing registers every task with Gymnasium; it loads no task's engine, no torch and no browser.
"""

from pathlib import Path

__version__ = "0.1.0"

# tasks/, baselines/ and leaderboards/ stand beside this folder in a source tree, and inside it in a wheel.
_root = Path(__file__).resolve().parent.parent
if (_root / "setup.cfg").is_file() and (_root / "tasks").is_dir():
    __path__.append(str(_root))

from lmgym.env.registry import register_all  # noqa: E402  (needs the path above)

register_all()
