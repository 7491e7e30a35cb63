"""Actions in a dialogue: words to the other side, or tool calls."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from lmgym.env.actions import Call, parse_function_call, parse_json_call, parse_tag

MOST_CALLS = 20  # in one answer; more of them break it


@dataclass(frozen=True)
class Speech:
    """An action as words and tool calls."""

    words: str
    calls: tuple[Call, ...] = ()
    broken: bool = False  # looks like a call and cannot be read, or holds too many


def parse_speech(action: str, names: Container[str] = ()) -> Speech:
    """Read an action: JSON calls on its last lines or in `<tool_call>`, or `name(key=value)` with a name in `names`.

    Text that only mentions a call further up stays words. More than `MOST_CALLS` calls break the action.
    """
    lines = action.strip().split("\n")
    calls: list[Call] = []
    while lines and len(calls) < MOST_CALLS and (call := _call(lines[-1], names)) is not None:
        calls.append(call)
        lines.pop()
        while lines and not lines[-1].strip():
            lines.pop()
    if len(calls) == MOST_CALLS and lines and _call(lines[-1], names) is not None:
        return Speech(action.strip(), broken=True)
    if calls:
        return Speech("\n".join(lines).strip(), tuple(reversed(calls)))
    tagged = parse_tag(action, "tool_call") is not None or action.rstrip().endswith("```")
    if (tagged or action.lstrip().startswith("{")) and (call := parse_json_call(action)) is not None:
        return Speech("", (call,))
    broken = tagged and "<tool_call>" in action or action.lstrip().startswith(('{"', "{'"))
    return Speech(action.strip(), broken=broken)


def _call(line: str, names: Container[str]) -> Call | None:
    line = line.strip().removeprefix("<tool_call>").removesuffix("</tool_call>").strip()
    if line.startswith("{"):
        return parse_json_call(line)
    call = parse_function_call(line) if line.endswith(")") else None
    return call if call is not None and call.name in names and not call.positional else None
