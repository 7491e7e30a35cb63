"""The error tree. A message says what was wrong, with the value, and what to do about it."""

from __future__ import annotations


class LmgymError(Exception):
    """Anything lmgym raises on purpose; a command prints its message as one line."""


class MissingExtra(LmgymError, ImportError):
    """A task or feature needs packages of an extra that is not installed."""


class InstanceError(LmgymError, ValueError):
    """No such task, split, option or instance, or one that cannot be read."""


class BackendError(LmgymError, RuntimeError):
    """An engine, container, browser or server broke: the episode is void, never scored.

    Several episodes may be lost to one event, such as the death of a browser; then all their errors name it, and it
    counts as one fault.
    """

    def __init__(self, message: str = "", *, event: str = "") -> None:
        super().__init__(message)
        self.event = event


class PolicyError(LmgymError, RuntimeError):
    """A policy cannot be loaded or cannot answer."""


class ReplayError(LmgymError, RuntimeError):
    """Recorded actions played again did not lead to the recorded observations."""


class SubmissionError(LmgymError, ValueError):
    """A leaderboard entry is not what the schema or its own record says."""


class RecipeError(LmgymError, ValueError):
    """A training recipe, its arguments or its checkpoint do not fit together."""
