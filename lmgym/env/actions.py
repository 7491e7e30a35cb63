"""Parsers for actions in a policy's text: a tag, a number, a JSON call, a function call, a command.

They accept any string, return None (a command "") if there is no action, never raise and take linear time.
"""

from __future__ import annotations

import ast
import json
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lmgym.env.spaces import clean

NUMBER = re.compile(r"(?<![\w.])[-+]?\d{1,18}(?:\.\d{1,18})?(?![\w.]*\w)")
PREFIX = re.compile(r"(?:action\s{0,3}:|>)\s*", re.IGNORECASE)
ESCAPE = re.compile(r"\\(.)", re.DOTALL)
BRACKETS = re.compile(r"\[([^\[\]]{0,100})\]")
LATEST = 10_000  # characters, from the end, in which brackets are looked for
LONGEST = 100_000  # characters of a function call: Python's parser needs much memory for each
LARGEST = 1e300  # number in an argument; Python refuses to print much larger ones
DEEPEST = 50  # levels of lists and objects in an argument

# Python's parser warns about some actions, such as "click(1or 2)"; their text is a policy's, not the user's code
warnings.filterwarnings("ignore", category=SyntaxWarning, module="<unknown>")


@dataclass(frozen=True)
class Call:
    """A tool call; all argument values have a JSON form."""

    name: str
    arguments: Mapping[str, Any]
    positional: tuple[Any, ...] = ()  # of a function call only


def parse_tag(action: str, tag: str) -> str | None:
    """Return the stripped content of the last closed `<tag>`; None if there is none."""
    before, closing, _ = action.rpartition(f"</{tag}>")
    start = before.rfind(f"<{tag}>")
    if not closing or start < 0:
        return None
    return before[start + len(tag) + 2 :].partition(f"</{tag}>")[0].strip()


def parse_number(action: str, *, tag: str | None = None) -> float | None:
    """Return the only number in `action`, or within its `tag`; None for none or several."""
    text = action if tag is None else parse_tag(action, tag)
    if text and text.isdecimal() and len(text) <= 18:  # fast path for a bare number
        return float(text)
    numbers = NUMBER.findall(text or "")
    return float(numbers[0]) if len(numbers) == 1 else None


def parse_command(action: str) -> str:
    """Return the last non-blank line without a leading "action:" or ">", with single spaces."""
    stripped = action.rstrip()
    line = " ".join((stripped.splitlines() or [""])[-1].split())
    prefix = PREFIX.match(line)
    return line[prefix.end() :] if prefix else line


def parse_choice(action: str) -> str:
    """Return an answer's choice in lower case, as `parse_answer` finds it."""
    return parse_answer(action).lower()


def parse_answer(action: str) -> str:
    """Return an answer: in `<answer>`, in its only [brackets], or the last line."""
    if "<" not in action and "[" not in action:
        return parse_command(action)
    text = parse_tag(action, "answer")
    if text is None:
        choices = set(BRACKETS.findall(action[-LATEST:]))
        text = parse_command(action) if not choices else choices.pop() if len(choices) == 1 else ""
    return text.strip().removeprefix("<").removesuffix(">").strip()


def parse_json_call(action: str) -> Call | None:
    """Return the call `{"name": ..., "arguments": {...}}`, bare, fenced or in `<tool_call>`; prose may surround it."""
    for text in _inside(action, "tool_call"):
        for start in dict.fromkeys((text.find("{"), text.rfind("\n{") + 1)):
            call = _json_call(text[start:]) if text.startswith("{", start) else None
            if call is not None:
                return call
    return None


def parse_json_calls(action: str) -> list[Call]:
    """Return the calls of an action in order: those of its `<tool_call>` tags, else those of its last lines.

    Tasks whose spec has `parallel_calls` execute all of them; a single call may have any form of `parse_json_call`.
    """
    tagged = [text.partition("</tool_call>") for text in action.split("<tool_call>")[1:]]
    texts = [text for text, closing, _ in tagged if closing]
    if not texts:
        lines = [line.strip() for line in action.splitlines() if line.strip() and not line.startswith("```")]
        first = next((n for n in range(len(lines), 0, -1) if not lines[n - 1].startswith("{")), 0)
        texts = lines[first:]
    calls = [call for text in texts if (call := _json_call(text.strip())) is not None]
    if calls and len(calls) == len(texts):
        return calls
    single = parse_json_call(action)
    return [] if single is None else [single]


def parse_function_call(action: str) -> Call | None:
    """Return the call `name("literal", key=2)`, bare, fenced or on the last line; only literals are arguments."""
    for text in (*_inside(action, "action"), action.strip().rpartition("\n")[2]):
        call = _function_call(text.strip()) if len(text) <= LONGEST else None
        if call is not None:
            return call
    return None


def _inside(action: str, tag: str) -> Iterator[str]:
    """Yield the texts that may hold a call: the tag, the last fence, the whole action."""
    if (tagged := parse_tag(action, tag)) is not None:
        yield tagged
    before, closing, _ = action.rpartition("```")
    if closing and (start := before.rfind("```")) >= 0:
        first, newline, rest = before[start + 3 :].partition("\n")
        yield rest if newline and first.strip().isalpha() else f"{first}{newline}{rest}"
    yield action.strip()


def _json_call(text: str) -> Call | None:
    try:
        value, _ = json.JSONDecoder(parse_constant=_refuse).raw_decode(text)
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            return None
        arguments = value.get("arguments", {})
        if isinstance(arguments, str):  # the format of endpoints
            arguments = json.loads(arguments, parse_constant=_refuse)
        if not isinstance(arguments, dict):
            return None
        return Call(clean(value["name"]), _plain(arguments))
    except (ValueError, RecursionError, MemoryError):
        return None


def _function_call(text: str) -> Call | None:
    if not text.endswith(")") or not text.partition("(")[0].strip().isidentifier():
        return None
    try:
        call = ast.parse(ESCAPE.sub(_known_escape, text), mode="eval").body
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            return None
        positional = tuple(_plain(ast.literal_eval(argument)) for argument in call.args)
        named = {_plain(keyword.arg): _plain(ast.literal_eval(keyword.value)) for keyword in call.keywords}
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return None
    return Call(call.func.id, named, positional) if None not in named else None


def _known_escape(match: re.Match[str]) -> str:
    """Keep the escapes of all Python versions; any other backslash is literal."""
    return match[0] if match[1] in "\n\\'\"abfnrtvxuU" else f"\\{match[0]}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _plain(value: Any, depth: int = DEEPEST) -> Any:
    """Return `value` as JSON without lone surrogates. Raises ValueError for sets, bytes, infinities and the like."""
    if depth < 0:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return clean(value)
    if value is None or (isinstance(value, int | float) and -LARGEST < value < LARGEST):
        return value
    if isinstance(value, list | tuple):
        return [_plain(item, depth - 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {clean(key): _plain(item, depth - 1) for key, item in value.items()}
    raise ValueError(f"{type(value).__name__} has no JSON form")
