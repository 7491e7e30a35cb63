"""Options of commands: `--option name=value`, fields of dataclasses as options, and the fields of a baseline's Args."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from lmgym.errors import InstanceError, RecipeError

T = TypeVar("T")


def literal(text: str) -> Any:
    """Return the Python literal that `text` is, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def json_or_literal(text: str) -> Any:
    """Return the JSON value that `text` is, else the Python literal, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return literal(text)


def pairs(words: Sequence[str] | None, option: str) -> dict[str, str]:
    """Split words such as `name=value`; `option` is named in the RecipeError for any other word."""
    values = {}
    for word in words or ():
        name, equals, value = word.partition("=")
        if not equals or not name:
            raise RecipeError(f"{option} takes NAME=VALUE; got {word!r}")
        values[name] = value
    return values


def task_options(words: Sequence[str] | None) -> dict[str, Any]:
    """Turn `["receptacles=6", "source=official"]` into options of a task."""
    options = {name.strip(): json_or_literal(value) for name, value in pairs(words, "--option").items()}
    if "token" in options:
        raise InstanceError("a token on the command line would be recorded: set LMGYM_REMOTE_TOKEN instead")
    return options


def between(text: str, content: str, first: str, last: str) -> str:
    """Return `text` with the content between the markers `first` and `last` replaced."""
    head, start, rest = text.partition(first)
    _, end, tail = rest.partition(last)
    if not start or not end:
        raise RecipeError(f"no markers {first} ... {last} to write between")
    return f"{head}{first}\n{content}\n{last}{tail}"


def with_options(
    kind: type[T], **parsers: Callable[[Any], Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a command whose first parameter is a dataclass into one with an option for each of its annotated fields.

    The fields carry their typer metadata in `Annotated`; other fields keep their defaults. A field of a Mapping type is
    read as a list of words; `parsers` turn what typer gives for a field into its value.
    """
    hints = typing.get_type_hints(kind, include_extras=True)
    fields = [each for each in dataclasses.fields(kind) if typing.get_origin(hints[each.name]) is Annotated]  # type: ignore[arg-type]  # a dataclass

    def parameter(field: dataclasses.Field[Any]) -> inspect.Parameter:
        annotation, default = hints[field.name], field.default
        if typing.get_origin(annotation.__origin__) is Mapping:
            annotation, default = Annotated[list[str] | None, *annotation.__metadata__], None
        default = inspect.Parameter.empty if default is dataclasses.MISSING else default
        return inspect.Parameter(field.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        def run(**values: Any) -> None:
            given = {field.name: values.pop(field.name) for field in fields}
            parsed = {name: parsers.get(name, lambda value: value)(value) for name, value in given.items()}
            command(kind(**parsed), **values)

        own = list(inspect.signature(command, eval_str=True).parameters.values())[1:]
        parameters = [*own, *map(parameter, fields)]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        run.__name__, run.__doc__ = command.__name__, command.__doc__
        return run

    return decorate


def read_args(kind: type[Any], words: Sequence[str], base: Mapping[str, Any] | None = None) -> Any:
    """Make the dataclass `kind` from words such as `["--group", "8", "--no-std"]` over the values in `base`.

    Raises RecipeError for a word that names no field, or a value of another type.
    """
    fields = {field.name.replace("_", "-"): field for field in dataclasses.fields(kind)}
    types_of = typing.get_type_hints(kind)
    values: dict[str, Any] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.removeprefix("--").partition("=")
        field = fields.get(name)
        negated = field is None and name.startswith("no-") and bool in _choices(types_of, fields.get(name[3:]))
        field = fields.get(name[3:]) if negated else field
        if field is None or not word.startswith("--"):
            names = ", ".join(f"--{option}" for option in fields)
            raise RecipeError(f"unknown option {word!r}; besides the common options this baseline takes {names}")
        if bool in _choices(types_of, field) and not equals:
            values[field.name] = not negated
        elif negated or not (equals or rest):
            raise RecipeError(f"{word} takes no value" if negated else f"{word} needs a value")
        else:
            values[field.name] = _typed(word, value if equals else rest.pop(0), _choices(types_of, field))
    return kind(**{**(base or {}), **values})


def _choices(types_of: dict[str, Any], field: dataclasses.Field[Any] | None) -> tuple[Any, ...]:
    """Return the types of a field's union; none for no field."""
    if field is None:
        return ()
    annotation = types_of[field.name]
    union = typing.get_origin(annotation) in (types.UnionType, typing.Union)
    return typing.get_args(annotation) if union else (annotation,)


def _typed(word: str, text: str, choices: Sequence[Any]) -> Any:
    """Return the value of `text` as one of the types `choices`; `word`, the option, is named in the RecipeError."""
    value = {"true": True, "false": False}.get(text.lower(), literal(text)) if bool in choices else literal(text)
    if type(value) is int and float in choices:
        value = float(value)
    literals = [choice for choice in choices if typing.get_origin(choice) is typing.Literal]
    words = [option for each in literals for option in typing.get_args(each)]
    if text in words or (str in choices and type(value) not in choices):
        return text
    if Any in choices or type(value) in choices:
        return value
    names = [getattr(choice, "__name__", str(choice)) for choice in choices if choice not in literals]
    allowed = " or ".join(["None" if name == "NoneType" else name for name in names] + words)
    raise RecipeError(f"{word} takes {allowed}; got {text!r}")
