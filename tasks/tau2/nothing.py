"""The player that does nothing, politely: the floor of a domain, `--model python:lmgym.tasks.tau2.nothing:decline`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

WORDS = "I am sorry, I cannot help with that. Is there anything else?"


def decline(messages: Sequence[Any]) -> str:
    """Decline whatever the user wants."""
    return WORDS
