"""A user that plays back a recorded dialogue, in the layout of tau2-bench's results, and notes where it was left."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lmgym.backends.user.endings import OUT_OF_SCOPE
from lmgym.errors import InstanceError


def recorded_dialogues(path: str) -> dict[str, list[Mapping[str, Any]]]:
    """Return the messages of each task's first simulation in a results file of tau2-bench."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
        dialogues: dict[str, list[Mapping[str, Any]]] = {}
        for simulation in content["simulations"]:
            dialogues.setdefault(str(simulation["task_id"]), list(simulation["messages"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InstanceError(f"{path} is no results file of tau2-bench: {type(error).__name__}: {error}") from error
    return dialogues


class RecordedUser:
    """The user of one recorded dialogue."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        self.turns: list[tuple[str, str]] = []  # agent's words before, user's action
        agent_words = ""
        for message in messages:
            if message["role"] == "assistant" and not message.get("tool_calls"):
                agent_words = message.get("content") or ""
            elif message["role"] == "user":
                self.turns.append((agent_words, _action(message)))
                agent_words = ""
        self.position = 0
        self.left_at: int | None = None  # the user's turn, counted from 0, before which the agent said something else
        self.exhausted = False

    def reply(self, words: str) -> str:
        """Return the next recorded action; a record that is at its end leaves the dialogue."""
        if self.position >= len(self.turns):
            self.exhausted = True
            self.left_at = self.position if self.left_at is None else self.left_at
            return OUT_OF_SCOPE
        expected, action = self.turns[self.position]
        if self.left_at is None and " ".join(words.split()) != " ".join(expected.split()):
            self.left_at = self.position
        self.position += 1
        return action

    def figures(self) -> dict[str, float]:
        """Return whether the dialogue left the record, and after how many of the user's turns."""
        turns = self.position if self.left_at is None else self.left_at
        return {"left_record": float(self.left_at is not None), "turns_on_record": float(turns)}


def _action(message: Mapping[str, Any]) -> str:
    calls = message.get("tool_calls") or ()
    lines = [json.dumps({"name": call["name"], "arguments": call.get("arguments") or {}}) for call in calls]
    return "\n".join(lines) if lines else str(message.get("content") or "")
