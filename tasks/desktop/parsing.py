"""The text of an action, parsed into inputs in any of the formats of computer use."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from lmgym.backends.desktop.calls import ENVELOPES, inputs_of_call, inputs_of_code, inputs_of_object
from lmgym.backends.desktop.inputs import Input, InvalidAction
from lmgym.env.actions import parse_function_call, parse_json_call

LONGEST = 20_000  # characters of an action
WORDS = {"WAIT": "wait", "DONE": "done", "FAIL": "fail"}  # OSWorld's and UI agents' bare words


def parse(action: str) -> list[Input]:
    """Return the inputs of an action in any of the formats; raise InvalidAction if there are none."""
    if len(action) > LONGEST:
        raise InvalidAction(f"the action has {len(action)} characters, over {LONGEST}")
    if (word := action.strip().strip("`").strip()) in WORDS:
        return inputs_of_call(WORDS[word], (), {})
    value = _object(action)
    if (value is None or value.get("type") not in ENVELOPES) and (call := parse_json_call(action)) is not None:
        value = {"name": call.name, "arguments": call.arguments}
    if value is not None and (inputs := inputs_of_object(value)):
        return inputs
    if inputs := inputs_of_code(_code(action)):
        return inputs
    if (call := parse_function_call(action)) is not None:
        return inputs_of_call(call.name, call.positional, call.arguments)
    raise InvalidAction("no action was found; answer with one call, such as click(x=100, y=200)")


def _object(action: str) -> dict[str, Any] | None:
    """Return the first JSON object of the text; None if there is none."""
    start = action.find("{")
    if start < 0:
        return None
    try:
        value, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(action[start:])
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _code(action: str) -> str:
    """Return the last fenced block, or the whole action."""
    before, fence, _ = action.rpartition("```")
    if not fence or "```" not in before:
        return action.strip()
    first, newline, rest = before.rpartition("```")[2].partition("\n")
    return (rest if newline and first.strip().isalpha() else f"{first}\n{rest}").strip()


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
