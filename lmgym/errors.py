"""The error tree. Messages say what was wrong, with the value, and what to do."""

from __future__ import annotations


class LmgymError(Exception):
    """Base of all errors that lmgym raises; a command prints the message as one line."""


class MissingExtra(LmgymError, ImportError):
    """A task or feature needs packages of an extra that is not installed."""


class InstanceError(LmgymError, ValueError):
    """An unknown or unreadable task, split, option or instance."""


class BackendError(LmgymError, RuntimeError):
    """A broken engine, container, browser or server: the episode is void, never scored.

    If several episodes are lost to one event, such as the death of a browser, their errors share its name in `event`
    and count as one fault.
    """

    def __init__(self, message: str = "", *, event: str = "") -> None:
        super().__init__(message)
        self.event = event


class PolicyError(LmgymError, RuntimeError):
    """A policy cannot be loaded or cannot answer."""


class ReplayError(LmgymError, RuntimeError):
    """Recorded actions played again did not lead to the recorded observations."""


class SubmissionError(LmgymError, ValueError):
    """A leaderboard entry contradicts the schema or its own record."""


class RecipeError(LmgymError, ValueError):
    """A training recipe, its arguments or its checkpoint do not match."""
