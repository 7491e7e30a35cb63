"""Policies without a model: players that the environment itself offers, chance, a person, and any function."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, SimpleSession
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.policy.noise import stream, uniform
from lmgym.types import Completion, Message

WORDS = (
    "yes",
    "no",
    "look",
    "help",
    "north",
    "south",
    "east",
    "west",
    "0",
    "1",
    "2",
    "a",
    "",
)  # where nothing is known
Answer = Callable[[Conversation], str]


class Scripted:
    """Answers each conversation with what a function makes of it; there are no tokens."""

    version = 0

    def __init__(
        self, name: str, answer: Answer, *, wants: frozenset[str] = frozenset(), usage: Mapping[str, Any] | None = None
    ) -> None:
        """`usage` is what a call takes: nothing, where nobody says otherwise."""
        self.name = name
        self.wants = wants
        self._usage = dict(usage or {})
        self._answer = answer

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        return [Completion(text=self._answer(conversation), usage=self._usage) for conversation in conversations]

    def count(self, messages: Sequence[Message]) -> int:
        """Words of the messages, as there are no tokens."""
        return sum(len(message.text.split()) for message in messages)

    def session(self) -> SimpleSession:
        """A session that answers at once."""
        return SimpleSession(self)


def hinted(name: str) -> Scripted:
    """The `oracle` or `demonstrator` of the environment."""

    def answer(conversation: Conversation) -> str:
        words = conversation.hints.get(name)
        if words is None:
            raise PolicyError(f"This environment has no {name}: choose another policy (random, tiny, hf:PATH)")
        return str(words)

    return Scripted(name, answer, wants=frozenset({name}))


def random(seed: int = 0) -> Scripted:
    """One of the admissible actions, all equally likely; of a few common words where there are none."""

    def answer(conversation: Conversation) -> str:
        choices = list(conversation.hints.get("admissible") or WORDS)
        key = np.array([stream(seed, conversation.noise)], dtype=np.uint64)
        return str(choices[int(uniform(key, np.zeros(1, np.uint64))[0] * len(choices))])

    return Scripted("random", answer, wants=frozenset({"admissible"}))


def human() -> Scripted:
    """Whoever sits at the terminal."""

    def answer(conversation: Conversation) -> str:
        return input(f"\n{conversation.messages[-1].text}\n> ")

    return Scripted("human", answer)


def null() -> Scripted:
    """The empty answer."""
    return Scripted("null", lambda _: "")


def python(target: str) -> Scripted:
    """`module:function`, which takes the messages as dicts of role and content and returns the answer.

    It may know keys: they are struck out of what it says, before any environment sees it, and of what it raises.
    """
    secrets = Secrets.of_environment()
    function = _imported(target, secrets)

    def answer(conversation: Conversation) -> str:
        messages: list[Mapping[str, Any]] = [{"role": m.role, "content": m.text} for m in conversation.messages]
        with _Named(target, secrets):
            words = function(messages)
        if not isinstance(words, str):
            raise PolicyError(f"{target} must return a string; got {type(words).__name__}")
        return secrets.struck(words)

    return Scripted(f"python:{target}", answer, usage={"in": None, "out": None})  # it may ask whom it likes


class _Named:
    """Makes a PolicyError, one line without secrets, of whatever somebody else's function raises."""

    def __init__(self, target: str, secrets: Secrets) -> None:
        self.target = target
        self.secrets = secrets

    def __enter__(self) -> None:
        """Nothing to open."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave an interruption as it is."""
        if isinstance(error, Exception | SystemExit):
            last = traceback.extract_tb(trace)[-1]
            where = f"{Path(last.filename).name}, line {last.lineno}"
            words = self.secrets.struck(f"python:{self.target} raised {type(error).__name__}: {error} ({where})")
            raise PolicyError(words) from None


def _imported(target: str, secrets: Secrets) -> Callable[[list[Mapping[str, Any]]], Any]:
    module, _, name = target.partition(":")
    try:
        with _Named(target, secrets):
            found = importlib.import_module(module) if module else None
    except PolicyError as error:
        raise PolicyError(f"python:{target} is not to be found (python:module:function): {error}") from None
    function = getattr(found, name, None)
    if function is None:
        raise PolicyError(f"python:{target} is not to be found (python:module:function): {module} has no {name!r}")
    if not callable(function):
        raise PolicyError(f"python:{target} is no function but {type(function).__name__}")
    try:
        inspect.signature(function).bind([])
    except TypeError as error:
        raise PolicyError(f"python:{target} must take the list of messages alone: {error}") from error
    return function  # type: ignore[no-any-return]
