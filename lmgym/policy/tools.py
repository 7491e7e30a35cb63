"""Tool calls and thinking in answers, and the schemas of tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.policy.base import functions

OPEN, CLOSE = "<think>", "</think>"


def split_thinking(text: str, *, opened: bool = False) -> tuple[str, str]:
    """Split an answer into its thinking, a leading `<think>` block, and its words.

    With `opened`, the prompt ended in `<think>`. A block that is not closed was cut off: all of it is thinking.
    """
    opened = opened or text.lstrip().startswith(OPEN)
    before, closing, after = text.partition(CLOSE)
    if not closing:
        return (text.lstrip().removeprefix(OPEN).strip(), "") if opened else ("", text)
    if not opened and OPEN in before:
        return "", text  # a block in the middle belongs to the words
    return before.lstrip().removeprefix(OPEN).strip(), after.lstrip()


def action_of_call(content: str, name: str, arguments: Any) -> str:
    """Return the action of a native tool call: its words, and its JSON on the last line.

    Arguments that are not a JSON object stay as text, so that the environment can answer the mistake.
    """
    if isinstance(arguments, str):
        try:
            parsed = json.loads(arguments or "{}")
        except (ValueError, RecursionError):
            parsed = arguments
        arguments = parsed if isinstance(parsed, dict) else arguments
    call = json.dumps({"name": name, "arguments": {} if arguments is None else arguments}, ensure_ascii=False)
    return f"{content.strip()}\n{call}" if content.strip() else call


def calls_of_action(action: str) -> tuple[str, list[tuple[str, Mapping[str, Any]]]]:
    """Return the words of an action and the calls of its last lines, each written by `action_of_call`."""
    calls: list[tuple[str, Mapping[str, Any]]] = []
    words = action
    while (call := call_of_action(words)) is not None:
        words, name, arguments = call
        calls.insert(0, (name, arguments))
    return words, calls


def call_of_action(action: str) -> tuple[str, str, Mapping[str, Any]] | None:
    """Return words, name and arguments of an action written by `action_of_call`; None for any other action."""
    words, _, line = action.rpartition("\n")
    if not line.startswith('{"name": '):
        return None
    try:
        call = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if set(call) != {"name", "arguments"} or not isinstance(call["arguments"], dict):
        return None
    return words, str(call["name"]), call["arguments"]


def wrapped(tools: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return schemas as endpoints and chat templates take them."""
    return [{"type": "function", "function": schema} for schema in functions(tools)]
