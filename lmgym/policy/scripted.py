"""Policies without a model: the environment's own players, chance, a person, and any function."""

from __future__ import annotations

import importlib
import inspect
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lmgym.errors import PolicyError
from lmgym.policy.base import Conversation, SimpleSession
from lmgym.policy.endpoints.secrets import Secrets
from lmgym.policy.noise import stream, uniform
from lmgym.types import Completion, Message
from lmgym.visible import visible_lines

# actions of `random` if the environment lists none
WORDS = (*("yes", "no", "look", "help", "north", "south", "east", "west"), *("0", "1", "2", "a", ""))
Answer = Callable[[Conversation], str]


@dataclass(frozen=True)
class Scripted:
    """A policy that answers each conversation by a function, without tokens."""

    name: str
    answer: Answer
    wants: frozenset[str] = frozenset()
    usage: Mapping[str, Any] = field(default_factory=dict)  # stored with every answer
    version: int = 0

    def act(self, conversations: Sequence[Conversation]) -> list[Completion]:
        """Answer each conversation, in order."""
        return [Completion(text=self.answer(conversation), usage=self.usage) for conversation in conversations]

    def count(self, messages: Sequence[Message]) -> int:
        """Return the number of words, as there are no tokens."""
        return sum(len(message.text.split()) for message in messages)

    def session(self) -> SimpleSession:
        """Return a session that answers at once."""
        return SimpleSession(self)


def hinted(name: str) -> Scripted:
    """Return the policy that plays the environment's `oracle` or `demonstrator`."""

    def answer(conversation: Conversation) -> str:
        words = conversation.hints.get(name)
        if words is None:
            raise PolicyError(f"this environment has no {name}; choose another policy (random, tiny, hf:PATH)")
        return str(words)

    return Scripted(name, answer, wants=frozenset({name}))


def random(seed: int = 0) -> Scripted:
    """Return the policy that draws uniformly from the admissible actions, or from common words if none are listed."""

    def answer(conversation: Conversation) -> str:
        choices = list(conversation.hints.get("admissible") or WORDS)
        key = np.array([stream(seed, conversation.noise)], dtype=np.uint64)
        return str(choices[int(uniform(key, np.zeros(1, np.uint64))[0] * len(choices))])

    return Scripted("random", answer, wants=frozenset({"admissible"}))


def human() -> Scripted:
    """Return the policy that asks the person at the terminal."""

    def answer(conversation: Conversation) -> str:
        return input(f"\n{visible_lines(conversation.messages[-1].text)}\n> ")

    return Scripted("human", answer)


def null() -> Scripted:
    """Return the policy that gives empty answers."""
    return Scripted("null", lambda _: "")


def python(target: str) -> Scripted:
    """Return the policy of a function `module:function` from the messages, as dicts of role and content, to the answer.

    Secrets are struck out of its answers, before an environment sees them, and of its errors.
    """
    secrets = Secrets.of_environment()
    function = _imported(target, secrets)

    def answer(conversation: Conversation) -> str:
        messages: list[Mapping[str, Any]] = [{"role": m.role, "content": m.text} for m in conversation.messages]
        with _user_errors(target, secrets):
            words = function(messages)
        if not isinstance(words, str):
            raise PolicyError(f"{target} must return a string; got {type(words).__name__}")
        return secrets.struck(words)

    return Scripted(f"python:{target}", answer, usage={"in": None, "out": None})  # unknown: it may call models


@contextmanager
def _user_errors(target: str, secrets: Secrets) -> Iterator[None]:
    """Raise every error or exit of a user's function as a PolicyError of one line without secrets."""
    try:
        yield
    except (Exception, SystemExit) as error:  # noqa: BLE001  (users' functions may raise anything)
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}, line {last.lineno}"
        words = secrets.struck(f"python:{target} raised {type(error).__name__}: {error} ({where})")
        raise PolicyError(words) from None


def _imported(target: str, secrets: Secrets) -> Callable[[list[Mapping[str, Any]]], Any]:
    module, _, name = target.partition(":")
    try:
        with _user_errors(target, secrets):
            imported = importlib.import_module(module) if module else None
    except PolicyError as error:
        raise PolicyError(f"python:{target} cannot be imported (python:module:function): {error}") from None
    function = getattr(imported, name, None)
    if function is None:
        raise PolicyError(f"python:{target} cannot be imported (python:module:function): {module} has no {name!r}")
    if not callable(function):
        raise PolicyError(f"python:{target} is not a function but {type(function).__name__}")
    try:
        inspect.signature(function).bind([])
    except TypeError as error:
        raise PolicyError(f"python:{target} must take one argument, the list of messages: {error}") from error
    return function  # type: ignore[no-any-return]
