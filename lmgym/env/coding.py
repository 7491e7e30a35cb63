"""Text protocols of coding agents: mini-swe-agent's bash, JSON tool calls, and R2E-Gym's function calls."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmgym.env.actions import parse_json_call

FENCE = re.compile(r"```mswea_bash_command\s*\n(.*?)\n?```", re.S)
FUNCTION = re.compile(r"<function=([\w-]+)>(.*?)</function>", re.S)
PARAMETER = re.compile(r"<parameter=([\w-]+)>(.*?)</parameter>", re.S)


@dataclass(frozen=True)
class AgentStep:
    """An action of a policy: a command, an edit, or the end."""

    kind: str  # "run", "view", "edit", "search", "submit" or "error"
    arguments: Mapping[str, str]


def parse_bash(action: str) -> AgentStep:
    """Return the command of exactly one fenced block."""
    blocks = FENCE.findall(action)
    if len(blocks) != 1:
        return AgentStep("error", {"message": f"Expected one ```mswea_bash_command block, found {len(blocks)}."})
    return AgentStep("run", {"command": blocks[0]})


NAMES = {"bash": "run", "run": "run", "view": "view", "edit": "edit", "search": "search", "submit": "submit"}
NEEDED = {"run": ("command",), "view": ("path",), "edit": ("path", "old", "new"), "search": ("pattern",), "submit": ()}


def parse_tools(action: str) -> AgentStep:
    """Return the step of a JSON tool call."""
    call = parse_json_call(action)
    if call is None:
        return AgentStep("error", {"message": 'Answer with one JSON call {"name": ..., "arguments": {...}}.'})
    return _checked(NAMES.get(call.name, call.name), call.arguments)


def parse_r2e(action: str) -> AgentStep:
    """Return the step of one `<function=NAME><parameter=KEY>VALUE</parameter></function>` call."""
    calls = FUNCTION.findall(action)
    if len(calls) != 1:
        return AgentStep("error", {"message": f"Expected exactly one <function=...> call, found {len(calls)}."})
    name, body = calls[0]
    values = {key: value.strip("\n") for key, value in PARAMETER.findall(body)}
    if name in ("execute_bash", "bash"):
        return _checked("run", {"command": values.get("command", values.get("cmd"))})
    if name in ("finish", "submit"):
        return AgentStep("submit", {})
    if name == "search":
        return _checked("search", {"pattern": values.get("search_term"), "path": values.get("path", ".")})
    if name == "file_editor":
        command = values.get("command", "")
        if command == "view":
            return _checked("view", {"path": values.get("path")})
        if command == "str_replace":
            names = {"path": "path", "old": "old_str", "new": "new_str"}
            return _checked("edit", {key: values.get(source) for key, source in names.items()})
        return AgentStep("error", {"message": f"file_editor takes view or str_replace, not {command!r}."})
    return AgentStep("error", {"message": f"No function {name!r}: use file_editor, execute_bash, search or finish."})


def _checked(kind: str, arguments: Mapping[str, Any]) -> AgentStep:
    if kind not in NEEDED:
        return AgentStep("error", {"message": f"Unknown tool {kind!r}: use view, edit, search, run or submit."})
    for name in NEEDED[kind]:
        if not isinstance(arguments.get(name), str):
            return AgentStep("error", {"message": f"{kind} needs the text argument {name!r}."})
    return AgentStep(kind, {name: value for name, value in arguments.items() if isinstance(value, str)})


PARSERS = {"bash": parse_bash, "tools": parse_tools, "r2e": parse_r2e}


def schemas() -> list[dict[str, Any]]:
    """Return the JSON schemas of the tools."""
    texts = {
        "view": "Show a file with line numbers.",
        "edit": "Replace the only occurrence of `old` in a file by `new`.",
        "search": "Search files for a regular expression.",
        "run": "Run a bash command in a fresh shell.",
        "submit": "Submit the changes and end.",
    }
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": text,
                "parameters": {
                    "type": "object",
                    "properties": {argument: {"type": "string"} for argument in NEEDED[name]},
                    "required": list(NEEDED[name]),
                },
            },
        }
        for name, text in texts.items()
    ]


def call(protocol: str, step: AgentStep) -> str:
    """Return a step in a protocol's words; "bash" has commands only."""
    if protocol == "bash":
        return f"```mswea_bash_command\n{step.arguments['command']}\n```"
    if protocol == "tools":
        return json.dumps({"name": step.kind, "arguments": dict(step.arguments)})
    name = "finish" if step.kind == "submit" else "execute_bash"
    parameters = "".join(f"<parameter={key}>{value}</parameter>" for key, value in step.arguments.items())
    return f"<function={name}>{parameters}</function>"
