"""Reading `--option name=value` and the fields of a baseline's Args from the command line."""

from __future__ import annotations

import ast
import dataclasses
import json
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

from lmgym.errors import InstanceError, RecipeError


def literal(text: str) -> Any:
    """Return the Python literal that `text` is, else the text itself."""
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def json_or_literal(text: str) -> Any:
    """Return what `text` says in JSON, else the Python literal that it is, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return literal(text)


def task_options(pairs: Sequence[str]) -> dict[str, Any]:
    """Turn `["receptacles=6", "source=official"]` into options of a task."""
    options: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InstanceError(f"--option takes name=value; got {pair!r}")
        if name.strip() == "token":
            raise InstanceError("a token on the command line would stand in the record: set LMGYM_REMOTE_TOKEN")
        options[name.strip()] = literal(value)
    return options


def read_args(kind: type[Any], words: Sequence[str], base: Mapping[str, Any] | None = None) -> Any:
    """Make the dataclass `kind` from words such as `["--group", "8", "--no-std"]`; `base` has what no word says.

    Raises RecipeError for a word that is no field, or a value of another type.
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
            known = ", ".join(f"--{known}" for known in fields)
            raise RecipeError(f"unknown argument {word!r}; besides its common options this baseline has {known}")
        if bool in _choices(types_of, field) and not equals:
            values[field.name] = not negated
        elif negated or not (equals or rest):
            raise RecipeError(f"{word} takes no value" if negated else f"{word} needs a value")
        else:
            values[field.name] = _typed(value if equals else rest.pop(0), types_of[field.name], word)
    return kind(**{**(base or {}), **values})


def _choices(types_of: dict[str, Any], field: dataclasses.Field[Any] | None) -> tuple[Any, ...]:
    """Return the types that a field takes; none for no field."""
    if field is None:
        return ()
    wanted = types_of[field.name]
    return typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)


def _typed(value: str, wanted: Any, word: str) -> Any:
    choices = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    found = {"true": True, "false": False}.get(value.lower(), literal(value)) if bool in choices else literal(value)
    if type(found) is int and float in choices:
        found = float(found)
    if str in choices and type(found) not in choices:
        return value
    accepted = any(_matches(found, value, choice) for choice in choices)
    if not accepted:
        raise RecipeError(f"{word} takes {_told(choices)}; got {value!r}")
    return value if typing.get_origin(choices[0]) is typing.Literal else found


def _told(choices: Sequence[Any]) -> str:
    """What an option takes: its types by name, or the words that are all there is."""
    words = [word for choice in choices for word in typing.get_args(choice) or (choice,)]
    return " or ".join("None" if word is types.NoneType else getattr(word, "__name__", str(word)) for word in words)


def _matches(found: Any, value: str, choice: Any) -> bool:
    if typing.get_origin(choice) is typing.Literal:
        return value in typing.get_args(choice)
    return choice is Any or type(found) is choice
