"""Common part of the toolkits: a database, tools, functions that tasks call by name, and texts of results.

The rules of all domains are those of tau2-bench at v1.0.1 (MIT), read there and written anew; descriptions are our own.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any

from lmgym.backends.user.tools import Tool, ToolError, call_tool, tools_of

Data = dict[str, Any]  # one JSON object
LONGEST = 1_000  # characters of an expression to calculate


class Toolkit:
    """Tools over one database; `FUNCTIONS` are further methods that tasks may call: initialisation and assertions."""

    FUNCTIONS: tuple[str, ...] = ()

    def __init__(self, data: Data) -> None:
        self.data = data
        self.tools: dict[str, Tool] = tools_of(self)

    def call(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool. Raises ToolError where tau2-bench raises."""
        return call_tool(self.tools, name, arguments)

    def run(self, name: str, arguments: Mapping[str, Any]) -> Any:
        """Call a tool or one of `FUNCTIONS`, unchecked, as tasks do to initialise and to assert."""
        if name not in self.tools and name not in self.FUNCTIONS:
            raise ToolError(f"no function {name!r}; there are {', '.join((*self.tools, *self.FUNCTIONS))}")
        return getattr(self, name)(**arguments)

    def update(self, changes: Mapping[str, Any]) -> None:
        """Merge `changes` into the database: objects key by key, everything else replaced."""
        merge(self.data, changes)

    def record(self, table: str, key: str, absent: str) -> Data:
        """Return a record of a table. Raises ToolError with the words `absent` if there is none."""
        if key not in self.data.get(table, {}):
            raise ToolError(absent)
        record: Data = self.data[table][key]
        return record

    def canonical(self) -> str:
        """Return the database as text that does not depend on the order of keys; equal texts are equal hashes."""
        return json.dumps(self.data, sort_keys=True)


def merge(target: Data, changes: Mapping[str, Any]) -> Data:
    """Merge `changes` into `target` in place and return it."""
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(target.get(key), dict):
            merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)
    return target


def with_defaults(record: Mapping[str, Any], defaults: Mapping[str, Any]) -> Data:
    """Return a record in which absent keys have their defaults."""
    return merge(copy.deepcopy(dict(defaults)), record)


def result_text(result: Any) -> str:
    """Return a tool's result as the caller reads it: text as it is, everything else as JSON."""
    return result if isinstance(result, str) else json.dumps(result)
