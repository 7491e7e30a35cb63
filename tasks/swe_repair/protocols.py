"""Text protocols of coding agents: mini-swe-agent's bash, JSON tool calls, and R2E-Gym's function calls."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lmgym.backends.sandbox import Result, Sandbox
from lmgym.env.actions import parse_json_call

FENCE = re.compile(r"```mswea_bash_command\s*\n(.*?)\n?```", re.S)
SUBMIT = "COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
LONGEST, HALF = 10_000, 5_000  # characters of an output, and of its head and tail where it is longer
FUNCTION = re.compile(r"<function=([\w-]+)>(.*?)</function>", re.S)
PARAMETER = re.compile(r"<parameter=([\w-]+)>(.*?)</parameter>", re.S)
SECONDS = re.compile(r"\bin \d+\.\d+s\b")  # pytest's measured time, the one part of an output that always differs
PAGE = 200  # lines of a view


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


def perform(sandbox: Sandbox, step: AgentStep) -> tuple[bool, str, Result | None]:
    """Do a step other than the end; return whether it was valid, the observation, and a command's result."""
    arguments = step.arguments
    if step.kind == "error":
        return False, arguments["message"], None
    if step.kind == "run":
        result = sandbox.run(arguments["command"])
        return True, rendered(result), result
    if step.kind == "search":
        words = ["grep", "-rnE", "--exclude-dir=.git", "-e", arguments["pattern"], "--", arguments.get("path", ".")]
        result = sandbox.run(shlex.join(words))
        return result.code < 2, shortened(result.text) or "No match.", result
    try:
        text = sandbox.read(arguments["path"]).decode("utf-8", "replace")
    except (OSError, ValueError) as error:
        return False, f"{arguments['path'][:200]}: {getattr(error, 'strerror', None) or error}", None
    if step.kind == "view":
        lines = [f"{number:5d}  {line}" for number, line in enumerate(text.splitlines(), start=1)]
        return True, shortened("\n".join(lines)), None
    if (count := text.count(arguments["old"]) if arguments["old"] else 0) != 1:
        return False, f"`old` occurs {count} times in {arguments['path'][:200]}; it must occur once.", None
    try:
        sandbox.write(arguments["path"], text.replace(arguments["old"], arguments["new"]).encode("utf-8", "replace"))
    except OSError as error:
        return False, f"{arguments['path'][:200]}: {error.strerror or error}", None
    return True, "Edited.", None


def rendered(result: Result) -> str:
    """Return a command's result as mini-swe-agent shows it."""
    text = SECONDS.sub("in 0.00s", result.text)
    if result.timed_out:
        reason = "<exception>\nThe command was stopped after its time limit.\n</exception>"
        return f"<returncode>-1</returncode>\n{reason}\n{_output(text)}"
    return f"<returncode>{result.code}</returncode>\n{_output(text)}"


def _output(text: str) -> str:
    if len(text) < LONGEST:
        return f"<output>\n{text}</output>"
    elided = len(text) - 2 * HALF
    return (
        "<warning>The output was too long.</warning>\n"
        f"<output_head>\n{text[:HALF]}</output_head>\n<elided_chars>{elided} characters elided</elided_chars>\n"
        f"<output_tail>\n{text[-HALF:]}</output_tail>"
    )


def shortened(text: str) -> str:
    """Return a text, or its head and tail if it is too long."""
    return text if len(text) < LONGEST else f"{text[:HALF]}\n[{len(text) - 2 * HALF} characters elided]\n{text[-HALF:]}"


def submitted(result: Result) -> str | None:
    """Return what a command submits: its output behind the line that says so; None if it does not submit."""
    first, _, rest = result.text.lstrip().partition("\n")
    return rest if result.code == 0 and first.strip() == SUBMIT else None


def call(protocol: str, step: AgentStep) -> str:
    """Return a step in a protocol's words; "bash" has commands only."""
    if protocol == "bash":
        return f"```mswea_bash_command\n{step.arguments['command']}\n```"
    if protocol == "tools":
        return json.dumps({"name": step.kind, "arguments": dict(step.arguments)})
    name = "finish" if step.kind == "submit" else "execute_bash"
    parameters = "".join(f"<parameter={key}>{value}</parameter>" for key, value in step.arguments.items())
    return f"<function={name}>{parameters}</function>"
