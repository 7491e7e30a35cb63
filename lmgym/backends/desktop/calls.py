"""Action formats of computer use, parsed into inputs; nothing is ever evaluated.

- a JSON call `{"name": "click", "arguments": {"x": 10, "y": 20}}` or a call `click(10, 20)`, the set that prompts show;
- OSWorld's `{"action_type": "CLICK", "parameters": {...}}` and its words WAIT, DONE, FAIL;
- pyautogui code: calls with literal arguments, one per line;
- Anthropic's `{"action": "left_click", "coordinate": [10, 20]}`, bare, as arguments of a tool "computer" or in a block
  `{"type": "tool_use", "name": "computer", "input": {...}}`;
- OpenAI's `{"type": "click", "x": 10, "y": 20, "button": "left"}`, bare, as arguments likewise or in an item
  `{"type": "computer_call", "action": {...}}` or `{"type": "computer_call", "actions": [...]}`.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lmgym.backends.desktop import dialects
from lmgym.backends.desktop.inputs import Input, InvalidAction

ENVELOPES = ("tool_use", "computer_call")  # Anthropic's block and OpenAI's item, in which actions stand
Builder = Callable[..., Sequence[Input]]


def inputs_of_object(value: Mapping[str, Any]) -> list[Input]:
    """Return the inputs of a JSON object in any of the formats; none if it has the form of none."""
    if isinstance(value.get("name"), str) and isinstance(value.get("arguments"), Mapping):
        name, arguments = value["name"], value["arguments"]
        if name in dialects.OWN:
            return inputs_of_call(name, (), arguments)
        if isinstance(arguments.get("action"), str) or isinstance(arguments.get("type"), str):
            return inputs_of_object(arguments)
        raise InvalidAction(f"there is no action {name[:50]!r}; choose {', '.join(dialects.OWN)}")
    if value.get("type") == "tool_use" and isinstance(value.get("input"), Mapping):
        return inputs_of_object(_bare(value["input"]))
    if value.get("type") == "computer_call":
        actions = value.get("actions", [value.get("action")])
        if not isinstance(actions, list) or not all(isinstance(each, Mapping) for each in actions):
            raise InvalidAction("a computer_call has an object `action` or a list `actions` of objects")
        return [each for action in actions for each in inputs_of_object(_bare(action))]
    if isinstance(value.get("action_type"), str):
        parameters = value.get("parameters", {k: v for k, v in value.items() if k != "action_type"})
        return _built(dialects.OSWORLD, value["action_type"], (), parameters if isinstance(parameters, dict) else {})
    if isinstance(value.get("action"), str):
        return _built(dialects.ANTHROPIC, value["action"], (), _without(value, "action"))
    if isinstance(value.get("type"), str):
        return _built(dialects.OPENAI, value["type"], (), _without(value, "type"))
    return []


def inputs_of_call(name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> list[Input]:
    """Return the inputs of a call of the set that prompts show."""
    return _built(dialects.OWN, name, positional, named)


def inputs_of_code(code: str) -> list[Input]:
    """Return the inputs of pyautogui code; none if it is not such code."""
    if "pyautogui." not in code and "time.sleep" not in code:
        return []
    try:
        statements = ast.parse(code).body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise InvalidAction(f"the code cannot be parsed: {str(error)[:100]}") from error
    inputs: list[Input] = []
    for statement in statements:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            continue
        call = statement.value if isinstance(statement, ast.Expr) else None
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            raise InvalidAction("only calls such as pyautogui.click(100, 200) are allowed")
        owner, name = call.func.value, call.func.attr
        if not isinstance(owner, ast.Name) or (owner.id, name == "sleep") not in (("pyautogui", False), ("time", True)):
            raise InvalidAction(f"only functions of pyautogui and time.sleep are allowed; got {name[:50]!r}")
        try:
            positional = [ast.literal_eval(argument) for argument in call.args]
            named = {str(keyword.arg): ast.literal_eval(keyword.value) for keyword in call.keywords}
        except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
            raise InvalidAction(f"arguments of {name} must be literals") from error
        inputs += _built(dialects.PYAUTOGUI, name, positional, named)
    return inputs


def _built(table: Mapping[str, Builder], name: str, positional: Sequence[Any], named: Mapping[str, Any]) -> list[Input]:
    builder = table.get(name)
    if builder is None:
        raise InvalidAction(f"there is no action {name[:50]!r}; choose {', '.join(table)}")
    try:
        bound = inspect.signature(builder).bind(*positional, **named)
    except TypeError as error:
        raise InvalidAction(f"{name}(): {str(error)[:200]}") from error
    try:
        return list(builder(*bound.args, **bound.kwargs))
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidAction(f"{name}(): {str(error)[:200]}") from error
    except LookupError as error:
        raise InvalidAction(f"{name}(): {str(error)[:200]} is missing") from error


def _bare(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an action that stood in an envelope; raise InvalidAction if it is another envelope."""
    if value.get("type") in ENVELOPES or "arguments" in value:
        raise InvalidAction(f"a {' or '.join(ENVELOPES)} holds an action itself")
    return value


def _without(value: Mapping[str, Any], key: str) -> dict[str, Any]:
    return {name: content for name, content in value.items() if name != key}
