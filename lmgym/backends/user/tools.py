"""Tools of a dialogue: methods with annotated parameters, their JSON schemas and checked calls."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints, is_typeddict

MARK = "_is_tool"
PLAIN = {str: "string", int: "integer", float: "number", bool: "boolean"}
Method = TypeVar("Method", bound=Callable[..., Any])


class ToolError(ValueError):
    """A call that a tool refuses; the message goes back to the caller and nothing has changed."""


@dataclass(frozen=True)
class Tool:
    """A method that a model may call."""

    name: str
    function: Callable[..., Any]
    schema: Mapping[str, Any]  # name, description, parameters

    def __call__(self, arguments: Mapping[str, Any]) -> Any:
        """Check the arguments and call. Raises ToolError for arguments that do not fit the schema."""
        if problem := misfit(arguments, self.schema["parameters"], ""):
            raise ToolError(f"{self.name}: {problem}")
        return self.function(**arguments)


def tool(method: Method) -> Method:
    """Mark a method as a tool: its docstring is the description, `Annotated` texts describe the parameters."""
    setattr(method, MARK, True)
    return method


def tools_of(owner: Any) -> dict[str, Tool]:
    """Return the marked methods of an object by name, in the order in which its classes define them."""
    names = dict.fromkeys(name for base in reversed(type(owner).__mro__) for name in vars(base))
    methods = {name: getattr(owner, name) for name in names if getattr(getattr(type(owner), name), MARK, False)}
    return {name: Tool(name, method, _schema(name, type(owner))) for name, method in methods.items()}


def call_tool(tools: Mapping[str, Tool], name: str, arguments: Mapping[str, Any]) -> Any:
    """Call a tool by name. Raises ToolError for an unknown name, arguments that do not fit, or a refusal."""
    if name not in tools:
        raise ToolError(f"no tool {name[:80]!r}; the tools are {', '.join(tools)}")
    return tools[name](arguments)


def as_text(result: Any) -> str:
    """Return a tool's result as the caller reads it: text as it is, everything else as JSON."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def misfit(value: Any, schema: Mapping[str, Any], path: str) -> str | None:
    """Return why `value` does not fit a JSON schema of the kinds that `_of` makes; None if it does."""
    name = path or "arguments"
    if options := schema.get("anyOf"):
        problems = [misfit(value, option, path) for option in options]
        return None if None in problems else problems[0]
    if "enum" in schema:
        choices = ", ".join(map(str, schema["enum"]))
        return None if value in schema["enum"] else f"{name} must be one of {choices}; got {_short(value)}"
    kind = schema.get("type")
    if kind is not None and not _is(value, kind):
        return f"{name} must be of type {kind}; got {_short(value)}"
    if kind == "array":
        each = (misfit(item, schema["items"], f"{name}[{number}]") for number, item in enumerate(value))
        return next((problem for problem in each if problem), None)
    if kind == "object" and "properties" in schema:
        return _object_misfit(value, schema, path)
    return None


def _object_misfit(value: Mapping[str, Any], schema: Mapping[str, Any], path: str) -> str | None:
    where = f" of {path}" if path else ""
    properties = schema["properties"]
    if missing := [name for name in schema["required"] if name not in value]:
        return f"argument {missing[0]!r}{where} is missing"
    if not path and (extra := [name for name in value if name not in properties]):  # inner objects may have more
        return f"unknown argument {extra[0][:80]!r}; the arguments are {', '.join(properties) or 'none'}"
    each = (
        misfit(value[name], properties[name], f"{path}.{name}" if path else name)
        for name in properties
        if name in value
    )
    return next((problem for problem in each if problem), None)


def _is(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    types: dict[str, Any] = {"string": str, "integer": int, "number": (int, float), "array": list, "object": dict}
    return isinstance(value, types.get(kind, NoneType))


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _schema(name: str, owner: type[Any]) -> dict[str, Any]:
    """Return the schema of a method of a class."""
    method = getattr(owner, name)
    hints = get_type_hints(method, include_extras=True)
    parameters = [each for each in inspect.signature(method).parameters.values() if each.name != "self"]
    return {
        "name": name,
        "description": " ".join((inspect.getdoc(method) or "").split()),
        "parameters": {
            "type": "object",
            "properties": {each.name: _of(hints[each.name]) for each in parameters},
            "required": [each.name for each in parameters if each.default is each.empty],
        },
    }


def _of(hint: Any) -> dict[str, Any]:
    """Return the JSON schema of a type."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return {**_of(inner[0]), "description": inner[1]}
    if origin is Literal:
        return {"type": "string", "enum": list(inner)}
    if origin in (Union, UnionType):
        return {"anyOf": [_of(each) for each in inner]}
    if origin is list:
        return {"type": "array", "items": _of(inner[0])}
    if hint is NoneType:
        return {"type": "null"}
    if is_typeddict(hint):
        fields = get_type_hints(hint, include_extras=True)
        required = [name for name in fields if name in hint.__required_keys__]
        return {
            "type": "object",
            "properties": {name: _of(each) for name, each in fields.items()},
            "required": required,
        }
    return {"type": PLAIN[hint]} if hint in PLAIN else {"type": "object"} if hint is dict or origin is dict else {}
